"""Grafana boards, generated from the signal table and the catalogue."""
