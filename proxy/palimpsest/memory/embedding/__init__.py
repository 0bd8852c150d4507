"""The embedding model: fetched, loaded, and run for questions and passages."""
