"""The caller of a request: tenant, user, project, and what clients say about themselves."""
