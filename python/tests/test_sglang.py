"""The back end for SGLang, with stand-ins for the modules of SGLang that it touches.
python/integration/sglang_manager.py drives SGLang's own manager."""

from __future__ import annotations

import json
import sys
from importlib.metadata import entry_points
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import anygram
import anygram.sglang
import numpy as np
import pytest

VOCABULARY = anygram.Vocabulary.builtin()
EOS = VOCABULARY.eos[0]
A, B = (VOCABULARY.encode(text)[0] for text in "ab")
WORDS = -(-(len(VOCABULARY) + 100) // 32)


class Row(NamedTuple):
    row: int
    grammar: Any


class Wrapped:
    """A grammar of SGLang's around one of ours, as for reasoning."""

    def __init__(self, grammar: Any) -> None:
        self.grammar = grammar

    def fill_vocab_mask(self, vocab_mask: Any, idx: int) -> None:
        self.grammar.fill_vocab_mask(vocab_mask, idx)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The modules of SGLang that the back end touches."""
    registry: dict[str, Any] = {}

    class BaseGrammarObject:
        def __init__(self) -> None:
            self._finished = False

        @property
        def finished(self) -> bool:
            return self._finished

        @finished.setter
        def finished(self, finished: bool) -> None:
            self._finished = finished

    class BaseGrammarBackend:
        def _init_value_dispatch(self, key: Any, require_reasoning: bool) -> Any:
            return getattr(self, f"dispatch_{key[0]}")(key[1])

    class InvalidGrammarObject(BaseGrammarObject):
        def __init__(self, error_message: str) -> None:
            super().__init__()
            self.error_message = error_message

    class ReasonerGrammarBackend:
        def __init__(self, backend: Any, parser: Any, tokenizer: Any) -> None:
            self.grammar_backend = backend

    def parser(model_type: str, stream_reasoning: bool, tokenizer: Any) -> Any:
        ends = [7] if model_type == "thinks" else []
        return SimpleNamespace(detector=SimpleNamespace(get_think_end_token_ids=lambda tokenizer: ends))

    serving = SimpleNamespace(
        enable_strict_thinking=False,
        constrained_json_whitespace_pattern=None,
        constrained_json_max_whitespace_cnt=None,
        constrained_json_disable_any_whitespace=False,
        reasoning_parser=None,
    )
    choices: list[str] = ["xgrammar"]
    contents: dict[str, dict[str, Any]] = {
        "sglang": {},
        "sglang.srt": {},
        "sglang.srt.arg_groups": {},
        "sglang.srt.arg_groups.choices": {"GRAMMAR_BACKEND_CHOICES": choices},
        "sglang.srt.constrained": {},
        "sglang.srt.constrained.base_grammar_backend": {
            "BaseGrammarObject": BaseGrammarObject,
            "BaseGrammarBackend": BaseGrammarBackend,
            "InvalidGrammarObject": InvalidGrammarObject,
            "register_grammar_backend": registry.__setitem__,
        },
        "sglang.srt.constrained.reasoner_grammar_backend": {"ReasonerGrammarBackend": ReasonerGrammarBackend},
        "sglang.srt.parser": {},
        "sglang.srt.parser.reasoning_parser": {"ReasoningParser": parser},
        "sglang.srt.runtime_context": {"get_serving": lambda: serving},
    }
    for name, content in contents.items():
        module = ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return SimpleNamespace(
        registry=registry,
        choices=choices,
        serving=serving,
        grammar=BaseGrammarObject,
        invalid=InvalidGrammarObject,
        reasoner=ReasonerGrammarBackend,
    )


def create(eos: Any = None) -> Any:
    return anygram.sglang.create_backend(None, VOCABULARY, len(VOCABULARY) + 100, eos)


def rows(n: int) -> Any:
    return np.full((n, WORDS), -1, dtype=np.int32)


def allowed(row: Any) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())


def reads(grammar: Any, text: str) -> bool:
    tokens = [*VOCABULARY.encode(text), EOS]
    return grammar.output.validate(tokens) == len(tokens)


def test_sglang_finds_the_plugin_which_adds_a_name(engine: SimpleNamespace) -> None:
    (found,) = entry_points(group="sglang.srt.plugins", name="anygram")
    plugin = found.load()
    assert plugin is anygram.sglang.plugin
    plugin()
    plugin()
    assert engine.choices == ["xgrammar", "anygram"]
    assert engine.registry == {"anygram": anygram.sglang.create_backend}


def test_what_requests_ask_for(engine: SimpleNamespace) -> None:
    backend = create()
    assert isinstance(backend.dispatch_regex("a"), engine.grammar)
    assert reads(backend.dispatch_json("$$ANY$$"), '[1, {"a":null}]')
    assert reads(backend.dispatch_json('{"type":"null"}'), "null")
    assert reads(backend.dispatch_regex("(ab)+"), "abab")
    assert reads(backend.dispatch_ebnf('root ::= "x" | "(" root ")"'), "(x)")
    assert reads(backend.dispatch_ebnf('start: "x" | "(" start ")"'), "(x)")
    tag = {"begin": "<a>", "schema": {"type": "null"}, "end": "</a>"}
    tags = json.dumps({"structures": [tag], "triggers": ["<a"]})
    assert reads(backend.dispatch_structural_tag(tags), "so <a>null</a>")
    refused = [
        backend.dispatch_json("{"),
        backend.dispatch_regex("("),
        backend.dispatch_ebnf("root ::= y"),
        backend.dispatch_structural_tag("{}"),
    ]
    assert all(isinstance(one, engine.invalid) and one.error_message for one in refused)


def test_options_of_the_server(engine: SimpleNamespace) -> None:
    def blanks() -> list[bool]:
        grammar = create().dispatch_json('{"type":"array","items":{"type":"null"}}')
        return [reads(grammar, text) for text in ("[null,null]", "[null, null]", "[null,  null]")]

    assert blanks() == [True, True, False]
    engine.serving.constrained_json_max_whitespace_cnt = 2
    assert blanks() == [True, True, True]
    engine.serving.constrained_json_disable_any_whitespace = True
    assert blanks() == [True, False, False]
    engine.serving.constrained_json_whitespace_pattern = " *"
    with pytest.raises(anygram.AnygramError, match="white space"):
        create()
    engine.serving.constrained_json_whitespace_pattern = None
    engine.serving.enable_strict_thinking = True
    with pytest.raises(anygram.AnygramError, match="strict thinking"):
        create()


def test_reasoning_is_wrapped(engine: SimpleNamespace) -> None:
    engine.serving.reasoning_parser = "thinks"
    backend = create()
    assert isinstance(backend, engine.reasoner)
    assert callable(backend.grammar_backend.allocate_vocab_mask)
    engine.serving.reasoning_parser = "does not"
    assert not isinstance(create(), engine.reasoner)


def test_a_request_with_its_end_and_rollback(engine: SimpleNamespace) -> None:
    template = create({EOS}).dispatch_regex("(ab)+")
    grammar = template.copy()
    grammar.maybe_init_reasoning(False)
    assert type(grammar) is type(template) and not grammar.finished
    masks = rows(3)
    for token in (A, B):
        grammar.accept_token(token)
        grammar.fill_vocab_mask(masks, 1)
    assert A in allowed(masks[1]) and EOS in allowed(masks[1])
    assert (masks[[0, 2]] == -1).all()
    with pytest.raises(ValueError, match="may not come next"):
        grammar.accept_token(B)
    grammar.accept_token(EOS)
    assert grammar.is_terminated() and grammar.current_token == EOS
    grammar.accept_token(A)
    grammar.rollback(1)
    assert not grammar.is_terminated()
    grammar.rollback(2)
    assert grammar.output.matcher.tokens == template.output.matcher.tokens == []
    grammar.finished = True
    assert grammar.finished and not template.finished


def test_masks_of_a_batch(engine: SimpleNamespace) -> None:
    backend = create()
    grammars = [backend.dispatch_regex(pattern).copy() for pattern in ("a", "b", "ab", "b")]
    entries: list[Any] = [Row(row, grammar) for row, grammar in zip((5, 0, 2), grammars)]
    entries.append(Row(3, Wrapped(grammars[3])))
    masks = rows(6)
    type(grammars[0]).fill_vocab_mask_batched(entries, masks)
    single = rows(6)
    for entry in entries:
        entry.grammar.fill_vocab_mask(single, entry.row)
    assert (masks == single).all()
    assert (masks[[1, 4]] == -1).all()
    logits = np.zeros((6, len(VOCABULARY) + 100), dtype=np.float32)
    grammars[0].apply_vocab_mask(logits, masks.view(np.uint32))
    assert np.flatnonzero(np.isfinite(logits[3])).tolist() == [B]
    assert np.isfinite(logits[1]).all()


def test_a_mask_that_fails_ends_one_request(engine: SimpleNamespace) -> None:
    newline = VOCABULARY.encode("\n")[0]
    backend = create({newline})
    fails, goes_on = backend.dispatch_regex("\nb"), backend.dispatch_regex("a")
    masks = rows(2)
    type(fails).fill_vocab_mask_batched([Row(0, fails), Row(1, goes_on)], masks)
    assert allowed(masks[0]) == {newline, EOS}
    assert allowed(masks[1]) == {A}
    with pytest.raises(anygram.AnygramError, match="stop token"):
        fails.accept_token(EOS)


def test_jump_forward(engine: SimpleNamespace) -> None:
    grammar = create().dispatch_regex('\\{"näme": "(x|y)"')
    text, state = grammar.jump_forward_str_state(grammar.try_jump_forward(None))
    assert text.startswith('{"näme": "') and state == -1
    tokens = VOCABULARY.encode(text)
    grammar.jump_and_retokenize([], tokens, state)
    assert grammar.output.matcher.tokens == tokens
    assert create().dispatch_regex("a|b").try_jump_forward(None) is None


def test_the_service_alone_remembers(engine: SimpleNamespace) -> None:
    backend = create()

    def first(source: str) -> Any:
        # It may be compiled by the time that it is asked for.
        value, is_ready = backend.get_cached_or_future_value(("regex", source), False)
        return value if is_ready else value.result()

    grammar = first("a+")
    backend.set_cache(("regex", "a+"), engine.invalid("timed out"))
    again, is_ready = backend.get_cached_or_future_value(("regex", "a+"), False)
    assert is_ready and again is not grammar and isinstance(again, engine.grammar)
    assert again.output.matcher.constraint is grammar.output.matcher.constraint
    assert isinstance(first("("), engine.invalid)
    again, is_ready = backend.get_cached_or_future_value(("regex", "("), False)
    assert is_ready and isinstance(again, engine.invalid)
    backend.reset()
    assert backend.service.stats["entries"] == 2


def test_a_time_out_stops_the_compilation(engine: SimpleNamespace) -> None:
    backend = create()
    long = json.dumps({"enum": [f"{n}" * 20 for n in range(30_000)]})
    futures = [backend.get_cached_or_future_value(("json", long), False)[0] for _ in range(2)]
    assert futures[0].cancel() and backend.service.stats["compiling"] == 1, "another waits for it"
    assert futures[1].cancel() and backend.service.stats["compiling"] == 0
    assert backend.service.stats["cancelled"] == 2


def test_a_budget_of_the_request(engine: SimpleNamespace) -> None:
    own = json.dumps({"type": "array", "items": {"type": "null"}, "x-anygram": {"max_tokens": 4}})
    grammar = create().dispatch_json(own)
    masks = rows(1)
    n = 0
    while not grammar.is_terminated():
        type(grammar).fill_vocab_mask_batched([Row(0, grammar)], masks)
        longest = allowed(masks[0]) - {EOS, *VOCABULARY.encode("]")} or allowed(masks[0])
        grammar.accept_token(min(longest))
        n += 1
    assert n <= 4


def test_options_of_the_environment(engine: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANYGRAM_SGLANG_OPTIONS", '{"whitespace": "compact", "cache_entries": 7}')
    backend = create()
    assert backend.service.max_entries == 7
    assert not reads(backend.dispatch_json('{"type":"array","items":{"type":"null"}}'), "[null, null]")
    for wrong in ("{", "[]", '{"unknown": 1}'):
        monkeypatch.setenv("ANYGRAM_SGLANG_OPTIONS", wrong)
        with pytest.raises(anygram.AnygramError):
            create()


def test_the_plugin_of_diffusion_models_is_inert(monkeypatch: pytest.MonkeyPatch) -> None:
    """python/integration/sglang_diffusion.py drives SGLang's own loops."""
    (found,) = entry_points(group="sglang.srt.plugins", name="anygram_diffusion")
    plugin = found.load()
    monkeypatch.delenv("ANYGRAM_SGLANG_DIFFUSION", raising=False)
    loaded = set(sys.modules)
    plugin()
    assert "sglang" not in set(sys.modules) - loaded
    monkeypatch.setenv("ANYGRAM_SGLANG_DIFFUSION", "on")
    with pytest.raises(anygram.AnygramError, match="1 switches"):
        plugin()
