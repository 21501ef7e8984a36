"""A store on PostgreSQL, shared by any number of replicas: the order of events is the order of a row lock."""
