"""Operation: proxy keys, switches, probes, and a policy that is loaded anew."""
