"""The compile service: what is joined, remembered, stopped and given up, and its statistics."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import anygram
import numpy as np
import pytest
from anygram import _likely
from anygram._serving import Output
from anygram.serving import CompileService
from conftest import ROOT, allowed, program
from prometheus_client.parser import text_string_to_metric_families

VOCABULARY = anygram.Vocabulary.builtin()
EOS = VOCABULARY.eos[0]
LONG = json.dumps(
    {
        "dependentSchemas": {
            f"k{n}": {"required": [f"k{n + 1}"], "properties": {f"k{n}": {"minimum": n}}} for n in range(2_000)
        }
    }
)
"""Takes a second to compile, and stops as soon as it is asked to."""


def wait_for(condition: Any) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_equal_requests_compile_once() -> None:
    service = CompileService(VOCABULARY)
    source = json.dumps({"enum": [f"{n}" * 20 for n in range(2000)]})
    found: list[anygram.Constraint] = []

    def get() -> None:
        found.append(service.get("json", source).constraint)

    threads = [threading.Thread(target=get) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(constraint) for constraint in found}) == 1
    stats = service.stats
    assert stats["compiled"] == 1 and stats["hits"] + stats["joined"] == 7
    # One that ends does not know of the others.
    outputs = [Output(found[0], None) for _ in range(2)]
    outputs[0].accept(VOCABULARY.encode('"')[0])
    assert outputs[1].matcher.tokens == []


def test_the_key_has_options_and_the_vocabulary() -> None:
    service = CompileService(VOCABULARY)
    other = anygram.Vocabulary.from_tokens([b"a", b"b", None], eos=[2])
    asked: list[tuple[Any, ...]] = [({}, None), ({"lexer": "longest"}, None), ({}, other)]
    made = [service.get("regex", "a+", options, vocabulary=tokens) for options, tokens in asked]
    assert len({id(one.constraint) for one in made}) == 3 and service.stats["compiled"] == 3
    assert made[2].constraint.vocabulary is other
    again = [service.get("regex", "a+", options, vocabulary=tokens) for options, tokens in asked]
    assert [one.constraint for one in again] == [one.constraint for one in made]
    assert service.stats["hits"] == 3
    with pytest.raises(anygram.AnygramError):
        service.get("regex", "a", {"unknown": 1})


@pytest.mark.parametrize("bounds", [{"max_entries": 2}, {"max_bytes": 1}])
def test_what_is_kept_is_bounded(bounds: dict[str, int]) -> None:
    service = CompileService(VOCABULARY, **bounds)  # type: ignore[arg-type]
    first = service.get("regex", "a0").constraint
    for n in range(1, 6):
        service.get("regex", f"a{n}")
    wait_for(lambda: service.stats["entries"] == bounds.get("max_entries", 1))
    wait_for(lambda: service.stats["evicted"] == 6 - service.stats["entries"])
    assert service.get("regex", "a0").constraint is not first


def test_errors_are_remembered_and_limits_are_not() -> None:
    service = CompileService(VOCABULARY)
    for _ in range(3):
        with pytest.raises(anygram.GrammarError):
            service.get("regex", "(")
    assert service.stats["compiled"] == 1 and service.stats["remembered"] == 2
    limited = CompileService(VOCABULARY, {"limits": {"compile_steps": 1}})
    for _ in range(3):
        with pytest.raises(anygram.LimitError) as caught:
            limited.get("json", '{"type": "object"}')
        assert caught.value.name == "compile_steps"
    assert limited.stats["compiled"] == 3 and limited.stats["entries"] == 0
    service.close()
    with pytest.raises(anygram.Cancelled):
        service.get("json", "{}")
    assert service.stats["entries"] == 0


def test_a_deadline_stops_the_compilation_and_is_not_remembered() -> None:
    service = CompileService(VOCABULARY, seconds=0.05)
    for n in range(1, 3):
        with pytest.raises(anygram.LimitError) as caught:
            service.get("json", LONG)
        assert caught.value.name == "compile_seconds"
        assert service.stats["deadlines"] == n
        assert service.stats["compiling"] == service.stats["waiting"] == service.stats["entries"] == 0
    own = json.dumps({**json.loads(LONG), "x-anygram": {"compile_seconds": 0.01}})
    with pytest.raises(anygram.LimitError):
        CompileService(VOCABULARY).get("json", own)
    # The thread is free again.
    assert service.get("regex", "a", seconds=60).constraint


def test_who_leaves_does_not_stop_it_for_others() -> None:
    service = CompileService(VOCABULARY)
    source = json.dumps({"enum": [f"{n}" * 20 for n in range(4000)]})
    leaves, hurries, stays = (service.submit("json", source, seconds=s) for s in (None, 0.001, None))
    assert leaves.cancel() and not leaves.cancel() or leaves.cancelled()
    with pytest.raises(anygram.LimitError):
        hurries.result()
    assert stays.result().constraint
    assert service.stats["compiled"] == 1 and service.stats["deadlines"] == 1
    # Nobody is left: it stops, and who comes then compiles anew.
    first = service.submit("json", LONG)
    assert first.cancel()
    wait_for(lambda: service.stats["compiling"] == 0)
    with pytest.raises(anygram.Cancelled):
        service.get("json", LONG, is_aborted=lambda: True)
    assert service.stats["compiled"] == 3


def test_how_much_may_wait_is_bounded() -> None:
    service = CompileService(VOCABULARY, max_waiting=2, threads=1)
    waiting = [service.submit("json", LONG) for _ in range(2)]
    with pytest.raises(anygram.LimitError, match="2 requests wait"):
        service.get("regex", "a")
    for one in waiting:
        one.cancel()
    with pytest.raises(anygram.LimitError) as caught:
        CompileService(VOCABULARY, max_source_bytes=10).get("regex", "é" * 6)
    assert caught.value.name == "max_source_bytes"
    for wrong in ({"max_bytes": -1}, {"threads": "2"}, {"seconds": 0}, {"error_texts": 1}):
        with pytest.raises(anygram.AnygramError):
            CompileService(VOCABULARY, **wrong)  # type: ignore[arg-type]


def test_tables_are_given_up_while_masks_go_on() -> None:
    """A bound that no table fits in: all are given up at each sweep, and masks stay what they are."""
    service = CompileService(VOCABULARY, max_bytes=1)
    sources = [
        ("json", json.dumps({"type": "array", "items": {"type": "string"}})),
        ("regex", "[a-z]+(,[a-z]+)*"),
    ]
    choose = random.Random(3)
    outputs = [Output(service.get(*source).constraint, None) for source in sources * 3]
    fresh = {source: CompileService(VOCABULARY).get(*source).constraint for source in sources}
    for step in range(300):
        at = choose.randrange(len(outputs))
        output = outputs[at]
        if step % 10 == 0:
            service._sweep()
        mask = output.matcher.mask()
        expected = fresh[sources[at % 2]].matcher()
        expected.advance_all(output.matcher.tokens)
        assert (mask == expected.mask()).all()
        tokens = [token for token in allowed(mask) if token != EOS]
        if output.n_tokens > 20 or not tokens:
            outputs[at] = Output(service.get(*sources[at % 2]).constraint, None)
        else:
            output.accept(choose.choice(tokens))
    stats = service.stats
    assert stats["tables_evicted"] > 10 and stats["evicted"] > 10 and stats["leaving_bytes"] > 0
    del outputs, output
    assert service.stats["leaving_bytes"] == 0


def test_memory_stays_within_the_bound() -> None:
    """Looked at after each mask, not only when the service looks."""
    bound = 6 << 20
    service = CompileService(VOCABULARY, max_bytes=bound)
    choose = random.Random(5)
    outputs: list[Output] = []
    most = 0
    for step in range(4000):
        if step % 20 == 0:
            n = choose.randrange(60)
            properties = {f"k{n}{at}": {"type": "string", "maxLength": n} for at in range(6)}
            constraint = service.get("json", json.dumps({"properties": properties})).constraint
            outputs = [*outputs[-8:], Output(constraint, None, None, service.tick)]
        output = choose.choice(outputs)
        tokens = [token for token in allowed(output.matcher.mask()) if token != EOS]
        if tokens:
            output.accept(choose.choice(tokens))
        if step % 8 == 0:
            service.tick()
            stats = service.stats
            most = max(most, stats["bytes"] - stats["leaving_bytes"])
    assert bound // 2 < most <= bound, most
    stats = service.stats
    assert stats["tables_evicted"] > 0


PREPARED: list[tuple[str, str, str]] = [
    (
        "json",
        json.dumps(
            {
                "$defs": {"tag": {"enum": ["red", "green"]}},
                "type": "object",
                "properties": {
                    "name": {"type": "string", "minLength": 2, "maxLength": 40},
                    "when": {"type": "string", "format": "date"},
                    "count": {"type": "integer", "minimum": 3, "exclusiveMaximum": 40},
                    "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"},
                    "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
                    "value": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                },
                "required": ["name"],
            }
        ),
        '{"name": "Ada", "when": "2025-11-02", "count": 7, "code": "AB-17", "tags": ["green"], "value": 1.5}',
    ),
    ("json_object", "", '{"a": 1}'),
    ("choice", '["yes", "no"]', "no"),
    ("regex", "[a-z]+", "ab"),
]


@pytest.mark.parametrize(("kind", "source", "text"), PREPARED)
def test_masks_are_prepared_and_stay_what_they_are(kind: str, source: str, text: str) -> None:
    """The first output of a grammar looks most of its masks up, and all are those of an output without."""
    prepared, plain = CompileService(VOCABULARY), CompileService(VOCABULARY, prepared_masks=0)
    outputs = [service.get(kind, source).constraint.matcher() for service in (prepared, plain)]
    assert prepared.stats["masks_prepared"] > 0 and plain.stats["masks_prepared"] == 0
    n_masks = 0
    for token in [*VOCABULARY.encode(text), EOS]:
        masks = [output.mask() for output in outputs]
        assert (masks[0] == masks[1]).all()
        for output in outputs:
            output.advance(token)
        n_masks += 1
    stats = prepared.stats
    assert stats["masks_looked_up"] + stats["masks_computed"] == n_masks
    assert stats["masks_looked_up"] > 0 and plain.stats["masks_computed"] > stats["masks_computed"]
    few = CompileService(VOCABULARY, prepared_masks=2)
    few.get(kind, source)
    assert few.stats["masks_prepared"] in (1, 2)


GRAMMAR = """
start: statement+
statement: NAME "=" sum ";" | "if" sum "then" statement "end"
sum: item | sum "+" item
item: NAME | NUMBER | "(" sum ")" | "call" NAME "(" [sum ("," sum)*] ")"
NAME: /[a-z_]+/
NUMBER: /[0-9]+/
%ignore " "
"""
TEXT = "if (a + 17) then b = call f(a, b + 3); end total = 4 + total;"


def test_masks_are_computed_ahead_and_stay_what_they_are() -> None:
    """While the model computes; whatever is done with outputs meanwhile."""
    services = [CompileService(VOCABULARY, prepared_masks=0, work_ahead=masks) for masks in (50, 0)]
    constraints = [service.get("grammar", GRAMMAR).constraint for service in services]
    together = [Output(constraints[0], None, ahead=services[0].ahead) for _ in range(3)]
    plain = [Output(constraints[1], None) for _ in range(3)]
    masks = np.zeros((2, 3, constraints[0].mask_words), np.uint32)
    buffers = [anygram.MaskBuffer(half) for half in masks]
    tokens = VOCABULARY.encode(TEXT)
    drawn = random.Random(1)
    for step, token in enumerate([*tokens, EOS]):
        # One by one as small batches, or all at once.
        for outputs, half, buffer in zip((together, plain), masks, buffers):
            if step % 2:
                Output.fill_all(outputs, half, buffer, range(3))
            else:
                for row, output in enumerate(outputs):
                    output.fill(half, buffer, row)
        assert (masks[0] == masks[1]).all(), step
        if step < 3:
            before = services[0].stats["masks_ahead"]
            wait_for(lambda: services[0].stats["masks_ahead"] > before)  # noqa: B023
        for at in range(3):
            for output in (together[at], plain[at]):
                if drawn.random() < 0.2 and output is together[at]:
                    # What was taken back is there again, and drafts are looked at.
                    assert output.validate([token]) == 1
                    output.accept(token)
                    output.rollback(1)
                    output.copy().reset()
                output.accept(token)
    assert all(output.has_ended for output in (*together, *plain))
    computed = [service.stats["masks_computed"] for service in services]
    assert computed[0] < computed[1] and services[1].stats["masks_ahead"] == 0
    assert 'made="ahead"} 0' not in services[0].prometheus()
    for service in services:
        service.close()


def test_working_ahead_ends() -> None:
    """With the service, and where all masks are looked up none are computed ahead."""
    service = CompileService(VOCABULARY, prepared_masks=0, work_ahead=1_000_000)
    constraint = service.get("grammar", GRAMMAR).constraint
    masks = np.zeros((1, constraint.mask_words), np.uint32)
    buffer = anygram.MaskBuffer(masks)
    output = Output(constraint, None, ahead=service.ahead)
    output.fill(masks, buffer, 0)
    name = "anygram-ahead"
    wait_for(lambda: any(thread.name == name for thread in threading.enumerate()))
    # It would go on for long: it is stopped, and so are outputs that nobody asks for any more.
    output.accept(VOCABULARY.encode("i")[0])
    service.close()
    wait_for(lambda: all(thread.name != name for thread in threading.enumerate()))
    with pytest.raises(anygram.AnygramError, match="work_ahead is -1"):
        CompileService(VOCABULARY, work_ahead=-1)
    known = CompileService(VOCABULARY, prepared_masks=0, work_ahead=10)
    constraint = known.get("regex", "(ab)*").constraint
    for _ in range(3):
        warming = constraint.matcher()
        warming.mask()
        warming.advance_text("ab")
        warming.mask()
    output = Output(constraint, None, ahead=known.ahead)
    output.fill(masks, buffer, 0)
    assert output.n_new > 0  # it was the first since masks were computed
    for _ in range(6):
        output.accept(VOCABULARY.encode("a")[0])
        output.fill(masks, buffer, 0)
        output.accept(VOCABULARY.encode("b")[0])
        output.fill(masks, buffer, 0)
    assert output.n_new == 0
    known.close()


HOSTILE: list[Any] = [
    {"$ref": "#"},
    {"allOf": [{"$ref": "#"}, {"$ref": "#/allOf/0"}], "anyOf": [{"$ref": "#"}]},
    {"type": "object", "properties": {f"k{n}": {"$ref": "#"} for n in range(50)}, "required": [1, "k1", "z"]},
    {"type": "array", "items": {"$ref": "#"}, "minItems": 10**9},
    {"type": "array", "minItems": -1, "maxItems": "x", "items": 3},
    {"type": "number", "minimum": 1e308, "multipleOf": 1e-300},
    {"type": "number", "multipleOf": 1e-320, "minimum": "a"},
    {"type": "string", "minLength": 10**12, "format": 7},
    {"type": "string", "pattern": "^[\\ud800-\\udfff]$", "enum": ["\ud800"]},
    {"type": "string", "pattern": "(", "default": 3, "examples": "x"},
    {"type": "object", "patternProperties": {"(": True, "^a+$": {"pattern": "^(a|b)*c$"}}},
    {"type": [], "enum": [], "anyOf": {}, "properties": [], "required": "x", "$ref": 1},
    {"properties": {"a": True, "b": False}, "additionalProperties": {}},
    [],
    True,
    None,
    "text",
]


@pytest.mark.parametrize("schema", HOSTILE)
def test_likely_texts_of_any_schema(schema: Any) -> None:
    """Guesses are short and made without an error, whatever stands there."""
    for text in _likely.texts("json", json.dumps(schema)):
        assert len(text) < 100_000
        assert not text or json.loads(text) != schema
        text.encode()


def test_likely_texts_of_no_schema() -> None:
    for source in ("", "{", "[" * 100_000, '{"a": ' * 5000 + "1" + "}" * 5000):
        assert all(len(text) < 10_000 for text in _likely.texts("json", source))
    assert _likely.texts("choice", "{") == _likely.texts("grammar", "start: 7") == [""]
    assert _likely.texts("choice", '{"a": 1}') == ["a"]


def test_errors_show_no_text_unless_asked() -> None:
    for texts in (False, True):
        service = CompileService(VOCABULARY, error_texts=texts)
        for kind, source in (("grammar", "start: secretname"), ("json", '{"$ref":"#/secretname"}')):
            with pytest.raises(anygram.GrammarError) as caught:
                service.get(kind, source)
            assert ("secretname" in repr(caught.value.__dict__) + str(caught.value)) == texts
            assert caught.value.kind in str(caught.value) or texts


def test_statistics_in_the_format_of_prometheus(tmp_path: Path) -> None:
    file = tmp_path / "metrics.prom"
    service = CompileService(VOCABULARY, metrics_file=file, prepared_masks=0)
    constraint = service.get("regex", "(ab)+").constraint
    for _ in range(5):
        constraint.matcher().mask()
    masks = np.zeros((2, constraint.mask_words), dtype=np.uint32)
    anygram.fill_masks([constraint.matcher(), constraint.matcher()], masks)
    with pytest.raises(anygram.GrammarError):
        service.get("regex", "(")
    text = service.prometheus({"model": 'a "b"\\\n'})
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {family.type for family in families.values()} == {"counter", "gauge", "histogram"}
    samples = {
        (sample.name, *(value for name, value in sample.labels.items() if name != "model")): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert all(s.labels["model"] == 'a "b"\\\n' for f in families.values() for s in f.samples)
    assert samples["anygram_requests_total", "compiled"] == 2
    assert samples["anygram_requests_total", "errors"] == 1
    assert samples["anygram_masks_total", "looked_up"] == 6
    assert samples["anygram_masks_total", "computed"] == 1
    assert samples["anygram_mask_seconds_count",] == samples["anygram_mask_seconds_bucket", "+Inf"] == 7
    assert samples["anygram_compile_seconds_count",] == 2 and samples["anygram_compile_seconds_sum",] > 0
    assert samples["anygram_cache_bytes", "language"] > 0 and samples["anygram_cache_bytes", "tables"] > 0
    for name in ("mask", "compile"):
        buckets = [s.value for s in families[f"anygram_{name}_seconds"].samples if s.name.endswith("_bucket")]
        assert buckets == sorted(buckets)
    assert list(text_string_to_metric_families(file.read_text()))
    assert service.stats["masks_looked_up"] == 6


def test_a_child_compiles_on_threads_of_its_own() -> None:
    service = CompileService(VOCABULARY)
    service.get("regex", "a")
    at_work = service.submit("json", LONG)
    child = os.fork()
    if child == 0:
        try:
            made = service.get("regex", "b").constraint.matcher().mask().any()
            made = made and service.stats["waiting"] == 0
        except BaseException:
            os._exit(1)
        os._exit(0 if made else 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    at_work.cancel()


def test_a_short_soak() -> None:
    """Requests on 16 threads, aborted at random; python/integration/serving_soak.py says what it checks."""
    script = ROOT / "python" / "integration" / "serving_soak.py"
    done = subprocess.run(
        [sys.executable, str(script), "120"],
        env={**os.environ, "ANYGRAM_PROGRAM": str(program())},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "are those of `anygram batch`" in done.stdout
