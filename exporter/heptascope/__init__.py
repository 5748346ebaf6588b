"""heptascope: which of the seven layers is your LLM server waiting on."""

__version__ = "0.1.0"
