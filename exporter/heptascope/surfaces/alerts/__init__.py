"""Alerting rules, recording rules and Alertmanager's example configuration, rendered from the catalogue."""
