"""The machine around the engine: one collector a file."""
