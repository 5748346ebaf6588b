"""Reading the catalogue: what is right in the shipped one, and one clear line for each thing that can be wrong in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from heptascope.errors import UserError
from heptascope.model import Layer, RuleKind
from heptascope.rules import promql
from heptascope.rules.diagnose import STEP_RESOURCES
from heptascope.rules.load import FOLDER, load, load_folder
from heptascope.rules.rule import TOPICS
from support.rule_cases import RULES

GOOD = """\
rules:
  - rule: Full
    layer: memory
    topic: capacity
    kind: fault
    entity: engine
    expr: heptascope_engine_kv_cache_usage_ratio > $full
    thresholds: {full: 0.9}
    source: {full: a guess}
    summary: It is full.
    evidence: [heptascope_engine_kv_cache_usage_ratio > full]
"""


def catalogue(folder: Path, text: str = GOOD, name: str = "3-memory.yaml") -> Path:
    """Write one file into a folder; return the folder."""
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def refusal(folder: Path) -> str:
    """Return the one line with which a folder is refused, without the folder's name."""
    with pytest.raises(UserError) as caught:
        load_folder(folder)
    line = str(caught.value)
    assert 1 == len(line.splitlines())
    return line.replace(f"{folder}/", "").replace(str(folder), "FOLDER")


def edited(old: str, new: str) -> str:
    """Return the good file with one change."""
    assert 1 == GOOD.count(old)
    return GOOD.replace(old, new)


def test_a_good_file() -> None:
    """What is left out has its default: guard and severity, a minute's hold, inferred confidence."""
    (rule,) = (r for r in load() if r.name == "KVCacheExhausted")
    assert ("engine", "warning", 60.0, RuleKind.FAULT, Layer.MEMORY) == (rule.guard, rule.severity, rule.hold, rule.kind, rule.layer)


def test_defaults(tmp_path: Path) -> None:
    """A rule that says no more than it must is read."""
    (rule,) = load_folder(catalogue(tmp_path))
    assert ("3-memory.yaml:2", "engine", 60.0, (), "inferred") == (rule.where, rule.guard, rule.hold, rule.actions, rule.confidence)


@pytest.mark.parametrize(
    ("old", "new", "where", "message"),
    [
        ("    topic: capacity\n", "", 2, "key 'topic' is missing"),
        ("topic: capacity", "topic: aborts", 4, "topic 'aborts' is not allowed; use one of: capacity, preemption,"),
        ("layer: memory", "layer: kv", 3, "layer 'kv' is not allowed; use one of: hardware, operator,"),
        ("kind: fault", "kind: alert", 5, "kind 'alert' is not allowed; use one of: limiter, fault, symptom"),
        ("entity: engine", "entity: pod", 6, "entity 'pod' is not allowed; use one of: engine, gpu"),
        ("source: {full: a guess}", "source: {}", 9, "source must say where each threshold comes from: full"),
        ("    source: {full: a guess}\n", "", 2, "source must say where each threshold comes from: full"),
        ("{full: 0.9}", "{full: high}", 8, "thresholds must be `name: number` or `name: OtherRule.threshold` lines"),
        ("{full: 0.9}", "{full: true}", 8, "thresholds must be `name: number` or `name: OtherRule.threshold` lines"),
        ("{full: 0.9}", "[0.9]", 8, "thresholds must be `name: number` or `name: OtherRule.threshold` lines"),
        ("> $full", "> 0.9", 8, "threshold 'full' is not used in the expression"),
        ("> $full", "> $ful + $full", 7, "placeholder $ful is no threshold of this rule"),
        ("summary: It is full.", "summary: ''", 10, "summary must be text"),
        ("ratio > full]", "ratoi > full]", 11, "unknown signal heptascope_engine_kv_cache_usage_ratoi; did you mean"),
        (
            "[heptascope_engine_kv_cache_usage_ratio > full]",
            "[heptascope_qqqqqqqqqqqqqqqqqqqqqq]",
            11,
            "unknown signal heptascope_qqqqqqqqqqqqqqqqqqqqqq; see the signal table",
        ),
        ("ratio > full]", "ratio > empty]", 11, "unknown threshold 'empty'; this rule has: full"),
        ("ratio > full]", "ratio over full]", 11, "cannot read evidence"),
    ],
)
def test_one_line_for_each_fault(tmp_path: Path, old: str, new: str, where: int, message: str) -> None:
    """Each mistake is told with file and line, what is wrong, and what is allowed."""
    line = f"3-memory.yaml:{where}: rule Full: {message}"
    assert line == refusal(catalogue(tmp_path, edited(old, new)))[: len(line)]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("explain: []", "unknown key 'explain'; did you mean 'explains'?"),
        ("zzz: 1", "unknown key 'zzz'; allowed: rule, layer, topic, kind,"),
        ("for: soon", "cannot read duration 'soon'; write 30s, 5m or 1h"),
        ("for: 90", "cannot read duration 90; write 30s, 5m or 1h"),
        ("actions: [{when: nobody, do: x}]", "cannot read action {'when': 'nobody', 'do': 'x'}; write {when: any|vllm|"),
        ("actions: [{when: any}]", "cannot read action {'when': 'any'}; write {when: any|vllm|"),
        ("actions: no", "actions must be a list"),
        ("explains: no", "explains must be a list"),
        ("gain: {expr: '1'}", "gain must be {expr: PromQL of a ratio, text: what it is a share of}"),
        ("severity: page", "severity 'page' is not allowed; use one of: critical, warning, info"),
        ("guard: pod", "guard 'pod' is not allowed; use one of: engine, gpu, none"),
        ("confidence: sure", "confidence 'sure' is not allowed; use one of: direct, inferred, weak"),
    ],
)
def test_one_line_for_each_wrong_key(tmp_path: Path, key: str, message: str) -> None:
    """A key that is wrong in itself is told at its own line."""
    line = f"3-memory.yaml:6: rule Full: {message}"
    assert line == refusal(catalogue(tmp_path, edited("    kind: fault\n", f"    kind: fault\n    {key}\n")))[: len(line)]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("rule: Full", "rule: is full", "3-memory.yaml:2: rule is full: a rule's name is CamelCase letters and digits"),
        ("    kind: fault\n", "    kind: fault\n    kind: fault\n", "3-memory.yaml:6: key 'kind' is here twice, first on line 5"),
        ("rules:", "rule:", "3-memory.yaml:1: the file must hold one key, `rules`, with a list"),
        ("  - rule: Full\n", "  - Full\n  - rule: Full\n", "3-memory.yaml:2: rule ?: a rule must be a mapping that starts with"),
        ("rules:", "rules: [", "3-memory.yaml:2: not valid YAML:"),
        (
            "    kind: fault\n",
            "    kind: fault\n    explains: [Ful]\n",
            "3-memory.yaml:2: rule Full: explains an unknown rule 'Ful'; did you",
        ),
        (
            "    kind: fault\n",
            "    kind: fault\n    explains: [Full]\n",
            "3-memory.yaml:2: rules explain each other in a circle: Full -> Full;",
        ),
    ],
)
def test_one_line_for_each_misshapen_file(tmp_path: Path, old: str, new: str, line: str) -> None:
    """So is what is wrong with a name, with the file, or between rules."""
    assert line == refusal(catalogue(tmp_path, edited(old, new)))[: len(line)]


def test_a_rule_in_the_wrong_file(tmp_path: Path) -> None:
    """A layer's rules stand in that layer's file."""
    assert "4-scheduling.yaml:3: rule Full: a rule of layer memory does not belong into 4-scheduling.yaml" == refusal(
        catalogue(tmp_path, name="4-scheduling.yaml")
    )


def test_a_rule_twice(tmp_path: Path) -> None:
    """A name stands for one rule; the other one's place is told."""
    twice = GOOD + GOOD.removeprefix("rules:\n")
    assert "3-memory.yaml:12: rule Full: there is another rule of this name, at 3-memory.yaml:2" == refusal(catalogue(tmp_path, twice))


def test_a_circle_through_several_rules(tmp_path: Path) -> None:
    """The whole circle is shown."""
    body = GOOD.removeprefix("rules:\n")
    chain = [
        body.replace("Full", a).replace("kind: fault", f"kind: fault\n    explains: [{b}]")
        for a, b in (("Aa", "Bb"), ("Bb", "Cc"), ("Cc", "Aa"))
    ]
    assert "rules explain each other in a circle: Aa -> Bb -> Cc -> Aa; remove one of these edges" in refusal(
        catalogue(tmp_path, "rules:\n" + "".join(chain))
    )


def test_no_files(tmp_path: Path) -> None:
    """A folder without rules is no catalogue."""
    assert "FOLDER: no rule files (*.yaml) here" == refusal(tmp_path)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A file that is no text is told as that."""
    (tmp_path / "3-memory.yaml").write_bytes(b"\xff\xfe\x00rules")
    assert refusal(tmp_path).startswith("3-memory.yaml: cannot read the file")


# the catalogue that ships


def test_every_layer_has_rules() -> None:
    """Seven files, one for each layer, and rules in each."""
    assert [f"{i}-{layer.value}.yaml" for i, layer in enumerate(Layer, 1)] == sorted(path.name for path in FOLDER.glob("*.yaml"))
    assert set(Layer) == {rule.layer for rule in RULES.values()}


def test_every_rule_compiles_for_the_process_and_for_prometheus() -> None:
    """Conditions and gains are PromQL with short windows, with minutes, and with the labels of a pod in front."""
    pod = "cluster, namespace, pod, job, instance"
    for rule in RULES.values():
        for text in (rule.text("10s"), rule.text("5m"), rule.text("5m", pod), *((rule.fill(rule.gain, "10s"),) if rule.gain else ())):
            assert "$" not in text
            promql.compile(text, where=rule.where)


@pytest.mark.parametrize("name", RULES)
def test_what_a_rule_owes_its_reader(name: str) -> None:
    """A fault says what to do, each threshold where it comes from, a topic is of its layer, a summary is a sentence."""
    found = RULES[name]
    assert found.topic in TOPICS[found.layer]
    assert found.summary.endswith(".")
    assert found.evidence
    assert found.actions or found.kind is not RuleKind.FAULT
    assert all(found.source[name].strip() for name in found.thresholds)


def test_a_limiter_explains_only_limiters_and_never_the_other_way() -> None:
    """Two graphs in one: limiters rank among themselves, faults and symptoms explain each other; symptoms explain no fault."""
    for rule in RULES.values():
        kinds = {RULES[other].kind for other in rule.explains}
        assert kinds <= ({RuleKind.LIMITER} if rule.kind is RuleKind.LIMITER else {RuleKind.FAULT, RuleKind.SYMPTOM})
        assert rule.kind is not RuleKind.SYMPTOM or RuleKind.FAULT not in kinds


def test_every_symptom_has_causes() -> None:
    """Each symptom is explained by several faults, of several layers."""
    for name in (n for n, r in RULES.items() if r.kind is RuleKind.SYMPTOM):
        layers = {rule.layer for rule in RULES.values() if name in rule.explains}
        assert len(layers) >= 4, name


def test_each_resource_of_a_step_has_its_limiter() -> None:
    """Whether a load is light is read from the limiters whose evidence is the pressure on DRAM, tensor cores and host."""
    limiters = [rule for rule in RULES.values() if rule.kind is RuleKind.LIMITER]
    found = {r: [x.name for x in limiters if any(item.only == ("resource", r) for item in x.evidence)] for r in STEP_RESOURCES}
    assert {"dram": ["DramBandwidthLimit"], "tensor": ["TensorComputeLimit"], "host": ["HostStepLimit"]} == found


def test_a_limiter_that_can_be_mended_has_a_fault() -> None:
    """For every limiter that makes requests wait on something that can be changed there is a fault of the same topic."""
    faults = {(rule.layer, rule.topic) for rule in RULES.values() if rule.kind is RuleKind.FAULT}
    wanted = {"sequence-cap", "capacity", "launch", "frontend", "bubble", "straggler", "host-step"}
    topics = {rule.topic: rule.layer for rule in RULES.values() if rule.kind is RuleKind.LIMITER and rule.topic in wanted}
    assert wanted == set(topics)
    assert {(layer, topic) for topic, layer in topics.items()} <= faults
