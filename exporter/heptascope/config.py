"""The one typed configuration. `config_load` fills it: YAML file < environment < flags."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, WithJsonSchema, field_validator, model_validator

from heptascope.quantities import DeviceList, Duration, Listen, Size, parse_listen
from heptascope.sources.urls import is_http

DEFAULT_PORT = 17007


def _http_url(value: str) -> str:
    if not is_http(value):
        raise ValueError("not a URL of an engine; write http://host:port")
    return value


def _metrics_url(value: str) -> str:
    if not is_http(value):
        raise ValueError("not a URL of a dcgm-exporter; write http://host:9400")
    return value if urlsplit(value).path.strip("/") else f"{value.rstrip('/')}/metrics"


_URL_SCHEMA = WithJsonSchema({"type": "string", "pattern": "^https?://[^/]"})
MetricsUrl = Annotated[str, AfterValidator(_metrics_url), _URL_SCHEMA]
EngineUrl = Annotated[str, AfterValidator(_http_url), _URL_SCHEMA]
EngineName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")]


class _Section(BaseModel):
    """Every section: unknown keys are errors, values do not change after loading, numbers are finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _all_commented_out(cls, value: Any) -> Any:
        return {} if value is None else value


class EngineFacts(_Section):
    """Start settings of an engine that its metrics page does not tell; names are the engine's own flags."""

    max_num_seqs: int | None = Field(None, gt=0, description="Most requests that may run at once.")
    max_num_batched_tokens: int | None = Field(None, gt=0, description="Most tokens that one step may hold.")
    max_model_len: int | None = Field(None, gt=0, description="Longest sequence that the engine accepts, in tokens.")
    enable_prefix_caching: bool | None = Field(None, description="Whether prefix caching is on.")
    enforce_eager: bool | None = Field(None, description="Whether the engine runs without CUDA graphs.")
    max_cudagraph_capture_size: int | None = Field(None, ge=0, description="Largest batch that a captured CUDA graph covers.")
    speculative: bool | None = Field(None, description="Whether speculative decoding is configured.")
    tensor_parallel_size: int | None = Field(None, gt=0, description="GPUs that share each layer.")
    pipeline_parallel_size: int | None = Field(None, gt=0, description="Pipeline stages.")
    api_server_count: int | None = Field(None, gt=0, description="API servers that count into one metrics page.")


class EngineSettings(_Section):
    """One engine to watch."""

    url: EngineUrl = Field(description="Base URL of the engine, or of its metrics page.")
    name: EngineName | None = Field(None, description="Our name for it (label `engine`); default: kind, or kind-port.")
    kind: str | None = Field(None, description="Engine kind; default: told from its page. `table` reads it by the file in `map`.")
    map: Path | None = Field(None, description="YAML file that says where signals stand on its page (docs/engines.md), with `kind: table`.")
    settings: EngineFacts = EngineFacts()
    token_file: Path | None = Field(None, description="File with the bearer token that the engine asks for; read anew for each page.")
    probe: Path | None = Field(None, description="Folder to which the in-engine probe writes (docs/engines.md).")
    gpus: DeviceList = Field((), description="GPUs that serve it, by index or UUID; default: told from process ids.")

    @model_validator(mode="after")
    def _map_with_table(self) -> Self:
        if (self.kind == "table") != (self.map is not None):
            raise ValueError("kind: table and map go together; set both or neither")
        return self


class DcgmSettings(_Section):
    """How a DCGM host engine is reached."""

    address: str | None = Field(None, description="host:port of the host engine; default: 127.0.0.1:5555.")
    socket: Path | None = Field(None, description="Unix socket of the host engine, in place of an address.")
    bindings: Path | None = Field(None, description="Folder of DCGM's Python bindings; default: where the packages put it.")
    embedded: bool = Field(False, description="Run an engine inside this process where no host engine answers (needs root to profile).")
    profiling: bool = Field(True, description="Watch profiling fields; false for boards that do not bear it.")

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.address is not None and self.socket is not None:
            raise ValueError("address and socket exclude each other; set one")
        return self


class DcgmExporterSettings(_Section):
    """An existing dcgm-exporter to read GPUs from."""

    urls: tuple[MetricsUrl, ...] = Field((), description="Pages of dcgm-exporters; a URL without a path means /metrics.")
    utilization: Literal["auto", "ratio", "percent"] = Field(
        "auto", description="What DCGM_FI_DEV_GPU_UTIL_RATIO is; default: told from the exporter's generation."
    )


class GpuSettings(_Section):
    """How GPUs are read."""

    source: Literal["auto", "dcgm", "nvml", "dcgm-exporter", "none"] = Field("auto", description="Where GPU signals come from.")
    dcgm: DcgmSettings = DcgmSettings()
    dcgm_exporter: DcgmExporterSettings = DcgmExporterSettings()
    scope: Literal["auto", "pod", "node"] = Field(
        "auto", description="Whose the visible GPUs are: pod (a shared claim), node, or told from the engine's processes."
    )
    expected: int | None = Field(None, ge=1, description="How many GPUs should answer; default: the most that were seen.")
    pod_resources: Path | None = Field(
        None, description="Socket of the kubelet that tells which GPUs this pod has; nothing is asked without."
    )
    interval: Duration = Field(1.0, ge=0.1, le=60, description="Time between two cheap reads; 100ms is the hardware's floor.")
    slow_interval: Duration = Field(5.0, ge=1, le=600, description="Time between two reads of what is dear.")
    devices: DeviceList = Field((), description="GPUs to read, by index or UUID; default: all.")

    @model_validator(mode="after")
    def _exporter_has_urls(self) -> Self:
        if self.source == "dcgm-exporter" and not self.dcgm_exporter.urls:
            raise ValueError("dcgm-exporter needs dcgm_exporter.urls; set it to http://host:9400")
        return self


class HostSettings(_Section):
    """How the machine around the engine is read."""

    enabled: bool = Field(True, description="Read CPU, cgroup and pressure of the machine and the engine's processes.")
    interval: Duration = Field(1.0, ge=0.1, le=60, description="Time between two reads.")
    interpreter: bool = Field(False, description="Sample the engines' Python processes with py-spy (needs ptrace rights).")
    interpreter_interval: Duration = Field(1.0, ge=0.5, le=60, description="Time between two looks, each at one process.")


class PollSettings(_Section):
    """How engine pages are fetched."""

    interval: Duration = Field(1.0, ge=0.1, le=60, description="Time between two fetches of an engine's page.")
    timeout: Duration = Field(5.0, gt=0, le=60, description="Time after which a fetch is given up.")
    max_page_bytes: Size = Field(16 * 2**20, ge=2**16, description="Largest page that is read.")


class WindowSettings(_Section):
    """The short history in memory."""

    retention: Duration = Field(600.0, ge=60, le=3600, description="How far back the in-process history reaches.")


class SloSettings(_Section):
    """What users were promised; the latency symptoms compare with these."""

    time_to_first_token: Duration = Field(10.0, gt=0, description="Objective for the time to the first token.")
    inter_token_latency: Duration = Field(0.2, gt=0, description="Objective for the time between two tokens.")
    e2e_latency: Duration | None = Field(None, gt=0, description="Objective for a whole request; none by default, as answers may be long.")


class WebSettings(_Section):
    """Who may read the pages, and whether over TLS."""

    token: SecretStr | None = Field(None, min_length=8, description="Bearer token that every request but /healthz must show.")
    token_file: Path | None = Field(None, description="File that holds the token.")
    tls_cert: Path | None = Field(None, description="PEM certificate chain to serve over TLS.")
    tls_key: Path | None = Field(None, description="PEM key of the certificate.")
    compat: Literal["none", "dcgm-exporter"] = Field("none", description="Show GPU signals on /metrics also under these names.")

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key go together; set both or neither")
        if self.token is not None and self.token_file is not None:
            raise ValueError("token and token_file exclude each other; set one")
        return self


class TraceSettings(_Section):
    """Traces that engines or people leave in a folder."""

    dir: Path | None = Field(None, description="Folder whose newest trace is measured and served; none is watched without one.")
    engine: str | None = Field(None, description="Name of the engine that the traces are of; default: the only engine.")


class RecordSettings(_Section):
    """Writing what the sources read, to replay it later."""

    dir: Path | None = Field(None, description="Folder for the recording; nothing is written without one.")
    max_bytes: Size = Field(256 * 2**20, ge=2**20, description="Most bytes that recordings may take; the oldest part goes first.")
    min_free_bytes: Size = Field(512 * 2**20, ge=0, description="Writing pauses while the disk has less room than this.")


class LogSettings(_Section):
    """The log on stderr: one line per event."""

    level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least severe level that is written.")
    format: Literal["text", "json"] = Field("text", description="Lines for people or for machines.")


class RulesSettings(_Section):
    """How the catalogue is evaluated in-process."""

    window: Duration = Field(10.0, ge=5, le=300, description="Range that `[$window]` stands for in-process.")
    overrides: Mapping[str, Mapping[str, float]] = Field({}, description="Thresholds to change: rule name, threshold name, value.")


class PeakSettings(_Section):
    """Peaks of one GPU model, where the built-in table lacks it or is wrong. Dense rates, without sparsity."""

    dram_bytes_per_second: float | None = Field(None, gt=0, description="Peak DRAM bandwidth.")
    flops_per_clock_per_sm: float | None = Field(None, gt=0, description="Dense bf16 tensor-core FLOP of one SM in one clock.")


class Settings(_Section):
    """Everything that can be configured."""

    listen: Listen = Field(f":{DEFAULT_PORT}", description="Address to serve on; `:port` means all addresses.")
    engines: tuple[EngineSettings, ...] = Field((), description="Engines to watch; default: look for the well-known local ports.")
    gpu: GpuSettings = GpuSettings()
    host: HostSettings = HostSettings()
    poll: PollSettings = PollSettings()
    window: WindowSettings = WindowSettings()
    slo: SloSettings = SloSettings()
    web: WebSettings = WebSettings()
    trace: TraceSettings = TraceSettings()
    record: RecordSettings = RecordSettings()
    log: LogSettings = LogSettings()
    rules: RulesSettings = RulesSettings()
    peaks: Mapping[str, PeakSettings] = Field({}, description="Peaks by GPU model name as NVML tells it.")

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to listen on; host "" means all addresses."""
        return parse_listen(self.listen)

    @field_validator("engines")
    @classmethod
    def _distinct(cls, engines: tuple[EngineSettings, ...]) -> tuple[EngineSettings, ...]:
        for what, values in (("name", [e.name for e in engines if e.name]), ("url", [e.url.rstrip("/") for e in engines])):
            twice = next((v for i, v in enumerate(values) if v in values[:i]), None)
            if twice is not None:
                raise ValueError(f"two engines have the {what} {twice}; give each its own")
        return engines
