"""The HTTP service: authentication, request bodies, routes, answers and errors, over a store."""
