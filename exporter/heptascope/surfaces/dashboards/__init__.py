"""Dashboards: the boards as data, their queries as Grafana would send them, and why a panel is empty."""
