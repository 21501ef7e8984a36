"""The handlers of the HTTP API: each module binds its own to operations of the table."""
