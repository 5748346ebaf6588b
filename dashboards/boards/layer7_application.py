"""Board of layer 7: what users feel, the front end, errors."""

from __future__ import annotations

from typing import Final

from boards import facts
from boards.common import EACH_ENGINE, state_row, uid
from boards.limits import Limit, Sign, amount, number
from boards.panel import Board, Panel, Query, Row
from boards.promql import DEPLOYMENT, ENGINE_NAME, POD_NAME, RANK, by, mean, mean_of_all, named, of_model, quantile, rate, sel
from boards.variables import PLACES
from heptascope.model import Layer

_E: Final = "heptascope_engine_"
_ENGINE: Final = f"{POD_NAME} {{{{engine}}}}"
_NO_REQUESTS: Final = "No requests in this time, or the engine has no such histogram."
_PHASES: Final = ("queue_time", "prefill_time", "decode_time")


def _latency(title: str, metric: str, objective: str, rule: str, normal: str, act: str, more: tuple[str, ...] = ()) -> Panel:
    """Return quantiles of a latency with its objective."""
    objectives = of_model(f"max by ({by(RANK)}) ({sel(_E + 'slo_seconds', latency=objective)})")
    tail = number(rule, "quantile")
    return Panel(
        "timeseries",
        title,
        (
            *(Query(of_model(quantile(q, _E + metric)), f"p{float(q) * 100:.0f} · {ENGINE_NAME}") for q in dict.fromkeys((*more, tail))),
            Query(f"max by ({by(DEPLOYMENT)}) ({objectives})", "objective {{namespace}} {{workload}}", dashed=True),
        ),
        facts.unit(_E + metric),
        shows="Quantiles over each step, and the objective of each deployment.",
        normal=normal,
        act=act,
        width=8,
        signs=(Sign(rule, f"p{float(tail) * 100:.0f} above the dashed objective of its engine"),),
        empty=_NO_REQUESTS,
    )


def _feel() -> Row:
    first = _latency(
        "Time to first token",
        "time_to_first_token_seconds",
        "time_to_first_token",
        "TimeToFirstTokenHigh",
        "well below the dashed line.",
        "see the breakdown below: queue, prefill or front end.",
        ("0.5",),
    )
    gap = _latency(
        "Time between tokens",
        "inter_token_latency_seconds",
        "inter_token_latency",
        "InterTokenLatencyHigh",
        "about one step; people read at 10 to 20 tokens a second, which is 50 to 100 ms.",
        "a slow step, or prefill that starves decode: Scheduling.",
        ("0.5",),
    )
    whole = _latency(
        "Whole request",
        "e2e_latency_seconds",
        "e2e_latency",
        "EndToEndLatencyHigh",
        "time to the first token, plus the gap times the length of the answer.",
        "longer answers explain it as well as a slower server: see the lengths below.",
    )
    return Row("What do users feel?", ((first, gap, whole),))


def _breakdown() -> Row:
    means = [mean_of_all(_E + f"{phase}_seconds") for phase in _PHASES]
    outside = f"clamp_min({mean_of_all(_E + 'e2e_latency_seconds')} - ({' + '.join(means)}), 0)"
    names = ("1. queue", "2. prefill", "3. decode", "4. front end")
    parts = Panel(
        "timeseries",
        "Where a request's time goes",
        (Query(named(list(zip(names, (*means, outside), strict=True))), "{{what}}"),),
        facts.unit(_E + "e2e_latency_seconds"),
        shows=(
            "Mean of finished requests of all chosen engines between five times: arrival, queue, scheduling, first token, last token. "
            "What lies in none of the engine's phases is the front end's: tokenising, output handling."
        ),
        normal="decode is most of it; queue and front end are hardly to be seen.",
        act="queue: capacity or a cap. Prefill: long prompts, no prefix cache. Front end: see beside.",
        width=16,
        stacked=True,
        empty=_NO_REQUESTS,
    )
    front = Panel(
        "timeseries",
        "Share outside the engine",
        (Query(of_model(sel(_E + "frontend_share_ratio")), ENGINE_NAME),),
        facts.unit(_E + "frontend_share_ratio"),
        shows="Of a request's time, the share that none of the engine's phases explains.",
        normal="below 12 %.",
        act="above the line: a full API server (row about the front end), slow tokenising, grammar compilation.",
        width=8,
        limits=tuple(Limit(rule, "share") for rule in ("FrontendSaturated", "FrontendSlow", "FrontendLimit")),
        top=1.0,
        empty=_NO_REQUESTS,
    )
    return Row("Where does the time go?", ((parts, front),))


def _requests() -> Row:
    status, ended, refused = (_E + name for name in ("http_requests_total", "requests_finished_total", "requests_rejected_total"))
    answers = Panel(
        "timeseries",
        "Answers by status",
        (Query(f"sum by (status) ({rate(status)})", "{{status}}"),),
        "reqps",
        shows="HTTP answers each second, of all chosen engines.",
        normal="nearly all 2xx.",
        act="5xx: the engine's log, GPU health. 4xx: clients, most often prompts beyond the length limit.",
        width=6,
        stacked=True,
        empty="The engine does not count its HTTP answers.",
    )
    reasons = Panel(
        "timeseries",
        "How requests end",
        (
            Query(
                f'sum by (reason) ({rate(ended)})\nor label_join(sum by (reason) ({rate(refused)}), "reason", ": ", "refused", "reason")',
                "{{reason}}",
            ),
        ),
        "reqps",
        shows="Requests that ended on all chosen engines, by reason, and those that were turned away.",
        normal="stop and length; no abort, no error, none refused.",
        act="abort: clients gave up, was it too slow? Refused: the queue limit.",
        width=6,
        stacked=True,
    )
    return Row("How do requests end?", ((answers, reasons, _lost(), _attempts()),))


def _of_engine(counter: str, **fixed: str) -> str:
    return f"sum by ({by(EACH_ENGINE)}) ({rate(_E + counter, **fixed)})"


def _lost() -> Panel:
    status = _E + "http_requests_total"
    every = f"sum by ({by(EACH_ENGINE)}) ({rate(status)}) > 0"
    failed = f"sum by ({by(EACH_ENGINE)}, status) ({rate(status, status='=~4xx|5xx')}) / on ({by(EACH_ENGINE)}) group_left () ({every})"
    ended = f"({_of_engine('requests_finished_total')} > 0)"
    parts = {
        "aborted": f"{_of_engine('requests_finished_total', reason='abort')} / {ended}",
        "given up": _given_up(),
        "refused": f"{_of_engine('requests_rejected_total')} / {ended}",
    }
    return Panel(
        "timeseries",
        "Share of requests that fail",
        (
            Query(failed, f"{{{{status}}}} · {_ENGINE}"),
            Query(named(list(parts.items())), f"{{{{what}}}} · {_ENGINE}"),
        ),
        "percentunit",
        shows=(
            "Of the answers, those with an error of the server (5xx) and of the client (4xx); of the requests that ended, those that "
            "the engine counts as aborted or refused; of those with a first token, the ones that went away without being counted at all."
        ),
        normal="0.",
        act="5xx above its line wakes someone; see the runbook EngineErrors.",
        width=6,
        limits=(
            Limit("EngineErrors", "error_share", of="5xx"),
            Limit("ClientErrors", "error_share", of="4xx"),
            Limit("ClientAborts", "lost_share", of="aborted or given up"),
            Limit("Rejections", "rejected_share", of="refused"),
        ),
        empty="No request failed, or the engine counts neither answers nor endings.",
    )


def _given_up() -> str:
    """Return the share of requests that had a first token, run no longer and never ended, as ClientAborts works it out."""

    def summed(function: str, series: str) -> str:
        return f"sum by ({by(EACH_ENGINE)}) ({function}({sel(_E + series)}[$__rate_interval]))"

    begun = summed("increase", "time_to_first_token_seconds_count")
    waiting = f"clamp_min({summed('delta', 'requests_waiting')}, 0)"
    left = f"{begun} - {summed('increase', 'requests_finished_total')} - {summed('delta', 'requests_running')} - {waiting}"
    return f"clamp_min({left}, 0) / ({begun} > {number('ClientAborts', 'requests')})"


def _attempts() -> Panel:
    return Panel(
        "timeseries",
        "Answers for each finished request",
        (Query(f"{_of_engine('http_requests_total')} / ({_of_engine('requests_finished_total')} > 0)", _ENGINE),),
        "short",
        shows="HTTP answers of the engine over the requests that it finished.",
        normal="1, and a little more where clients ask for the list of models.",
        act="above the line with failures beside it clients try again and add load: let them wait longer between attempts.",
        width=6,
        limits=(Limit("RetriesAndTimeouts", "attempts", unit="", of="with answers that fail,"),),
        empty="No request finished, or the engine does not count its HTTP answers.",
    )


def _front() -> Row:
    cores = Panel(
        "timeseries",
        "CPU of the API server",
        (
            Query(
                f"max by ({by(EACH_ENGINE)}) ({rate('heptascope_host_process_cpu_seconds_total', role='api_server')})",
                _ENGINE,
            ),
        ),
        "short",
        shows="Cores used by the busiest API server process. Its event loop is one thread: 1 is full.",
        normal="below 0.5.",
        act="at the line: more API servers (--api-server-count), fewer stream events, tokenising elsewhere.",
        width=8,
        limits=(Limit("FrontendSaturated", "cores", unit=""),),
        empty="The engine's processes are not visible here (share the PID namespace).",
    )
    lengths = Panel(
        "timeseries",
        "Length of requests",
        (
            Query(
                named([("prompt", mean(_E + "prompt_length_tokens")), ("answer", mean(_E + "generation_length_tokens"))]),
                f"{{{{what}}}} · {ENGINE_NAME}",
            ),
        ),
        "short",
        shows="Mean length of finished requests, in tokens.",
        normal="yours; remember it.",
        act="a change of length changes every latency without any fault.",
        width=8,
        empty=_NO_REQUESTS,
    )
    return Row("Front end and clients", ((cores, _between(), lengths),))


def _between() -> Panel:
    gaps = f"sum by ({by(EACH_ENGINE)}) ({rate(_E + 'inter_token_latency_seconds_sum')})"
    there = " + ".join(f"sum by ({by(EACH_ENGINE)}) ({sel(_E + what)})" for what in ("requests_running", "requests_waiting"))
    return Panel(
        "timeseries",
        "Waiting for a token, per request",
        (Query(f"{gaps} / ({there} > 0)", _ENGINE),),
        "short",
        shows=(
            "Time between tokens that passes in a second, added up over all streams, for each request that runs or waits: "
            "more than a second for each second cannot pass in the engine."
        ),
        normal="near 1 in steady decode, less with prefill.",
        act="above the line tokens wait outside the engine, on their way to the client: more API servers, larger chunks in the stream.",
        width=8,
        limits=(Limit("OutputBacklog", "factor", unit=""),),
        empty="No tokens in this time, or the engine has no histogram of them.",
    )


def _more() -> Row:
    lag = Panel(
        "timeseries",
        "Front end: event loop and tokeniser",
        (
            Query(
                named(
                    [
                        ("event loop late by", mean(_E + "frontend_event_loop_lag_seconds")),
                        ("one call of the tokeniser", mean(_E + "frontend_tokenize_seconds")),
                    ]
                ),
                f"{{{{what}}}} · {ENGINE_NAME}",
            ),
        ),
        facts.unit(_E + "frontend_event_loop_lag_seconds"),
        shows="Means of how late a timer runs in the event loop of the front end, and of how long tokenising one prompt takes.",
        normal="a millisecond or two; tokenising takes 1 ms for a thousand tokens.",
        act="above the line every stream waits: py-spy dump of the API server names the call that blocks.",
        width=8,
        limits=(Limit("EventLoopBlocked", "seconds", unit="seconds"),),
        empty="Needs the in-engine probe, or a front end that tells it.",
    )
    deferred = Panel(
        "timeseries",
        facts.title(_E + "requests_deferred"),
        (
            Query(of_model(sel(_E + "requests_deferred")), ENGINE_NAME),
            Query(
                of_model(
                    f"{number('AdapterSwitching', 'running_share')} * {sel(_E + 'requests_running')}"
                    f" and on ({by(RANK)}) {sel(_E + 'requests_deferred')} > {number('AdapterSwitching', 'deferred')}"
                ),
                f"{amount('AdapterSwitching', 'running_share')} of running · {ENGINE_NAME}",
                dashed=True,
            ),
        ),
        "short",
        shows=(
            "Waiting requests that are held back for another cause than room: an adapter slot, a KV transfer, a grammar; "
            "and, where there are any, the share of the running ones from which on that is too many."
        ),
        normal="0.",
        signs=(Sign("AdapterSwitching", "deferred above the dashed line of its engine"),),
        act="more adapter slots (--max-loras), or fewer adapters per server.",
        width=8,
        empty="The engine does not tell why requests wait.",
    )
    quantiles = f'label_join({sel(_E + "latency_quantile_seconds")}, "what", " q", "latency", "q")'
    means = f"{rate(_E + 'latency_seconds_total')} / ({rate(_E + 'latency_observations_total')} > 0)"
    told = f'label_join({sel(_E + "recent_latency_seconds")} or {means}, "what", "", "latency")'
    others = Panel(
        "timeseries",
        "Latencies of engines without histograms",
        (Query(f"{quantiles} or {told}", f"{{{{what}}}} · {ENGINE_NAME}"),),
        facts.unit(_E + "recent_latency_seconds"),
        shows="What an engine tells without buckets: quantiles of its own, the latest mean, or the mean of a sum.",
        normal="as for the panels above; a mean hides the slowest requests.",
        act="no objective can be watched on these; put a gateway with histograms in front.",
        width=8,
        empty="Every engine here has histograms, or none tells such a latency.",
    )
    return Row("What only some engines tell", ((lag, deferred, others),), collapsed=True)


def board() -> Board:
    """Return the board."""
    return Board(
        uid(Layer.APPLICATION),
        "heptascope / 7 Application",
        "What do users feel, and where does a request's time go?",
        (*PLACES, "engine", "gpu"),
        (state_row(Layer.APPLICATION), _feel(), _breakdown(), _requests(), _front(), _more()),
        layer=Layer.APPLICATION,
    )
