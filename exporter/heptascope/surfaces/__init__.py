"""What people and machines read: /metrics, the page, reports."""
