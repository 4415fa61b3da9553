"""Languages, vocabularies, constraints and outputs."""

from __future__ import annotations

import copy
import json
import os
import pickle
import signal
import threading

import anygram
import numpy
import pytest
from conftest import TOKENS, allowed


def test_an_output_step_by_step(constraint: anygram.Constraint) -> None:
    matcher = constraint.matcher()
    assert allowed(matcher.mask()) == [0, 2, 4]
    matcher.advance(4)
    matcher.advance_all([2, 1])
    assert (matcher.tokens, matcher.text, matcher.is_sentence) == ([4, 2, 1], b"((x)", False)
    assert allowed(matcher.mask()) == [1]
    matcher.advance(numpy.int64(1))
    assert matcher.is_sentence
    assert allowed(matcher.mask()) == [5]
    matcher.advance(5)
    assert matcher.has_ended
    assert allowed(matcher.mask()) == [5, 6]
    matcher.rollback(3)
    assert (matcher.tokens, matcher.has_ended) == ([4, 2], False)
    matcher.reset()
    assert matcher.tokens == []


def test_the_mask_has_one_bit_for_each_token(constraint: anygram.Constraint) -> None:
    mask = constraint.matcher().mask()
    assert (mask.dtype, mask.shape) == (numpy.dtype("uint32"), (constraint.mask_words,))
    assert mask.flags.writeable


def test_forks_are_independent(constraint: anygram.Constraint) -> None:
    matcher = constraint.matcher()
    matcher.advance(0)
    for fork in (matcher.fork(), copy.copy(matcher), copy.deepcopy(matcher)):
        fork.advance(2)
        assert (fork.tokens, matcher.tokens) == ([0, 2], [0])


def test_a_refusal_says_why(constraint: anygram.Constraint) -> None:
    matcher = constraint.matcher()
    matcher.advance(0)
    with pytest.raises(anygram.RefusedError) as caught:
        matcher.advance(3)
    error = caught.value
    assert (error.token, error.byte, error.offset, error.accepted_bytes) == (3, ord(")"), 2, 1)
    assert error.expected == ['"("', '"x"']
    assert (error.could_end, error.has_ended, error.kind) == (False, False, "refused")
    assert isinstance(error, ValueError)
    assert matcher.tokens == [0]


def test_a_refusal_in_a_schema_says_where() -> None:
    items = {"items": {"type": "integer"}, "uniqueItems": True}
    schema = {"type": "object", "properties": {"a": items}}
    tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": schema}}
    vocabulary = anygram.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(32, 127)), None], eos=[95])
    compiler = anygram.Compiler()
    languages = [
        (compiler.compile(json.dumps(schema), "json-schema"), b"", ""),
        (compiler.compile(f"start: /[a-z]/ %json {json.dumps(schema)}", "lark"), b"x", ""),
        (compiler.compile(json.dumps(tag), "structural-tag"), b"", "/format/json_schema"),
    ]
    for language, before, place in languages:
        matcher = anygram.Constraint(language, vocabulary).matcher()
        for text, pointer, key in [
            (b'{"a":[1,x', "/a/1", None),
            (b'{"a":[1,1]', "/a/1", None),
            (b'{"a":[],"a"', "", "a"),
        ]:
            ids = [byte - 32 for byte in before + text]
            matcher.go_to(ids[:-1])
            with pytest.raises(anygram.RefusedError) as caught:
                matcher.advance(ids[-1])
            error = caught.value
            assert (error.pointer, error.schema, error.repeated_key) == (pointer, place, key)
            assert error.repeats == (b"x" not in text)
            assert f"at {pointer or 'the root'}" in str(error)
            span = (15, 15 + len("%json ") + len(json.dumps(schema)))
            assert error.schema_span == (span if before else None)
            assert pickle.loads(pickle.dumps(error)).pointer == pointer
            for refuse in (matcher.advance_all, matcher.go_to):
                matcher.reset()
                with pytest.raises(anygram.RefusedError) as caught:
                    refuse(ids)
                assert (caught.value.pointer, caught.value.repeated_key) == (pointer, key)
            matcher.reset()
    with pytest.raises(anygram.RefusedError) as outside:
        anygram.Constraint(languages[1][0], vocabulary).matcher().advance(0)
    assert (outside.value.pointer, outside.value.schema) == (None, None)


def test_several_tokens(constraint: anygram.Constraint) -> None:
    matcher = constraint.matcher()
    assert matcher.validate([0, 2, 2]) == 2
    assert matcher.try_advance([0, 2, 2]) == 2
    with pytest.raises(anygram.RefusedError):
        matcher.advance_all([1, 2])
    assert matcher.tokens == [0, 2]
    matcher.go_to([4, 2])
    assert matcher.tokens == [4, 2]


def test_budgets_and_what_is_forced(constraint: anygram.Constraint) -> None:
    matcher = constraint.matcher()
    assert allowed(matcher.mask(budget=1)) == [2]
    assert allowed(matcher.mask(budget=3)) == [0, 2]
    assert matcher.minimum_tokens() == 1
    matcher.advance_all([0, 2])
    assert (matcher.forced().bytes, matcher.must_stop()) == (b")", False)
    assert matcher.minimum_tokens(0) is None
    assert matcher.expected() == ['")"']
    assert matcher.stats["found"] >= 0


def test_eos_of_one_output() -> None:
    vocabulary = anygram.Vocabulary.from_tokens([b"x", None, None], eos=[1])
    constraint = anygram.Constraint(anygram.Compiler().compile('start: "x"', "lark"), vocabulary)
    matcher = constraint.matcher(eos=[2])
    matcher.advance(0)
    assert (matcher.eos, allowed(matcher.mask())) == ((2,), [2])
    assert allowed(matcher.fork().mask()) == [2]
    with pytest.raises(anygram.AnygramError, match="token 0"):
        constraint.matcher(eos=[0])


@pytest.mark.parametrize(
    "call",
    [
        lambda matcher: matcher.advance(-1),
        lambda matcher: matcher.advance(1 << 40),
        lambda matcher: matcher.advance(7),
        lambda matcher: matcher.rollback(1),
        lambda matcher: matcher.rollback(-1),
        lambda matcher: matcher.mask(budget=-1),
        lambda matcher: matcher.validate([0, 99]),
        lambda matcher: matcher.advance_text("y"),
        lambda matcher: matcher.advance_text("\ud800"),
    ],
)
def test_values_that_cannot_be_are_typed_errors(constraint: anygram.Constraint, call: object) -> None:
    assert callable(call)
    matcher = constraint.matcher()
    with pytest.raises(anygram.AnygramError):
        call(matcher)
    assert matcher.tokens == []


@pytest.mark.parametrize("token", [None, "x", 1.0, b"x"])
def test_other_types_are_type_errors(constraint: anygram.Constraint, token: object) -> None:
    with pytest.raises(TypeError):
        constraint.matcher().advance(token)  # type: ignore[arg-type]


def test_grammar_errors_have_a_place() -> None:
    with pytest.raises(anygram.GrammarError) as caught:
        anygram.Compiler().compile("start: A\nA: /(/\n", "lark")
    error = caught.value
    assert error.line == 2
    assert error.kind == "syntax"
    assert "A: /(/" in str(error) and "here" in str(error)
    assert "\n" not in error.message
    with pytest.raises(anygram.GrammarError) as caught:
        anygram.Compiler().compile("start: nowhere", "lark")
    assert (caught.value.line, caught.value.column, caught.value.span) == (1, 8, (7, 14))


def test_schema_errors_have_a_pointer() -> None:
    with pytest.raises(anygram.GrammarError) as caught:
        anygram.Compiler().compile({"properties": {"a": {"type": "number", "minimum": "x"}}}, "json-schema")
    assert (caught.value.line, caught.value.pointer) == (None, "/properties/a/minimum")


def test_limits_say_which() -> None:
    with pytest.raises(anygram.LimitError) as caught:
        anygram.Compiler(limits={"dfa_states": 10}).compile("[ab]*a[ab]{9}c", "regex")
    assert (caught.value.name, caught.value.value) == ("dfa_states", 10)
    with pytest.raises(anygram.AnygramError, match="dfa_states"):
        anygram.Compiler(limits={"nothing": 1})


@pytest.mark.parametrize(
    "options",
    [
        {"lexer": "greedy"},
        {"ties": "x"},
        {"engine": "x"},
        {"whitespace": 3},
        {"key_order": "x"},
        {"limits": {"x": -1}},
    ],
)
def test_options_that_there_are_not(options: dict[str, object]) -> None:
    with pytest.raises(anygram.AnygramError):
        anygram.Compiler(**options)  # type: ignore[arg-type]


def test_options_of_the_compiler() -> None:
    compiler = anygram.Compiler("scannerless", ties="first", engine="earley", whitespace="compact")
    language = compiler.compile('list: "a" ("," "a")*', "lark", start="list")
    assert (language.lexer, language.engine, language.format) == ("scannerless", "earley", "lark")
    reading = language.read("a,a")
    assert (reading.is_sentence, reading.is_viable, reading.length) == (True, True, 3)
    assert language.read(b"a,,").expected == ['"a"']
    assert "start" not in language.source
    assert language.warnings == []
    compact = anygram.Compiler(whitespace="compact").compile({"type": "array"}, "json-schema")
    assert not compact.read("[ ]").is_sentence
    with pytest.raises(TypeError):
        anygram.Compiler().compile({"type": "array"}, "lark")
    with pytest.raises(anygram.AnygramError, match="json-schema"):
        anygram.Compiler().compile("x", "yaml")


def test_vocabularies_of_tokens(vocabulary: anygram.Vocabulary) -> None:
    assert (len(vocabulary), vocabulary.eos, vocabulary.pad, vocabulary.mask) == (len(TOKENS), (5,), 6, None)
    assert [vocabulary.bytes(id) for id in range(len(vocabulary))] == TOKENS
    assert (vocabulary.encode("((x"), vocabulary.decode([4, 2])) == ([4, 2], b"((x")
    assert vocabulary.is_special(5) and not vocabulary.is_special(0)
    named = anygram.Vocabulary.from_tokens([b"a"], eos=[2], names={1: "<|call|>"})
    assert (len(named), named.name(1), named.special("<|call|>")) == (3, "<|call|>", 1)
    assert named.fingerprint != vocabulary.fingerprint
    with pytest.raises(anygram.VocabularyError):
        vocabulary.encode("y")
    with pytest.raises(anygram.VocabularyError):
        vocabulary.decode([99])
    with pytest.raises(TypeError):
        anygram.Vocabulary.from_tokens(["a"])  # type: ignore[list-item]


def test_a_grammar_names_special_tokens() -> None:
    language = anygram.Compiler().compile("start: <|call|> /[a-z]/", "lark")
    vocabulary = anygram.Vocabulary.from_tokens([b"a", None, None], eos=[2], names={1: "<|call|>"})
    matcher = anygram.Constraint(language, vocabulary).matcher()
    assert allowed(matcher.mask()) == [1]
    with pytest.raises(anygram.GrammarError, match="call"):
        anygram.Constraint(language, anygram.Vocabulary.from_tokens([b"a"]))


def test_drafts(constraint: anygram.Constraint) -> None:
    matcher = constraint.matcher()
    out = numpy.full((4, 2), 7, dtype=numpy.uint32)
    assert matcher.fill_drafts(out, 1, [0, 2, 2]) == [True, True, False]
    assert [allowed(row) for row in out[1:]] == [[0, 2, 4], [1], []]
    assert out[0].tolist() == [7, 7]
    assert matcher.fill_drafts(out, 0, [0, 2, 4], [-1, 0, None]) == [True, True, True]
    assert matcher.tokens == []
    for parents in ([0], [0, 1, 2], [None, 5, 0], [-2, 0, 0]):
        with pytest.raises(anygram.AnygramError):
            matcher.fill_drafts(out, 0, [0, 2, 4], parents)


def compile_for_ever(cancel: anygram.Cancel | None = None) -> None:
    """Millions of states, and no limit."""
    compiler = anygram.Compiler(limits=dict.fromkeys(["dfa_states", "nfa_states", "compile_steps"], 1 << 60))
    compiler.compile("[ab]*a[ab]{22}c", "regex", cancel=cancel)


def test_interrupts_stop_compiling() -> None:
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    # A shell without job control starts what runs in the background with the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            compile_for_ever()
            # If a limit or the end was reached first, the signal is still to come.
            timer.join()
    finally:
        signal.signal(signal.SIGINT, before)


def test_cancel_stops_compiling() -> None:
    later = anygram.Cancel()
    timer = threading.Timer(0.2, later.cancel)
    timer.start()
    with pytest.raises(anygram.Cancelled):
        compile_for_ever(later)
    cancel = anygram.Cancel()
    cancel.cancel()
    assert cancel.is_cancelled
    with pytest.raises(anygram.Cancelled):
        anygram.Compiler().compile('start: "x"', "lark", cancel=cancel)


def test_a_dialect_of_lark() -> None:
    source = 'start: "a" "b"\n%ignore " "'
    assert anygram.Compiler().compile(source).read(" ab").is_sentence
    language = anygram.Compiler(dialect="llguidance").compile(source)
    assert not language.read(" ab").is_sentence
    assert language.read("a b").is_sentence
    with pytest.raises(anygram.AnygramError):
        anygram.Compiler(dialect="yacc")  # type: ignore[arg-type]


def test_grammars_with_names() -> None:
    made = anygram.Compiler(named={"word": "start: /[a-z]+/", "age": {"type": "integer"}})
    language = made.compile('start: @word "=" @age')
    assert language.read("ada=36").is_sentence and not language.read("ada=x").is_viable
    again = pickle.loads(pickle.dumps(language))
    assert again.read("ada=36").is_sentence
    with pytest.raises(anygram.GrammarError, match="name"):
        anygram.Compiler().compile("start: @word")


def test_work_ahead_changes_no_mask() -> None:
    language = anygram.Compiler().compile('start: "(" start ")" | /[a-z]+/ | NUMBER\nNUMBER: /[0-9]+/', "lark")
    vocabulary = anygram.Vocabulary.builtin()
    times = anygram.MaskTimes()
    ahead = anygram.Constraint(language, vocabulary, times=times).matcher()
    alone = anygram.Constraint(language, vocabulary).matcher()
    assert 1 < ahead.work_ahead(masks=50) <= 50
    assert ahead.tokens == []
    for token in vocabulary.encode("((12))"):
        assert numpy.array_equal(ahead.mask(), alone.mask())
        ahead.advance(token)
        alone.advance(token)
    assert times.looked_up > 0
    cancel = anygram.Cancel()
    cancel.cancel()
    assert ahead.work_ahead(cancel=cancel) == 0
    with pytest.raises(anygram.AnygramError):
        ahead.work_ahead(masks=-1)
