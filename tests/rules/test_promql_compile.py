"""Compiling: what is refused and how it is said, and what an expression needs."""

from __future__ import annotations

import pytest

from heptascope.errors import UserError
from heptascope.rules import promql

REFUSED = [
    ("", "no expression found in input"),
    ("a >", "invalid promql query in 'a >'"),
    ("-" * 2000 + "a", "the expression is nested too deeply"),
    ("sum(a", "unclosed left parenthesis in 'sum(a'"),
    ("a +\n  " + "b " * 80, "invalid promql query in 'a + b b b b b b b b b b b b b b b b b b b b b b b b b b b b …'"),
    ("rate(a[$window])", "unexpected character inside brackets: '$'"),
    ("rate(a)", "expected type matrix in call to function 'rate', got vector"),
    ("clamp(a, 1)", "expected 3 argument(s) in call to 'clamp', got 2"),
    ("1 > 2", "comparisons between scalars must use BOOL modifier"),
    ("a and 1", "set operator 'and' not allowed in binary scalar expression"),
    ("a and on (x) group_left () b", "no grouping allowed for 'and' operation"),
    ("a * on (x) group_left (x) b", "label 'x' must not occur in ON and GROUP clause at once"),
    ("nothing_like_it(a)", "unknown function with name 'nothing_like_it'"),
    ("a[5m]", "a range vector is not a result; apply a function such as rate"),
    ("(a[5m])", "a range vector is not a result; apply a function such as rate"),
    ('"text"', "the string 'text' is not an expression"),
    ("a[5m] + 1", "binary expression must contain only scalar and instant vector types"),
    ("rate(a[5m:1m])", "subqueries are not supported"),
    ("max_over_time(rate(a[1m])[5m:10s])", "subqueries are not supported"),
    ("a @ 1700000000", "the @ modifier is not supported"),
    ("rate(a[5m] @ end())", "the @ modifier is not supported"),
    ("a + fill (0) b", "fill values are not supported"),
    ('a{x="1" or y="2"}', "`or` between matchers is not supported"),
    ('{x="1"}', "a selector needs one metric name"),
    ('{__name__=~"a|b"}', "a selector needs one metric name"),
    ('{__name__="a", __name__!="b"}', "a selector needs one metric name"),
    ('{"a.b"}', "metric name 'a.b' is not supported"),
    ('a{"b.c"="1"}', "label name 'b.c' is not supported"),
    ("sum by (__name__) (a)", "the label __name__ is not supported here"),
    ("a + ignoring (__name__) b", "the label __name__ is not supported here"),
    ('label_replace(a, "__name__", "b", "c", ".*")', "the label __name__ is not supported here"),
    ('label_replace(a, "1x", "b", "c", ".*")', "label name '1x' is not supported"),
    ('label_replace(a, "x", "b", "c", "(")', "regular expression '(' is not supported"),
    ('label_join(a, "x y", "-", "c")', "label name 'x y' is not supported"),
    ("a{x=~`b`}", "strings in backticks are not supported"),
    ("rate(a[10])", "duration '10' has no unit"),
    ("a offset 5", "duration '5' has no unit"),
    ("a > 5m", "'5m': a duration cannot stand for a number"),
    ('count_values("x", a)', "the aggregation count_values is not supported"),
    ("stdvar(a)", "the aggregation stdvar is not supported"),
    ("limitk(1, a)", "the aggregation limitk is not supported"),
    ("a atan2 b", "the operator atan2 is not supported"),
    ("histogram_fraction(0, 1, a)", "the function histogram_fraction is not supported"),
    ("predict_linear(a[5m], 60)", "the function predict_linear is not supported"),
    ("hour()", "the function hour is not supported"),
    ("sort_desc(a)", "the function sort_desc is not supported"),
    ('a{x=~"(?=b)"}', "illegal regex"),
    ('a{x=~"[[:alpha:]]"}', "regular expression '[[:alpha:]]' is not supported"),
    ('a{x=~"b++"}', "regular expression 'b++' is not supported"),
    (r'a{x=~"\\pL"}', r"regular expression '\\pL' is not supported"),
    (r'a{x=~"\\z"}', r"regular expression '\\z' is not supported"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refusals_are_one_line_with_the_place(text: str, message: str) -> None:
    """Bad syntax and whatever is not supported is a user error of one line: file, line, what."""
    with pytest.raises(UserError) as caught:
        promql.compile(text, where="rules/3-memory.yaml:12")
    line = str(caught.value)
    assert line.startswith(f"rules/3-memory.yaml:12: {message}")
    assert 1 == len(line.splitlines())


@pytest.mark.parametrize(
    "text",
    [
        'job:a:rate5m{x="[10] 5m offset 3 `"} > 1e3 # `comment` [10] 5m',
        "rate(a[1m30s] offset 500ms)",
        "SUM BY (x) (a) AND b",
        "sum(a) by (x,)",
        'a{x="1",}',
        "a{x=~'(?i:V).*'}",
    ],
)
def test_odd_but_valid_text_compiles(text: str) -> None:
    """What only looks like something unsupported, in strings, comments and names, is accepted."""
    assert text == promql.compile(text).text


def test_selectors_are_listed_once_in_order() -> None:
    """An expression says which signals it reads, with matchers, range and offset."""
    expression = promql.compile('rate(a_total{x="1"}[1m30s] offset 1m) > 0 and on (x) b unless on (x) absent(b) or b')
    a = promql.SelectorInfo("a_total", (promql.Matcher("x", "=", "1"),), 90.0, 60.0, required=False)
    b = promql.SelectorInfo("b", (), None, None, required=False)
    assert (a, b) == expression.selectors


def test_required_selectors() -> None:
    """Only what the expression cannot be decided without is required."""
    expression = promql.compile("a + b unless c or d and on () absent_over_time(e[1m])")
    assert [("a", False), ("b", False), ("c", False), ("d", False), ("e", False)] == [(s.metric, s.required) for s in expression.selectors]
    expression = promql.compile("(a > scalar(b)) and (c unless d)")
    assert [("a", True), ("b", True), ("c", True), ("d", False)] == [(s.metric, s.required) for s in expression.selectors]


@pytest.mark.parametrize(
    ("text", "known", "missing"),
    [
        ("a", "", "a"),
        ("a", "a", ""),
        ("a > 1 and b", "a", "b"),
        ("a / (b + c)", "b", "a c"),
        ("a unless b", "a", ""),
        ("a unless b", "b", "a"),
        ("a or b", "a", ""),
        ("a or b", "b", ""),
        ("a or b", "", "a b"),
        ("(a or b) and c", "a", "c"),
        ("(a and b) or (c and d)", "a b", ""),
        ("(a and b) or (c and d)", "a c", "b d"),
        ("(a unless (b or c)) or d", "", "a d"),
        ("absent(a)", "", ""),
        ("b and absent_over_time(a[1m])", "b", ""),
        ("a or vector(0)", "", ""),
        ("topk(scalar(k), a)", "a", "k"),
        ("histogram_quantile(scalar(q), rate(h_bucket[1m]))", "", "q h_bucket"),
        ("clamp(a, scalar(b), scalar(c))", "a", "b c"),
        ("a + a", "", "a"),
        ("time() > bool 1", "", ""),
    ],
)
def test_missing_signals(text: str, known: str, missing: str) -> None:
    """Missing are the selectors whose absence leaves the expression undecided; of `or` one side is enough."""
    absent = promql.compile(text).missing(lambda selector: selector.metric in known.split())
    assert missing.split() == [selector.metric for selector in absent]


@pytest.mark.parametrize(
    ("text", "known", "open_"),
    [
        ("a or b", "b", ""),
        ("a or (b unless a)", "b", "a"),
        ("a or (b unless a)", "a", ""),
        ("a or (b unless a)", "a b", ""),
        ("a or (b unless c)", "b", ""),
        ("(a and c) or (b unless c)", "b", "a c"),
        ("d and (a or (b unless on (x) rate(a[1m])))", "b d", "a"),
    ],
)
def test_a_stand_in_cannot_say_no(text: str, known: str, open_: str) -> None:
    """Where one side of an `or` only serves while the other is absent, its silence leaves open what the other would have said."""
    found = promql.compile(text).undecided(lambda selector: selector.metric in known.split())
    assert open_.split() == [selector.metric for selector in found]


def test_selectors_match_labels() -> None:
    """A selector can be asked whether it selects a series, with anchored expressions and absent labels as empty ones."""
    selector = promql.compile('a{x=~"b|c", y!="", z=""}').selectors[0]
    assert selector.matches({"x": "b", "y": "1"})
    assert not selector.matches({"x": "bb", "y": "1"})
    assert not selector.matches({"x": "b"})
    assert not selector.matches({"x": "c", "y": "1", "z": "1"})
    assert promql.compile("a").selectors[0].matches({"any": "thing"})
