"""Real recordings that ship with the package, to be served as if they ran now."""
