"""Finding DCGM's bindings and a host engine, and connecting to it in the way of each generation."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from heptascope.model import Reason
from heptascope.sources.base import SourceError
from heptascope.sources.gpu import dcgm_bindings, dcgm_connect
from heptascope.sources.gpu.dcgm_codes import DcgmCallError
from heptascope.sources.gpu.dcgm_connect import DcgmOptions, Target, choose, connect, disconnect, targets
from support.fake_dcgm import HostEngine, Modules
from support.fake_nvml import FakeClock

STRUCTS = """
class DCGMError(Exception):
    pass
loaded = []
def _dcgmInit(folder=None):
    loaded.append(folder)
"""


@pytest.fixture(autouse=True)
def _no_modules() -> Iterator[None]:
    """Forget the bindings that a test loaded."""
    yield
    for name in ("dcgm_structs", "dcgm_agent"):
        sys.modules.pop(name, None)


def bindings(folder: Path, structs: str = STRUCTS, agent: str = "def dcgmInit(): pass\n") -> Path:
    """Write a folder of bindings."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dcgm_structs.py").write_text(structs)
    (folder / "dcgm_agent.py").write_text("import dcgm_structs\n" + agent)
    return folder


def test_no_bindings_is_one_line_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The places that were looked at and what to do; a configured place is the only one that counts."""
    monkeypatch.setattr(dcgm_bindings, "USUAL_PLACES", (tmp_path / "four", tmp_path / "three"))
    with pytest.raises(SourceError, match=r"no Python bindings in .*four, .*three; install datacenter-gpu-manager-4-core or set gpu\.dcgm"):
        dcgm_bindings.load()
    bindings(tmp_path / "three")
    assert tmp_path / "three" == dcgm_bindings.find(None)
    with pytest.raises(SourceError, match=r"no Python bindings in .*other;"):
        dcgm_bindings.find(tmp_path / "other")


def test_bindings_load_without_staying_on_the_path(tmp_path: Path) -> None:
    """The folder holds modules with general names: it is on sys.path only while the two are loaded. A library beside it is named."""
    folder = bindings(tmp_path / "share" / "bindings" / "python3")
    (tmp_path / "share" / "lib64").mkdir()
    (tmp_path / "share" / "lib64" / "libdcgm.so.4").touch()
    before = list(sys.path)
    found = dcgm_bindings.load(folder)
    assert before == sys.path
    assert [str(tmp_path / "share" / "lib64")] == found.structs.loaded


def test_other_bindings_in_the_process(tmp_path: Path) -> None:
    """Two generations cannot live in one process: the second is refused by name."""
    dcgm_bindings.load(bindings(tmp_path / "one"))
    with pytest.raises(SourceError, match=r"other bindings are loaded already, from .*one; restart heptascope to use .*two"):
        dcgm_bindings.load(bindings(tmp_path / "two"))


def test_broken_bindings_and_no_library(tmp_path: Path) -> None:
    """Whatever the modules raise is one line; so is a library that is not there."""
    with pytest.raises(SourceError, match=r"the bindings in .*a cannot be loaded: ZeroDivisionError"):
        dcgm_bindings.load(bindings(tmp_path / "a", structs="1 / 0\n"))
    missing = STRUCTS + "def _dcgmInit(folder=None):\n    raise OSError('no libdcgm.so.4')\n"
    with pytest.raises(SourceError, match=r"cannot load libdcgm \(no libdcgm\.so\.4\); install the library of the same version"):
        dcgm_bindings.load(bindings(tmp_path / "b", structs=missing))


def test_where_a_host_engine_may_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A configured socket or address, else the engine's defaults on this machine."""
    monkeypatch.setattr(dcgm_connect, "DEFAULT_SOCKET", tmp_path / "nv-hostengine")
    assert ["/run/x.sock"] == [str(t) for t in targets(DcgmOptions(socket=Path("/run/x.sock")))]
    assert ["dcgm:5555"] == [str(t) for t in targets(DcgmOptions(address="dcgm"))]
    assert ["dcgm:6000"] == [str(t) for t in targets(DcgmOptions(address="tcp://dcgm:6000"))]
    assert ["[fd00::1]:5555"] == [str(t) for t in targets(DcgmOptions(address="fd00::1"))]
    assert [("fd00::1", 6000)] == [(t.host, t.port) for t in targets(DcgmOptions(address="[fd00::1]:6000"))]
    assert ["127.0.0.1:5555"] == [str(t) for t in targets(DcgmOptions())]
    (tmp_path / "nv-hostengine").touch()
    assert ["127.0.0.1:5555", str(tmp_path / "nv-hostengine")] == [str(t) for t in targets(DcgmOptions())]
    with pytest.raises(SourceError, match=r"'http://x' is no address; write host:port in gpu\.dcgm\.address"):
        targets(DcgmOptions(address="http://x"))


@pytest.mark.parametrize("address", ["a..b:5555", "x" * 70, "host:²", "host:99999999999"], ids=["dots", "long", "superscript", "port"])
def test_an_address_that_no_host_can_have(address: str) -> None:
    """It is told like one where nobody listens, or as no address."""
    with pytest.raises(SourceError, match="DCGM: "):
        choose(DcgmOptions(address=address))


def test_embedded_only_where_nothing_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A second engine on a node disturbs the first: embedded is for a machine where none listens, and only when asked for."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        here = f"127.0.0.1:{listener.getsockname()[1]}"
        assert here == str(choose(DcgmOptions(address=here, embedded=True)))
    with socket.socket() as local:
        local.bind(("127.0.0.1", 0))
        local.listen()
        monkeypatch.setattr(dcgm_connect, "DEFAULT_PORT", local.getsockname()[1])
        assert f"127.0.0.1:{local.getsockname()[1]}" == str(choose(DcgmOptions(address=here, embedded=True)))
    with pytest.raises(SourceError, match=rf"no host engine at {here}: Connection refused; start nvidia-dcgm there") as caught:
        choose(DcgmOptions(address=here))
    assert Reason.NO_SOURCE == caught.value.reason
    assert "embedded" == str(choose(DcgmOptions(address=here, embedded=True)))
    path = tmp_path / "engine.sock"
    with pytest.raises(SourceError, match="No such file"):
        choose(DcgmOptions(socket=path))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        assert str(path) == str(choose(DcgmOptions(socket=path)))


@pytest.mark.parametrize(
    ("uri", "target", "expected"),
    [
        (True, Target("h", 5555), "tcp://h:5555"),
        (True, Target(path="/s"), "unix:///s"),
        (False, Target("h", 5555), "h:5555 0"),
        (False, Target(path="/s"), "/s 1"),
    ],
)
def test_both_generations_of_connecting(uri: bool, target: Target, expected: str) -> None:
    """DCGM 4.5 and later connect by URI, older bindings by address and a flag."""
    engine = HostEngine("h200", FakeClock())
    connect(Modules(engine, uri).bindings(), target)
    assert expected in engine.calls


def test_embedded_engine_is_stopped() -> None:
    """What was started in this process ends with the session; a refused connection names the place."""
    engine = HostEngine("h200", FakeClock())
    modules = Modules(engine).bindings()
    handle = connect(modules, Target())
    assert 1 == engine.embedded
    disconnect(modules, Target(), handle)
    assert (0, set()) == (engine.embedded, engine.connections)
    engine.stop()
    with pytest.raises(DcgmCallError, match="h:1: the connection to the host engine broke"):
        connect(modules, Target("h", 1))
