"""Board of layer 6: drafted tokens, and whether they pay."""

from __future__ import annotations

from typing import Final

from boards import facts
from boards.common import state_row, uid
from boards.limits import GREEN, GREY, Limit, Sign, number
from boards.panel import Board, Panel, Query, Row
from boards.promql import ENGINE_NAME, RANK, by, of_model, rate, sel, worst
from boards.variables import PLACES
from heptascope.model import Layer

_E: Final = "heptascope_engine_"
_OFF: Final = "Speculation is off, or nothing was drafted in this time."
_DRAFTED: Final = rate(_E + "spec_draft_tokens_total")
_DRAFTS: Final = rate(_E + "spec_drafts_total")
_TENSOR: Final = f"max by ({by(RANK)}) ({sel('heptascope_engine_resource_pressure_ratio', resource='tensor')})"


def _break_even() -> str:
    """Return the acceptance at which verifying costs what it yields.

    A step with k drafted tokens verifies k + 1 for each request. Of its time the share p (tensor pressure) grows with tokens, so
    without drafts it would take 1 - p k / (k + 1) of the time; drafts pay if a step yields more than that in tokens:
    1 + a k > 1 / (1 - p k / (k + 1)), which is a > p / (1 + k (1 - p)). What drafting itself costs comes on top.
    """
    p = f"clamp_max({_TENSOR}, 1)"
    k = f"sum by ({by(RANK)}) ({_DRAFTED}) / (sum by ({by(RANK)}) ({_DRAFTS}) > 0)"
    return f"{p} / (1 + ({k}) * (1 - {p}))"


def _collapsed() -> str:
    """Return the acceptance below which it has collapsed, by what it was a day before."""
    return f"{number('AcceptanceCollapsed', 'fall')} * {sel(_E + 'spec_acceptance_ratio')} offset 1d"


def _speculating(expr: str) -> str:
    """Return `expr` for engines that tell of drafts, which those do that speculate: lines of the others would only hide theirs."""
    return of_model(f"({expr})\nand on ({by(RANK)}) ({_DRAFTED} or {sel(_E + 'spec_accepted_length_tokens')})")


def _pays() -> Row:
    acceptance = Panel(
        "timeseries",
        "Acceptance against break-even",
        (
            Query(of_model(sel(_E + "spec_acceptance_ratio")), f"accepted · {ENGINE_NAME}"),
            Query(of_model(_break_even()), f"break-even of verifying · {ENGINE_NAME}", dashed=True),
            Query(of_model(_collapsed()), f"collapsed below this, by the day before · {ENGINE_NAME}", dashed=True),
        ),
        facts.unit(_E + "spec_acceptance_ratio"),
        shows="Accepted over drafted tokens, and the acceptance from which on verifying pays at the present load on the tensor cores.",
        normal="well above the dashed line; it rises with the batch, because verifying is free only while tensor cores idle.",
        act="below it speculation slows the server down: fewer drafted tokens, another drafter, or off. Acceptance alone says nothing.",
        width=8,
        signs=(Sign("AcceptanceCollapsed", "accepted below what it must not fall under by the day before"),),
        limits=(Limit("SpeculationBelowBreakEven", "acceptance", below=True),),
        top=1.0,
        empty=_OFF,
    )
    length = Panel(
        "timeseries",
        "Tokens that a step yields",
        (
            Query(of_model(sel(_E + "spec_accepted_length_tokens")), f"yielded · {ENGINE_NAME}"),
            Query(of_model(f"1 + {_DRAFTED} / ({_DRAFTS} > 0)"), f"if all were accepted · {ENGINE_NAME}", dashed=True),
        ),
        "short",
        shows="Tokens for each request and step, the one that the model itself makes included.",
        normal="2 to 4; 1 is what a step yields without speculation.",
        act="near 1: nothing is won, and drafting still costs.",
        width=8,
        empty=_OFF,
    )
    return Row("Does it pay?", ((acceptance, length, _tensor()),))


def _drafts() -> Row:
    positions = Panel(
        "timeseries",
        "Accepted at each draft position",
        (
            Query(
                of_model(
                    f"sum by ({by(RANK)}, position) ({rate(_E + 'spec_accepted_tokens_per_position_total')})"
                    f" / on ({by(RANK)}) group_left () (sum by ({by(RANK)}) ({_DRAFTS}) > 0)"
                ),
                f"position {{{{position}}}} · {ENGINE_NAME}",
            ),
        ),
        "percentunit",
        shows="Of all drafts, the share whose token at this position was accepted. Position 0 is the first.",
        normal="falling from the first to the last position.",
        act="positions under the line are drafted and verified for nothing: lower num_speculative_tokens to those above it.",
        width=8,
        limits=(Limit("DraftPositionsUnpaid", "survival", below=True),),
        top=1.0,
        empty=_OFF,
    )
    found = f"clamp_max({_DRAFTS} / ({rate(_E + 'steps_total')} * {sel(_E + 'requests_running')} > 0), 1)"
    share = Panel(
        "timeseries",
        "Steps with a draft",
        (Query(of_model(found), ENGINE_NAME),),
        "percentunit",
        shows="Of the steps of each request, the share for which the drafter proposed something.",
        normal="90 % and more with a draft model or EAGLE; with n-grams it depends on how much the text repeats itself.",
        act="under the line the drafter finds nothing, but what speculation switches off still costs: turn it off.",
        width=8,
        limits=(Limit("SpeculationWithoutDrafts", "draft_share", below=True),),
        empty=_OFF,
    )
    tokens = Panel(
        "timeseries",
        "Drafted and accepted tokens",
        (
            Query(of_model(_DRAFTED), f"drafted · {ENGINE_NAME}"),
            Query(of_model(rate(_E + "spec_accepted_tokens_total")), f"accepted · {ENGINE_NAME}"),
            Query(_speculating(rate(_E + "generation_tokens_total")), f"generated · {ENGINE_NAME}", dashed=True),
        ),
        "count:tokens/s",
        shows="What the drafter proposes, what of it is kept, and all that is generated.",
        normal="accepted is a good part of drafted.",
        act="drafted far above generated: most of the verification is thrown away.",
        width=8,
        empty=_OFF,
    )
    return Row("What is drafted?", ((positions, share, tokens),))


def _cost() -> Row:
    enabled = Panel(
        "timeline",
        "Speculation on or off",
        (
            Query(
                f"1 + max by ({by(RANK)}) ({of_model(sel(_E + 'speculation_enabled'))})\n"
                f"and on ({by(RANK)}) {worst(20, sel(_E + 'speculation_enabled'), RANK)}",
                ENGINE_NAME,
            ),
        ),
        "short",
        shows="Whether speculative decoding is configured; of more than twenty engines, those that speculate first.",
        normal="as you meant it.",
        act="compare tokens per second and the gap between tokens with and without, at your load.",
        width=8,
        states=(("off", GREY), ("on", GREEN)),
        empty="Not known for this engine.",
    )
    step = Panel(
        "timeseries",
        facts.title(_E + "step_seconds"),
        (Query(_speculating(sel(_E + "step_seconds")), ENGINE_NAME),),
        facts.unit(_E + "step_seconds"),
        shows="Mean step, drafting and verifying included.",
        normal="somewhat longer than without speculation.",
        act="longer by more than the tokens that a step yields: it does not pay.",
        width=8,
        empty="Speculation is off, or no requests run.",
    )
    gap = Panel(
        "timeseries",
        "Host gap while drafting",
        (Query(_speculating(sel(_E + "step_host_gap_ratio")), ENGINE_NAME),),
        facts.unit(_E + "step_host_gap_ratio"),
        shows="Share of a step in which the GPU had no kernel; drafting on the host shows here.",
        normal="below 30 %.",
        act="above the line the drafter is the limit: fewer drafted tokens, or one that runs on the GPU with graphs.",
        width=8,
        limits=(Limit("SpeculationHostBound", "gap"),),
        top=1.0,
        empty="Speculation is off, no requests run, or the engine's GPUs are not known.",
    )
    return Row("What does it cost?", ((enabled, step, gap),))


def _tensor() -> Panel:
    return Panel(
        "timeseries",
        "Load on the tensor cores",
        (Query(_speculating(_TENSOR), ENGINE_NAME),),
        "percentunit",
        shows="Use of the tensor cores, of what they can reach. While it is low, verifying is nearly free.",
        normal="below the line in decode.",
        act="above it every rejected token takes the place of a real one: speculate less at large batches.",
        width=8,
        limits=(Limit("SpeculationAtLargeBatch", "tensor_pressure"), Limit("DraftPositionsUnpaid", "tensor_pressure")),
        empty="Speculation is off, no GPU here has profiling counters, or its engine is not known.",
    )


def board() -> Board:
    """Return the board."""
    return Board(
        uid(Layer.SPECULATIVE),
        "heptascope / 6 Speculative",
        "Do drafted tokens pay for what they cost?",
        (*PLACES, "engine", "gpu"),
        (state_row(Layer.SPECULATIVE), _pays(), _drafts(), _cost()),
        layer=Layer.SPECULATIVE,
    )
