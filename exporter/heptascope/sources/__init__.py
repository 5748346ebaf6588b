"""Everything that blocks: GPUs, engines, the host, recordings."""
