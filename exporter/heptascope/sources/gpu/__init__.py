"""GPU counters: one source a file."""
