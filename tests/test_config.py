"""The configuration: file < environment < flags, every mistake one line with place, key and remedy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from heptascope.commands.config import show_lines
from heptascope.config import Settings
from heptascope.config_load import environment_variables, load
from heptascope.errors import UserError
from heptascope.quantities import format_duration, format_size, parse_duration, parse_listen, parse_size


def write(folder: Path, text: str) -> Path:
    """Return a configuration file with `text`."""
    path = folder / "heptascope.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def complaint(folder: Path, text: str = "", environ: Mapping[str, str] | None = None) -> str:
    """Return the error that loading ends with; the folder is left out of it."""
    with pytest.raises(UserError) as caught:
        load(write(folder, text), environ)
    line = str(caught.value)
    assert "\n" not in line
    return line.replace(f"{folder}/", "")


def test_without_any_input_everything_has_a_default() -> None:
    """The documented defaults: port 17007 of all addresses, one second, no engine, automatic GPU source."""
    settings = load().settings
    assert ("", 17007) == settings.address
    assert (1.0, 1.0, 1.0) == (settings.gpu.interval, settings.poll.interval, settings.host.interval)
    assert ((), "auto", 16 * 2**20) == (settings.engines, settings.gpu.source, settings.poll.max_page_bytes)


def test_environment_beats_file_and_flag_beats_environment(tmp_path: Path) -> None:
    """One key set three times takes the flag's value; each origin is known."""
    path = write(tmp_path, "listen: :1\ngpu:\n  interval: 2s\n  slow_interval: 20s\nhost:\n  enabled: false\n")
    environ = {"HEPTASCOPE_LISTEN": ":2", "HEPTASCOPE_GPU_INTERVAL": "100ms"}
    loaded = load(path, environ, {"--listen": (("listen",), "localhost:3")})
    assert ("localhost", 3) == loaded.settings.address
    assert (0.1, 20.0, False) == (loaded.settings.gpu.interval, loaded.settings.gpu.slow_interval, loaded.settings.host.enabled)
    assert "flag --listen" == loaded.origin(("listen",))
    assert "environment variable HEPTASCOPE_GPU_INTERVAL" == loaded.origin(("gpu", "interval"))
    assert f"{path}:4" == loaded.origin(("gpu", "slow_interval"))
    assert "default" == loaded.origin(("gpu", "source"))


def test_engines_of_a_flag_replace_those_of_the_file(tmp_path: Path) -> None:
    """A list is one value: what a flag gives is the whole list."""
    path = write(tmp_path, "engines:\n  - url: http://a:1\n    name: old\n  - url: http://b:1\n")
    loaded = load(path, {}, {"--engine": (("engines",), [{"url": "http://c:1"}])})
    assert [("http://c:1", None)] == [(engine.url, engine.name) for engine in loaded.settings.engines]
    assert ("flag --engine", "default") == (loaded.origin(("engines", 0, "url")), loaded.origin(("engines", 0, "name")))


def test_environment_lists_and_structures() -> None:
    """Commas separate lists, engines are URLs, and braces are YAML."""
    environ = {
        "HEPTASCOPE_ENGINE": "http://a:8000, http://b:8000",
        "HEPTASCOPE_GPU_DEVICES": "0,GPU-5e",
        "HEPTASCOPE_PEAKS": "{NVIDIA X1: {flops_per_clock_per_sm: 4096}}",
        "HEPTASCOPE_SLO_TIME_TO_FIRST_TOKEN": "500ms",
    }
    settings = load(None, environ).settings
    assert ["http://a:8000", "http://b:8000"] == [engine.url for engine in settings.engines]
    assert ("0", "GPU-5e") == settings.gpu.devices
    assert 4096.0 == settings.peaks["NVIDIA X1"].flops_per_clock_per_sm
    assert 0.5 == settings.slo.time_to_first_token


def test_every_leaf_has_its_own_environment_variable() -> None:
    """No two keys share a variable, and each variable's value arrives at its key."""
    names = environment_variables()
    assert len(names) == len(set(names.values()))
    assert ("web", "tls_cert") == names["HEPTASCOPE_WEB_TLS_CERT"]
    assert ("rules", "window") == names["HEPTASCOPE_RULES_WINDOW"]


def test_service_links_of_kubernetes_are_not_ours() -> None:
    """A service named heptascope puts HEPTASCOPE_PORT and the like into every pod; they are passed over, as are empty values."""
    environ = {
        "HEPTASCOPE_PORT": "tcp://10.0.0.1:17007",
        "HEPTASCOPE_SERVICE_HOST": "10.0.0.1",
        "HEPTASCOPE_SERVICE_PORT_METRICS": "17007",
        "HEPTASCOPE_PORT_17007_TCP_ADDR": "10.0.0.1",
        "HEPTASCOPE_GPU_SERVICE_HOST": "10.0.0.2",
        "HEPTASCOPE_GPU_PORT": "tcp://10.0.0.2:1",
        "HEPTASCOPE_LISTEN": "",
        "PATH": "/bin",
    }
    assert Settings() == load(None, environ).settings


def test_the_file_may_be_named_in_the_environment(tmp_path: Path) -> None:
    """HEPTASCOPE_CONFIG is the file when no flag names one."""
    path = write(tmp_path, "gpu: {source: none}\n")
    assert "none" == load(None, {"HEPTASCOPE_CONFIG": str(path)}).settings.gpu.source


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("listen: :1\ngpu:\n  intervall: 1s\n", "heptascope.yaml:3: unknown key 'gpu.intervall'; did you mean interval?"),
        (
            "\nzzz: 1\n",
            f"heptascope.yaml:2: unknown key 'zzz'; allowed: {', '.join(Settings.model_fields)}",
        ),
        ("gpu:\n  interval: soon\n", "heptascope.yaml:2: gpu.interval = soon: not a duration; write 100ms, 1s, 5m or 1h"),
        ("gpu: {interval: 1ms}\n", "heptascope.yaml:1: gpu.interval = 1ms: must be greater than or equal to 0.1 s"),
        ("gpu:\n  source: nvm\n", "heptascope.yaml:2: gpu.source = nvm: must be 'auto', 'dcgm', 'nvml', 'dcgm-exporter' or 'none'"),
        ("engines: http://a:1\n", "heptascope.yaml:1: engines = http://a:1: must be a list"),
        (
            "gpu: 3\n",
            "heptascope.yaml:1: gpu is not a section; allowed below it: source, dcgm, dcgm_exporter, scope, expected, pod_resources, "
            "interval, slow_interval, devices",
        ),
        ("listen: nowhere\n", "heptascope.yaml:1: listen = nowhere: not an address to listen on; write host:port, [::1]:port or :port"),
        ("listen: :99999\n", "heptascope.yaml:1: listen = :99999: not an address to listen on; write host:port, [::1]:port or :port"),
        (
            "poll: {max_page_bytes: big}\n",
            "heptascope.yaml:1: poll.max_page_bytes = big: not a size; write 16MiB, 1GB or a number of bytes",
        ),
        ("engines:\n  - name: a\n", "heptascope.yaml:2: engines[0].url is missing"),
        ("engines:\n  - url: a:8000\n", "heptascope.yaml:2: engines[0].url = a:8000: not a URL of an engine; write http://host:port"),
        (
            "engines:\n  - url: http://a:99999\n",
            "heptascope.yaml:2: engines[0].url = http://a:99999: not a URL of an engine; write http://host:port",
        ),
        (
            "engines:\n  - url: http://a:1\n    settings:\n      max_num_seq: 4\n",
            "heptascope.yaml:4: unknown key 'engines[0].settings.max_num_seq'; did you mean max_num_seqs?",
        ),
        (
            "engines:\n- {url: 'http://a:1', name: x}\n- {url: 'http://b:1', name: x}\n",
            "heptascope.yaml:1: engines: two engines have the name x; give each its own",
        ),
        (
            "engines:\n- url: http://a:1\n- url: http://a:1/\n",
            "heptascope.yaml:1: engines: two engines have the url http://a:1; give each its own",
        ),
        ("web: {tls_cert: a.pem}\n", "heptascope.yaml:1: web: tls_cert and tls_key go together; set both or neither"),
        ("web: {token: secret-word, token_file: f}\n", "heptascope.yaml:1: web: token and token_file exclude each other; set one"),
        ("web: {token: secret}\n", "heptascope.yaml:1: web.token is too short: at least 8 characters"),
        (
            "peaks: {X1: {flops_per_clock: 1}}\n",
            "heptascope.yaml:1: unknown key 'peaks.X1.flops_per_clock'; did you mean flops_per_clock_per_sm?",
        ),
        (
            "peaks: {X1: {dram_bytes_per_second: .inf}}\n",
            "heptascope.yaml:1: peaks.X1.dram_bytes_per_second = inf: must be a finite number",
        ),
        (
            "rules: {overrides: {KVCachePreemption: {preemptions_per_second: .nan}}}\n",
            "heptascope.yaml:1: rules.overrides.KVCachePreemption.preemptions_per_second = nan: must be a finite number",
        ),
        ("gpu:\n  source: none\n  source: nvml\n", "heptascope.yaml:3: key 'source' is here twice, first on line 2"),
        ("gpu: [\n", "heptascope.yaml:2: not valid YAML: expected the node content, but found '<stream end>'"),
        ("- a\n", "heptascope.yaml:1: the file must hold `key: value` lines"),
        ("a: &a\n  b: *a\n", "heptascope.yaml:1: nested deeper than 20 levels"),
        ("? [a, b]\n: 1\n", "heptascope.yaml:1: a key must be plain text"),
        (
            "gpu: {source: x, interval: y}\n",
            "heptascope.yaml:1: gpu.source = x: must be 'auto', 'dcgm', 'nvml', 'dcgm-exporter' or 'none'; and 1 more",
        ),
    ],
)
def test_a_mistake_in_the_file_is_one_line_with_place_key_and_remedy(tmp_path: Path, text: str, expected: str) -> None:
    """Each kind of mistake names the line on which it stands and what is allowed instead."""
    assert expected == complaint(tmp_path, text)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (
            "HEPTASCOPE_GPU_INTERVALL",
            "1s",
            "environment variable HEPTASCOPE_GPU_INTERVALL: no such setting; did you mean HEPTASCOPE_GPU_INTERVAL?",
        ),
        (
            "HEPTASCOPE_POLL_INTERVAL",
            "often",
            "environment variable HEPTASCOPE_POLL_INTERVAL: poll.interval = often: not a duration; write 100ms, 1s, 5m or 1h",
        ),
        ("HEPTASCOPE_PEAKS", "{a", "environment variable HEPTASCOPE_PEAKS: not valid YAML: {a"),
        (
            "HEPTASCOPE_ENGINE",
            "http://a:1,b",
            "environment variable HEPTASCOPE_ENGINE: engines[1].url = b: not a URL of an engine; write http://host:port",
        ),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(tmp_path: Path, name: str, value: str, expected: str) -> None:
    """A variable that nobody knows is an error too: it is a typing mistake more often than not."""
    assert expected == complaint(tmp_path, "", {name: value})


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A missing file, a folder and bytes that are no text are user errors with the file's name."""
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, why in ((tmp_path / "none.yaml", "No such file"), (tmp_path, "Is a directory"), (binary, "can't decode")):
        with pytest.raises(UserError, match=why) as caught:
            load(path)
        assert str(caught.value).startswith(f"{path}: cannot read the file: ")


def test_an_empty_section_is_the_default(tmp_path: Path) -> None:
    """A section whose keys are all commented out, and an empty file, change nothing."""
    assert Settings() == load(write(tmp_path, "gpu:\n  # interval: 1s\n")).settings
    assert Settings() == load(write(tmp_path, "# nothing\n")).settings


def test_a_merge_key_is_no_duplicate(tmp_path: Path) -> None:
    """YAML's `<<` may be overridden by a key of the section itself."""
    path = write(tmp_path, "poll: &base {interval: 3s}\nhost:\n  <<: *base\n  interval: 2s\n")
    assert (3.0, 2.0) == (load(path).settings.poll.interval, load(path).settings.host.interval)


def test_settings_do_not_change_after_loading() -> None:
    """The model is frozen, sections included."""
    with pytest.raises(ValidationError, match="frozen"):
        Settings().gpu.interval = 3.0  # type: ignore[misc]  # the very thing that must fail


@pytest.mark.parametrize(
    ("text", "seconds"), [("100ms", 0.1), ("1s", 1.0), ("1.5s", 1.5), ("10m", 600.0), ("2h", 7200.0), ("3", 3.0), (0.25, 0.25)]
)
def test_durations_are_read_and_written_back(text: Any, seconds: float) -> None:
    """What `config show` prints for a duration reads back as the same number of seconds."""
    assert seconds == pytest.approx(parse_duration(text))
    assert seconds == pytest.approx(parse_duration(format_duration(seconds)))


@pytest.mark.parametrize("text", ["", "1 day", "-1s", "s", "1ss", "nan", True])
def test_what_is_no_duration_is_refused(text: Any) -> None:
    """Negative numbers, units we do not know and truth values are no durations."""
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(("text", "size"), [("16MiB", 16 * 2**20), ("1GB", 10**9), ("512kB", 512_000), ("77", 77), (4096, 4096)])
def test_sizes_are_read_and_written_back(text: Any, size: int) -> None:
    """What `config show` prints for a size reads back as the same number of bytes."""
    assert (size, size) == (parse_size(text), parse_size(format_size(size)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":17007", ("", 17007)),
        ("17007", ("", 17007)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:80", ("::1", 80)),
        ("host.name:80", ("host.name", 80)),
    ],
)
def test_addresses_to_listen_on(text: str, expected: tuple[str, int]) -> None:
    """IPv4, IPv6 in brackets, names, and a port alone for all addresses."""
    assert expected == parse_listen(text)


def test_config_show_is_yaml_that_loads_as_the_same_settings(tmp_path: Path) -> None:
    """What `config show` prints is a configuration file; only secrets are gone."""
    engines = "engines:\n  - {url: 'http://a:1', gpus: [0]}\n"
    path = write(
        tmp_path,
        f"gpu: {{interval: 100ms}}\n{engines}rules: {{overrides: {{R: {{t: 0.5}}}}}}\npeaks: {{X: {{dram_bytes_per_second: 1}}}}\n",
    )
    loaded = load(path, {"HEPTASCOPE_RECORD_DIR": "/var/rec"})
    text = "\n".join(show_lines(loaded))
    assert loaded.settings == load(write(tmp_path, text)).settings
    lines = {line.split("#")[0].strip(): line.split("# ")[1] for line in text.splitlines() if "#" in line}
    assert f"{path}:1" == lines["interval: 100ms"]
    assert f"{path}:3" == lines["- url: http://a:1"]
    assert "environment variable HEPTASCOPE_RECORD_DIR" == lines["dir: /var/rec"]
    assert "default" == lines["listen: :17007"]


def test_config_show_masks_secrets(tmp_path: Path) -> None:
    """Neither the token nor a password in an engine's URL is printed."""
    path = write(tmp_path, "web: {token: correct-horse}\nengines: [{url: 'http://me:battery@a:1'}]\n")
    text = "\n".join(show_lines(load(path)))
    assert ("correct-horse" not in text, "battery" not in text) == (True, True)
    assert "http://***@a:1" == yaml.safe_load(text)["engines"][0]["url"]
