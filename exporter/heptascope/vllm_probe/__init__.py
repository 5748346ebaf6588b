"""A plug-in for vLLM that measures each scheduler iteration in the engine core and hands the numbers to heptascope over a mapped file.

vLLM loads it by the entry point `heptascope` of the group `vllm.general_plugins`. It does nothing unless the environment variable
HEPTASCOPE_PROBE_DIR names a folder (in a pod: a volume of medium Memory that the sidecar mounts too); give that folder to heptascope as
`engines[].probe`. Whatever goes wrong in it switches it off, with one line in the log, and the engine runs on.
"""

from heptascope.vllm_probe.plugin import install

__all__ = ["install"]
