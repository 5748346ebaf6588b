"""The catalogue, its evaluation, and the verdict."""
