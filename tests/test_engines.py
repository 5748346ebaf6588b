"""The engines of a daemon: names, ports, GPUs, and what command lines tell."""

from __future__ import annotations

import pytest

from heptascope.config import EngineFacts, EngineSettings, PollSettings
from heptascope.engines import Engines, is_local
from heptascope.errors import UserError
from heptascope.sources.engine.discover import Found
from heptascope.sources.engine.source import EngineSource
from support.engine_pages import VLLM_032, capture


def engines() -> Engines:
    """Return an empty set of engines."""
    return Engines(PollSettings())


def recognise(source: EngineSource) -> None:
    """Let a source read a page of vLLM."""
    source.reader.read_page(capture(VLLM_032, "steady_16"), "", 1.0)


def test_a_lone_engine_is_labelled_with_its_kind_once_that_is_known() -> None:
    """Before the first page a source goes by its port; from then on its series are those of `vllm`."""
    mine = engines()
    (source,) = mine.configured([EngineSettings(url="http://localhost:8000")])
    assert ("engine-8000", "engine-8000", []) == (source.name, mine.name_of("engine-8000"), mine.on_this_machine())
    recognise(source)
    assert ("vllm", [("vllm", 8000)]) == (mine.name_of("engine-8000"), mine.on_this_machine())


def test_several_engines_are_labelled_with_kind_and_port() -> None:
    """Two engines of one kind have the port in their names; one with a name of its own keeps that."""
    mine = engines()
    sources = mine.configured(
        [EngineSettings(url=f"http://localhost:800{n}") for n in (0, 1)] + [EngineSettings(url="http://c:8000", name="big")]
    )
    for source in sources:
        recognise(source)
    assert ["vllm-8000", "vllm-8001", "big"] == [mine.name_of(source.name) for source in sources]


def test_a_found_engine_is_named_as_a_configured_one() -> None:
    """Looking for engines leads to the same names as giving their addresses."""
    mine = engines()
    (source,) = mine.found([Found("http://127.0.0.1:8000", "vllm")])
    recognise(source)
    assert ("engine-8000", "vllm") == (source.name, mine.name_of(source.name))


def test_two_engines_that_would_have_one_name_are_an_error() -> None:
    """Same port on two hosts: each needs a name, and the message says so."""
    with pytest.raises(UserError, match="two engines listen on port 8000 and have no name; give each a name"):
        engines().configured([EngineSettings(url="http://a:8000"), EngineSettings(url="http://b:8000")])
    named = engines().configured([EngineSettings(url="http://a:8000", name="a"), EngineSettings(url="http://b:8000")])
    assert ["a", "engine-8000"] == [source.name for source in named]


def test_configured_gpus_go_by_the_name_of_the_series() -> None:
    """The GPUs of an engine are known under its label as soon as it has one."""
    mine = engines()
    settings = [
        EngineSettings(url="http://a:1", gpus=("0", "1")),
        EngineSettings(url="http://a:2", name="b", gpus=("2",)),
        EngineSettings(url="http://a:3"),
    ]
    source, *_ = mine.configured(settings)
    assert {"b": ("2",)} == dict(mine.gpus)
    recognise(source)
    assert {"vllm-1": ("0", "1"), "b": ("2",)} == dict(mine.gpus)
    assert None is mine.gpus.get("vllm-3")


def test_command_lines_give_settings_and_configuration_goes_before_them() -> None:
    """A visible `vllm serve --max-num-seqs 8` tells the cap, unless the configuration says another one."""
    mine = engines()
    plain, told = mine.configured(
        [
            EngineSettings(url="http://localhost:1", name="plain"),
            EngineSettings(url="http://localhost:2", name="told", settings=EngineFacts(max_num_seqs=4)),
        ]
    )
    command = ["/usr/bin/python3", "/usr/bin/vllm", "serve", "m", "--max-num-seqs", "8", "--enforce-eager"]
    mine.learn(
        {"procs": [{"engine": "plain", "cmdline": command}, {"engine": "told", "cmdline": command}, {"engine": "", "cmdline": ["x"]}, {}]}
    )
    assert (8.0, 4.0) == (plain.reader.settings["max_num_seqs"], told.reader.settings["max_num_seqs"])
    assert (1.0, 1.0) == (plain.reader.settings["enforce_eager"], told.reader.settings["enforce_eager"])
    mine.learn({"procs": []})
    assert ({}, {"max_num_seqs": 4.0}) == (plain.reader.settings, told.reader.settings)


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:1", True),
        ("http://127.0.0.5:1", True),
        ("http://[::1]:1", True),
        ("http://0.0.0.0:1", True),
        ("http://10.0.0.1:1", False),
        ("http://elsewhere.example:1", False),
    ],
)
def test_which_engines_may_have_processes_here(url: str, local: bool) -> None:
    """Loopback addresses and this machine's name are local; others are not."""
    assert local is is_local(url)
