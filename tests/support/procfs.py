"""A /proc and /sys on disk, for what this machine does not have: other processes, control groups of version 2, no pressure files."""

from __future__ import annotations

from pathlib import Path

TICKS = 100


class FakeRoot:
    """A root folder whose `proc` and `sys` hold what a test puts there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._inode = 100
        self.write("proc/loadavg", "1.50 1.0 0.5 2/100 4242\n")
        self.write("proc/stat", "cpu  1000 0 500 8000 500 0 0 0 0 0\ncpu0 1 2 3 4\n")
        self.write("sys/devices/system/cpu/online", "0-3\n")
        for resource in ("cpu", "memory", "io"):
            self.write(f"proc/pressure/{resource}", "some avg10=0.00 avg60=0.00 avg300=0.00 total=2000000\nfull avg10=0.00 total=1\n")
        for table in ("tcp", "tcp6"):
            self.write(
                f"proc/net/{table}", "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode\n"
            )

    def write(self, path: str, text: str) -> None:
        """Write a file below the root, in place, so that open descriptors see the new text."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def process(
        self,
        pid: int,
        comm: str,
        *,
        ppid: int = 1,
        command: str = "",
        threads: dict[int, tuple[int, int]] | None = None,
        user: float = 1.0,
        start: int = 500,
        rss: int = 1000,
        cgroup: str = "/",
    ) -> None:
        """Add a process, or change it; `threads` gives run and wait nanoseconds by thread id."""
        threads = {pid: (1_000_000_000, 0)} if threads is None else threads
        fields = ["S", str(ppid), *["0"] * 9, str(int(user * TICKS)), "50", *["0"] * 4, str(len(threads)), "0", str(start), "0", str(rss)]
        self.write(f"proc/{pid}/stat", f"{pid} ({comm}) {' '.join(fields)}\n")
        self.write(f"proc/{pid}/status", f"Name:\t{comm}\nCpus_allowed:\tf\nCpus_allowed_list:\t0-1,3\nMems_allowed:\t1\n")
        self.write(f"proc/{pid}/cmdline", "\0".join((command or comm).split()) + "\0")
        self.write(f"proc/{pid}/cgroup", f"0::{cgroup}\n")
        (self.root / f"proc/{pid}/fd").mkdir(exist_ok=True)
        for tid, (run, wait) in threads.items():
            self.write(f"proc/{pid}/task/{tid}/schedstat", f"{run} {wait} 7\n")

    def end(self, pid: int) -> None:
        """Remove a process; its files stay open for whoever holds them, as the kernel's do until they answer ESRCH."""
        folder = self.root / f"proc/{pid}"
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        folder.rmdir()

    def listen(self, port: int, *pids: int, table: str = "tcp") -> None:
        """Let `pids` hold one socket that listens on `port`; with no pid the holder is out of sight."""
        self._inode += 1
        line = f"   0: 00000000:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 {self._inode} 1 0\n"
        path = self.root / f"proc/net/{table}"
        path.write_text(path.read_text() + line)
        for pid in pids:
            (self.root / f"proc/{pid}/fd/{self._inode}").symlink_to(f"socket:[{self._inode}]")

    def elsewhere(self) -> None:
        """Let whatever listens do so in another network namespace, out of sight."""
        for table in ("tcp", "tcp6"):
            path = self.root / f"proc/net/{table}"
            path.write_text(path.read_text().partition("\n")[0] + "\n")

    def vllm(self, port: int = 8000, *, first: int = 20, workers: int = 0) -> None:
        """Add the processes of a vLLM server whose API server has the pid `first`."""
        self.process(
            first, "python3", command=f"/usr/bin/python3 /usr/bin/vllm serve m --port {port}", threads={first: (5, 0), first + 500: (7, 1)}
        )
        self.process(first + 1, "python3", ppid=first)  # the resource tracker
        core = first + 2
        self.process(core, "VLLM::EngineCor", ppid=first, command="VLLM::EngineCore", threads={core: (10, 2), core + 500: (20, 3)})
        for rank in range(workers):
            # the last rank has the lowest pid
            self.process(first + 9 - rank, "VLLM::Worker_TP", ppid=core, command=f"VLLM::Worker_TP{rank}")
        self.listen(port, first)


def put_group(fake: FakeRoot, path: str, quota: str, memory: str = "max", throttled: int = 0) -> None:
    """Write a version 2 control group."""
    fake.write("sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
    stat = f"usage_usec 5000000\nuser_usec 1\nnr_periods 100\nnr_throttled 40\nthrottled_usec {throttled}\n"
    for name, text in (
        ("cpu.max", quota),
        ("cpu.stat", stat),
        ("memory.max", memory),
        ("memory.current", "1048576\n"),
        ("memory.stat", "anon 1\nfile 4096\n"),
    ):
        fake.write(f"{path}/{name}", text)
