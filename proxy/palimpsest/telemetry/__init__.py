"""Telemetry: log, metrics and traces."""
