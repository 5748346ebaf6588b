"""Engine pages: one adapter a file."""
