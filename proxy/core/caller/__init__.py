"""Who is speaking: tenant, user, project, and what clients say about themselves."""
