"""The one table of signals, their history, and what is derived from them."""
