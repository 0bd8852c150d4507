"""HTTP: the proxied paths, and the endpoints of the proxy itself."""
