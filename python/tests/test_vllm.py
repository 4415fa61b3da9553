"""The back end for vLLM, with stand-ins for the modules of vLLM that it touches.
python/integration/vllm_manager.py drives vLLM's own manager."""

from __future__ import annotations

import enum
import json
import sys
from abc import ABC
from importlib.metadata import entry_points
from types import ModuleType, SimpleNamespace
from typing import Any

import anygram
import anygram.vllm
import numpy as np
import pytest

VOCABULARY = anygram.Vocabulary.builtin()
EOS = VOCABULARY.eos[0]
Asked = enum.Enum("Asked", ["JSON", "JSON_OBJECT", "REGEX", "GRAMMAR", "CHOICE", "STRUCTURAL_TAG"])
NULL = {"type": "null"}
RECORD = {"type": "json_schema", "json_schema": NULL}
TAG = json.dumps({"format": {"type": "tag", "begin": "<a>", "content": RECORD, "end": "</a>"}})
SCHEMA = {"type": "object", "properties": {"b": NULL, "a": NULL}, "required": ["a", "b"]}


def config(additional: Any = None, **outputs: bool) -> Any:
    flags = {
        "disable_any_whitespace": False,
        "disable_additional_properties": False,
        "reasoning_parser": "",
        **outputs,
    }
    return SimpleNamespace(
        structured_outputs_config=SimpleNamespace(**flags),
        additional_config=additional or {},
        model_config=SimpleNamespace(max_model_len=1000),
        num_speculative_tokens=0,
    )


def backend(additional: Any = None, **outputs: bool) -> anygram.vllm.Backend:
    return anygram.vllm.Backend(config(additional, **outputs), VOCABULARY, len(VOCABULARY) + 100)


def compiled(asked: Asked, source: str, stops: set[int] | None = None) -> anygram.vllm.Grammar:
    return backend().compile_grammar(asked, source, stops)


def reads(grammar: anygram.vllm.Grammar, text: str) -> bool:
    tokens = [*VOCABULARY.encode(text), EOS]
    return grammar.validate_tokens(tokens) == tokens


def allowed(row: Any) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())


def rows(n: int) -> Any:
    return np.full((n, -(-(len(VOCABULARY) + 100) // 32)), -1, dtype=np.int32)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The modules of vLLM that `install` touches."""

    class VLLMClientError(Exception):
        pass

    class StructuredOutputBackend(ABC):  # noqa: B024
        pass

    class StructuredOutputGrammar(ABC):  # noqa: B024
        pass

    class StructuredOutputManager:
        def __init__(self, backend: Any) -> None:
            self.backend = backend

        def _create_grammar(self, request: Any) -> Any:
            return self.backend.compile_grammar(*request.asked)

        def _fill_bitmasks(self, batch: Any) -> None:
            for grammar, row, applies, masked in batch:
                if applies and not grammar.is_terminated():
                    grammar.fill_bitmask(self._grammar_bitmask, row)
                else:
                    self._grammar_bitmask[row] = -1
                    for token in masked:
                        self._grammar_bitmask[row].view(np.uint32)[token // 32] &= ~np.uint32(1 << token % 32)

        def _async_submit_fill_bitmask(self, batch: Any) -> Any:
            self._fill_bitmasks(batch)
            return SimpleNamespace(result=lambda: None)

    contents: dict[str, dict[str, Any]] = {
        "vllm": {},
        "vllm.v1": {},
        "vllm.exceptions": {"VLLMClientError": VLLMClientError},
        "vllm.v1.structured_output": {
            "XgrammarBackend": object,
            "StructuredOutputManager": StructuredOutputManager,
        },
        "vllm.v1.structured_output.backend_xgrammar": {"XgrammarBackend": object},
        "vllm.v1.structured_output.backend_types": {
            "StructuredOutputBackend": StructuredOutputBackend,
            "StructuredOutputGrammar": StructuredOutputGrammar,
        },
    }
    for name, content in contents.items():
        module = ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return SimpleNamespace(
        manager=sys.modules["vllm.v1.structured_output"],
        xgrammar=sys.modules["vllm.v1.structured_output.backend_xgrammar"],
        types=sys.modules["vllm.v1.structured_output.backend_types"],
        client_error=VLLMClientError,
    )


def test_vllm_finds_the_plugin_and_it_is_inert(monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = entry_points(group="vllm.general_plugins", name="anygram")
    assert found.load() is anygram.vllm.plugin
    for value in ("", "0"):
        monkeypatch.setenv("ANYGRAM_VLLM", value)
        anygram.vllm.plugin()
    assert "vllm" not in sys.modules
    monkeypatch.setenv("ANYGRAM_VLLM", "yes")
    with pytest.raises(anygram.AnygramError, match="1 switches"):
        anygram.vllm.plugin()


def test_the_plugin_takes_the_place_of_a_back_end(
    engine: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANYGRAM_VLLM", "1")
    anygram.vllm.plugin()
    anygram.vllm.plugin()
    assert engine.manager.XgrammarBackend is engine.xgrammar.XgrammarBackend is anygram.vllm.Backend
    assert isinstance(backend(), engine.types.StructuredOutputBackend)
    assert isinstance(compiled(Asked.REGEX, "a"), engine.types.StructuredOutputGrammar)


def test_another_vllm_is_refused(engine: SimpleNamespace) -> None:
    del engine.xgrammar.XgrammarBackend
    with pytest.raises(anygram.AnygramError, match=r"0\.33"):
        anygram.vllm.install()


def test_requests_are_read_before_they_are_queued(engine: SimpleNamespace) -> None:
    def validate(**asked: Any) -> None:
        params = {"json": None, "structural_tag": None, **asked}
        anygram.vllm.validate(SimpleNamespace(structured_outputs=SimpleNamespace(**params)))

    anygram.vllm.validate(SimpleNamespace(structured_outputs=None))
    validate(json="{}")
    validate(json={"type": "null"})
    validate(structural_tag="{}")
    with pytest.raises(engine.client_error) as caught:
        validate(json="{")
    assert isinstance(caught.value, anygram.AnygramError)


@pytest.mark.parametrize(
    ("asked", "source", "right", "wrong"),
    [
        (Asked.JSON, json.dumps(SCHEMA), '{"b": null, "a": null}', '{"a":null,"b":null}'),
        (Asked.JSON_OBJECT, "", '{"x":[1]}', "[1]"),
        (Asked.REGEX, "(ab)+", "abab", "aba"),
        (Asked.GRAMMAR, 'start: "x" | "(" start ")"', "((x))", "((x)"),
        (Asked.GRAMMAR, 'root ::= "x" | "(" root ")"', "((x))", "((x)"),
        (Asked.GRAMMAR, "# NLTK's\n%start S\nS -> 'x' | '(' S ')'", "( ( x ) )", "( x"),
        (Asked.GRAMMAR, 'start: a -> one\na: "x" | "(" a ")"', "((x))", "((x)"),
        (Asked.CHOICE, '["a", "ab", "\\"\\\\\\n\\u0000é🙂"]', '"\\\n\0é🙂', "b"),
        (Asked.CHOICE, '["", "a", "a"]', "", "aa"),
        (Asked.STRUCTURAL_TAG, TAG, "<a>null</a>", "<a>1</a>"),
    ],
)
def test_what_requests_ask_for(asked: Asked, source: str, right: str, wrong: str) -> None:
    assert reads(compiled(asked, source), right)
    assert not reads(compiled(asked, source), wrong)


@pytest.mark.parametrize(
    ("asked", "source", "error"),
    [
        (Asked.JSON, "{", anygram.GrammarError),
        (Asked.JSON, '{"type": "strange"}', anygram.GrammarError),
        (Asked.JSON, '{"x-anygram": 1}', anygram.AnygramError),
        (Asked.JSON, '{"x-anygram": {"limits": {"unknown": 1}}}', anygram.AnygramError),
        (Asked.JSON, '{"x-anygram": {"limits": {"compile_steps": 1}}}', anygram.LimitError),
        (Asked.JSON, '{"x-anygram": {"max_tokens": 0}}', anygram.AnygramError),
        (Asked.JSON, '{"x-anygram": {"close": -1}}', anygram.AnygramError),
        (Asked.JSON, '{"x-anygram": {"close": "yes"}}', anygram.AnygramError),
        (Asked.REGEX, "(", anygram.GrammarError),
        (Asked.GRAMMAR, "start: nothing", anygram.GrammarError),
        (Asked.CHOICE, "[]", anygram.GrammarError),
        (Asked.CHOICE, "[1]", anygram.GrammarError),
        (Asked.CHOICE, "x", anygram.GrammarError),
        (Asked.STRUCTURAL_TAG, "{}", anygram.AnygramError),
    ],
)
def test_errors_are_values_of_one_request(asked: Asked, source: str, error: type[Exception]) -> None:
    made = backend()
    for _ in range(2):
        with pytest.raises(error) as caught:
            made.compile_grammar(asked, source)
        assert isinstance(caught.value, ValueError)
    assert made.compile_grammar(Asked.REGEX, "a").validate_tokens(VOCABULARY.encode("a"))


def test_options_of_the_server_and_of_a_request() -> None:
    compact = '{"b":null,"a":null}'
    spaced = '{"b": null, "a": null}'
    turned = '{"a":null,"b":null}'

    def which(made: anygram.vllm.Backend, schema: Any = SCHEMA) -> list[bool]:
        grammar = made.compile_grammar(Asked.JSON, json.dumps(schema))
        return [reads(grammar, text) for text in (compact, spaced, turned)]

    assert which(backend()) == [True, True, False]
    assert which(backend(disable_any_whitespace=True)) == [True, False, False]
    assert which(backend({"anygram": {"key_order": "any", "whitespace": "compact"}})) == [True, False, True]
    own = {**SCHEMA, "x-anygram": {"key_order": "any"}}
    assert which(backend(), own) == [True, True, True]
    extra = '{"b":null,"a":null,"c":1}'
    grammar = backend().compile_grammar(Asked.JSON, json.dumps(SCHEMA))
    assert reads(grammar, extra)
    grammar = backend(disable_additional_properties=True).compile_grammar(Asked.JSON, json.dumps(SCHEMA))
    assert not reads(grammar, extra)
    for wrong in ({"anygram": 1}, {"anygram": {"unknown": 1}}, {"anygram": {"cache_bytes": "much"}}):
        made = backend(wrong)
        with pytest.raises(anygram.AnygramError):
            made.compile_grammar(Asked.REGEX, "a")
        made.destroy()


def test_a_tokenizer_that_is_not_read() -> None:
    made = anygram.vllm.Backend(config(), object(), 100)
    for _ in range(2):
        with pytest.raises(anygram.VocabularyError):
            made.compile_grammar(Asked.REGEX, "a")


def test_drafts_with_validate_and_rollback() -> None:
    grammar = compiled(Asked.REGEX, "(ab)+")
    a, b = (VOCABULARY.encode(text)[0] for text in "ab")
    assert grammar.validate_tokens([a, b, b, a]) == [a, b]
    assert grammar.validate_tokens([a, -1, b]) == [a]
    assert grammar.validate_tokens([a, b, EOS, a]) == [a, b, EOS]
    masks = rows(4)
    drafts = [a, b, EOS]
    for row, draft in enumerate(drafts):
        grammar.fill_bitmask(masks, row)
        assert draft in allowed(masks[row])
        assert grammar.accept_tokens("r", [draft])
    assert grammar.is_terminated()
    assert grammar.accept_tokens("r", [a, b]), "what comes after the end is ignored"
    assert grammar.validate_tokens([a]) == []
    grammar.rollback(3)
    assert not grammar.is_terminated()
    grammar.fill_bitmask(masks, 3)
    assert (masks[3] == masks[0]).all()
    assert not grammar.accept_tokens("r", [b])
    assert grammar.accept_tokens("r", [a])
    grammar.reset()
    assert grammar.validate_tokens([a]) == [a]


def test_masks_of_a_padded_vocabulary() -> None:
    grammar = compiled(Asked.REGEX, "a")
    masks = rows(3)
    grammar.fill_bitmask(masks, 1)
    assert (masks[[0, 2]] == -1).all()
    assert allowed(masks[1]) == {VOCABULARY.encode("a")[0]}
    # Another tensor, as after a change of the batch's size.
    other = rows(1)
    grammar.fill_bitmask(other, 0)
    assert (other[0] == masks[1]).all()


def test_stop_tokens_of_a_request() -> None:
    newline = VOCABULARY.encode("\n")[0]
    a, b = (VOCABULARY.encode(text)[0] for text in "ab")
    grammar = compiled(Asked.REGEX, "a\n?b", {newline, EOS, 10**6})
    masks = rows(1)

    def next_tokens() -> set[int]:
        grammar.fill_bitmask(masks, 0)
        return allowed(masks[0])

    assert grammar.validate_tokens([a, b, newline, a]) == [a, b, newline]
    assert grammar.accept_tokens("r", [a])
    assert newline not in next_tokens() and b in next_tokens()
    assert grammar.accept_tokens("r", [b])
    assert next_tokens() == {newline, EOS}
    assert grammar.accept_tokens("r", [newline])
    assert grammar.is_terminated()
    grammar.rollback(2)
    assert b in next_tokens()
    with pytest.raises(anygram.AnygramError, match="ends the output"):
        compiled(Asked.REGEX, "a", {10**6})


def test_a_mask_that_fails_ends_one_request() -> None:
    newline = VOCABULARY.encode("\n")[0]
    grammar = compiled(Asked.REGEX, "a\nb", {newline, EOS})
    assert grammar.accept_tokens("r", VOCABULARY.encode("a"))
    masks = rows(1)
    grammar.fill_bitmask(masks, 0)
    assert allowed(masks[0]) == {newline, EOS}, "only stop tokens"
    assert grammar.validate_tokens([EOS]) == []
    assert not grammar.accept_tokens("r", [EOS])
    grammar.reset()
    assert grammar.accept_tokens("r", VOCABULARY.encode("a"))


def test_a_limit_of_masks_ends_one_request() -> None:
    made = backend({"anygram": {"limits": {"mask_steps": 1}}})
    grammar = made.compile_grammar(Asked.GRAMMAR, 'start: "(" start ")" | /[a-z]+/')
    masks = rows(1)
    grammar.fill_bitmask(masks, 0)
    assert allowed(masks[0]) == {EOS}
    assert isinstance(grammar.output.error, anygram.LimitError)
    assert not grammar.accept_tokens("r", [EOS])


def test_rows_of_a_large_batch_are_those_of_one_by_one(engine: SimpleNamespace) -> None:
    plain_submit = engine.manager.StructuredOutputManager._async_submit_fill_bitmask
    anygram.vllm.install()
    anygram.vllm.install()
    made, limited = backend(), backend({"anygram": {"limits": {"mask_steps": 1}}})
    newline = VOCABULARY.encode("\n")[0]
    manager = engine.manager.StructuredOutputManager(made)

    def grammars() -> list[Any]:
        """Plain ones, one with a stop token that has bytes, one that has to close, one whose masks are beyond a
        limit, and one that has ended."""
        plain = [
            made.compile_grammar(Asked.CHOICE, json.dumps(["a" * n, "b", f"{n}"])) for n in range(1, 21)
        ]
        stopped = made.compile_grammar(Asked.REGEX, "(a\n?)*", {newline, EOS})
        closing = manager._create_grammar(Request((Asked.REGEX, "[ab]*c"), 3))
        failing = limited.compile_grammar(Asked.GRAMMAR, 'start: "(" start ")" | /[a-z]+/')
        ended = made.compile_grammar(Asked.CHOICE, '["a"]')
        assert ended.accept_tokens("r", [*VOCABULARY.encode("a"), EOS])
        return [*plain, stopped, closing, failing, ended]

    def batches(given: list[Any]) -> list[Any]:
        # One of them reasons: its row is not constrained, but for a token.
        entries = [(grammar, row, row != 5, (7,) if row == 5 else ()) for row, grammar in enumerate(given)]
        return [entries[at : at + 16] for at in range(0, len(entries), 16)]

    for steps in range(2):
        together, alone = grammars(), grammars()
        for grammar in together + alone:
            if steps and not grammar.is_terminated():
                grammar.fill_bitmask(rows(len(together)), 0)
                assert grammar.accept_tokens("r", VOCABULARY.encode("a")) or grammar.output.error
        manager._grammar_bitmask = rows(len(together))
        if steps:
            # A step that nobody waited for, with the same requests in other rows, and a smaller one behind it.
            for batch in batches(together[::-1]):
                manager._async_submit_fill_bitmask(batch)
            manager._async_submit_fill_bitmask(batches(together)[0]).result()
        for promise in [manager._async_submit_fill_bitmask(batch) for batch in batches(together)]:
            promise.result()
        found, manager._grammar_bitmask = manager._grammar_bitmask, rows(len(together))
        for batch in batches(alone):
            manager._fill_bitmasks(batch)
        assert found.tolist() == manager._grammar_bitmask.tolist()
        assert [type(one.output.error) for one in together] == [type(one.output.error) for one in alone]
    assert any(isinstance(one.output.error, anygram.LimitError) for one in together)
    assert newline in allowed(found[20])

    # Another back end's batches go where they went.
    other = engine.manager.StructuredOutputManager(object())
    other._grammar_bitmask = rows(1)
    other._async_submit_fill_bitmask([(None, 0, False, ())]).result()
    assert plain_submit(other, []) is not None


class Request:
    """What the back end reads of a request of vLLM."""

    def __init__(self, asked: Any, max_tokens: int, n_output: int = 0) -> None:
        self.asked = asked
        self.sampling_params = SimpleNamespace(max_tokens=max_tokens)
        self.num_prompt_tokens = 5
        self.num_output_tokens = n_output
        self.is_aborted = False

    def is_finished(self) -> bool:
        return self.is_aborted


def test_outputs_close_within_max_tokens(engine: SimpleNamespace) -> None:
    anygram.vllm.install()
    masks = rows(1)
    schema = json.dumps({"type": "array", "items": {"type": "integer"}})
    for most in range(3, 12):
        manager = engine.manager.StructuredOutputManager(backend())
        grammar = manager._create_grammar(Request((Asked.JSON, schema), most))
        tokens: list[int] = []
        while not grammar.is_terminated():
            grammar.fill_bitmask(masks, 0)
            # As long as possible: a bracket or EOS only if nothing else may come.
            last = {EOS, *VOCABULARY.encode("]")}
            allowed_now = allowed(masks[0])
            token = min(allowed_now - last or allowed_now - {EOS} or allowed_now)
            tokens.append(token)
            assert grammar.accept_tokens("r", [token])
        assert len(tokens) <= most and tokens[-1] == EOS
        json.loads(VOCABULARY.decode(tokens[:-1]))
    manager = engine.manager.StructuredOutputManager(backend())
    with pytest.raises(anygram.LimitError, match="max_tokens|within"):
        manager._create_grammar(Request((Asked.REGEX, "abcdefghijklmnop"), 2))
    # Not if it is switched off, by the server or the request, and also if the request itself asks for it.
    manager = engine.manager.StructuredOutputManager(backend({"anygram": {"close": False}}))
    assert manager._create_grammar(Request((Asked.REGEX, "abcdefghijklmnop"), 2)).output.limit is None
    own = json.dumps({"type": "integer", "x-anygram": {"close": False}})
    manager = engine.manager.StructuredOutputManager(backend())
    assert manager._create_grammar(Request((Asked.JSON, own), 20)).output.limit is None
    own = json.dumps({"type": "integer", "x-anygram": {"max_tokens": 4}})
    assert backend().compile_grammar(Asked.JSON, own).output.limit == 3


def test_tags_that_count_tokens_close(engine: SimpleNamespace) -> None:
    anygram.vllm.install()
    text = {"type": "any_text", "max_tokens": 2}
    tag = json.dumps({"format": {"type": "tag", "begin": "<", "content": text, "end": ">"}})
    manager = engine.manager.StructuredOutputManager(backend())
    grammar = manager._create_grammar(Request((Asked.STRUCTURAL_TAG, tag), 20))
    assert grammar.output.limit == 19
    assert grammar.accept_tokens("r", [*VOCABULARY.encode("<"), *VOCABULARY.encode("a") * 2])
    masks = rows(1)
    grammar.fill_bitmask(masks, 0)
    assert all(VOCABULARY.decode([token]).startswith(b">") for token in allowed(masks[0]))


def test_outputs_close_from_so_many_left_tokens_on(engine: SimpleNamespace) -> None:
    anygram.vllm.install()
    masks = rows(1)
    close = VOCABULARY.encode("]")[0]
    for value in (8, True, False):
        made = backend({"anygram": {"close": value}})
        source = json.dumps({"type": "array", "items": {"type": "null"}, "minItems": 30})
        request = Request((Asked.JSON, source), 20)
        if value is True:
            with pytest.raises(anygram.LimitError):
                engine.manager.StructuredOutputManager(made)._create_grammar(request)
            continue
        # It is found out when eight tokens are left that it cannot be complete any more.
        grammar = engine.manager.StructuredOutputManager(made)._create_grammar(request)
        n = 0
        while grammar.output.error is None and n < 19:
            grammar.fill_bitmask(masks, 0)
            if grammar.output.error is None:
                assert close not in allowed(masks[0])
                grammar.accept_tokens("r", [min(allowed(masks[0]))])
                n += 1
        assert n == (11 if value == 8 else 19)
        if value == 8:
            assert isinstance(grammar.output.error, anygram.LimitError)
            assert grammar.output.error.name == "max_tokens"


def test_tokens_of_reasoning_count_too(engine: SimpleNamespace) -> None:
    anygram.vllm.install()
    manager = engine.manager.StructuredOutputManager(backend(reasoning_parser="thinks"))
    request = Request((Asked.REGEX, "a+"), 20)
    grammar = manager._create_grammar(request)
    request.num_output_tokens = 15
    masks = rows(1)
    for n in range(4):
        grammar.fill_bitmask(masks, 0)
        assert grammar.accept_tokens("r", VOCABULARY.encode("a")), n
    grammar.fill_bitmask(masks, 0)
    assert allowed(masks[0]) == {EOS}


def test_an_aborted_request_stops_its_compilation(engine: SimpleNamespace) -> None:
    anygram.vllm.install()
    made = backend({"anygram": {"limits": {"compile_steps": 1 << 62}}})
    manager = engine.manager.StructuredOutputManager(made)
    request = Request((Asked.JSON, json.dumps({"enum": [f"{n}" * 20 for n in range(30_000)]})), 20)
    request.is_aborted = True
    with pytest.raises(anygram.Cancelled):
        manager._create_grammar(request)
    assert made.service.stats["cancelled"] == 1 and made.service.stats["entries"] == 0


def test_errors_show_no_text_unless_asked() -> None:
    for asked, source in ((Asked.GRAMMAR, "start: secretname"), (Asked.JSON, '{"$ref": "#/secretname"}')):
        with pytest.raises(anygram.GrammarError) as caught:
            backend().compile_grammar(asked, source)
        assert "secretname" not in str(caught.value) and caught.value.__cause__ is None
        with pytest.raises(anygram.GrammarError, match="secretname"):
            backend({"anygram": {"error_texts": True}}).compile_grammar(asked, source)
    own = json.dumps({"$ref": "#/secretname", "x-anygram": {"error_texts": True}})
    with pytest.raises(anygram.GrammarError, match="secretname"):
        backend().compile_grammar(Asked.JSON, own)
    grammar = compiled(Asked.REGEX, "secretname")
    with pytest.raises(anygram.RefusedError) as refused:
        grammar.output.accept(VOCABULARY.encode("x")[0])
    assert "'x'" not in str(refused.value) and "secret" not in str(refused.value)
    assert refused.value.expected == [] and refused.value.__suppress_context__
