"""The page: what is stored and what memory did, for people with a browser."""
