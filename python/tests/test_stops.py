"""Stop strings: outputs that are kept from them, in all adapters.

python/integration/vllm_manager.py has vLLM's own detokenizer cut outputs."""

from __future__ import annotations

import itertools
import json
import pickle
import random
from types import SimpleNamespace
from typing import Any

import anygram
import anygram.llama_cpp
import anygram.sglang
import anygram.vllm
import numpy as np
import pytest
from anygram._serving import Output
from anygram._stops import avoiding
from anygram.transformers import ConstraintProcessor

TOKENS = [b"a", b"b", b"ab", b"ba", b"bb", b"aab", b"abba", b"c", None, None]
EOS, CALL = 8, 9
VOCABULARY = anygram.Vocabulary.from_tokens(TOKENS, [EOS], names={CALL: "<|call|>"})


def constraint(source: str) -> anygram.Constraint:
    return anygram.Constraint(anygram.Compiler("scannerless").compile(source, "lark"), VOCABULARY)


GRAMMARS = [
    constraint("start: /[abc]*/"),
    constraint('start: (/[ab]+/ "c")*'),
    constraint('start: "ab"* <|call|> "ba"*'),
]


def allowed(row: Any) -> list[int]:
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def mask(output: Output) -> list[int]:
    rows = np.zeros((1, 2), dtype=np.uint32)
    output.fill(rows, anygram.MaskBuffer(rows), 0)
    return allowed(rows[0])


def has_stop(text: bytes, stops: list[str]) -> bool:
    return any(stop.encode() in text for stop in stops)


def text_of(tokens: list[int]) -> bytes:
    return b"".join(TOKENS[token] or b"" for token in tokens)


RESTS = ["".join(letters) for n in range(4) for letters in itertools.product("abc", repeat=n)]


def is_viable(grammar: anygram.Constraint, tokens: list[int], stops: list[str]) -> bool:
    """Whether some short text without a stop string goes on so; as far as tokens can say it."""
    reader = grammar.matcher()
    if reader.try_advance(tokens) < len(tokens):
        return False
    text = text_of(tokens).decode()
    for rest in RESTS:
        ids = [TOKENS.index(letter.encode()) for letter in rest]
        if has_stop((text + rest).encode(), stops):
            continue
        for way in (ids, [CALL, *ids], [*ids, CALL]):
            trial = reader.fork()
            if trial.try_advance(way) == len(way) and trial.is_sentence:
                return True
    return False


def test_masks_leave_out_what_leads_to_a_stop_string() -> None:
    numbers, n_left_out, n_empty = random.Random(29), 0, 0
    for _ in range(200):
        stops = [
            "".join(numbers.choices("abc", k=numbers.randint(1, 4))) for _ in range(numbers.randint(1, 3))
        ]
        grammar = numbers.choice(GRAMMARS)
        plain = grammar.matcher()
        try:
            output = Output(avoiding(grammar, stops), None)
        except anygram.GrammarError:
            n_empty += 1
            assert not is_viable(grammar, [], stops)
            continue
        tokens: list[int] = []
        for _ in range(12):
            every = allowed(plain.mask())
            right = [token for token in every if token == EOS or is_viable(grammar, [*tokens, token], stops)]
            n_left_out += len(every) - len(right)
            assert mask(output) == right, (stops, tokens)
            drafts = [token for token in numbers.choices(range(10), k=3) if token != EOS]
            trial = output.copy()
            n_valid = 0
            for draft in drafts:
                if draft not in mask(trial):
                    break
                trial.accept(draft)
                n_valid += 1
            assert output.validate(drafts) == n_valid
            for token in set(every) - set(right):
                with pytest.raises(anygram.AnygramError):
                    output.accept(token)
            token = numbers.choice(right)
            output.accept(token)
            plain.advance(token)
            if token == EOS:
                assert output.has_ended
                break
            tokens.append(token)
            if numbers.random() < 0.3:
                n = numbers.randint(0, len(tokens))
                output.rollback(n)
                plain.rollback(n)
                del tokens[len(tokens) - n :]
            if numbers.random() < 0.1:
                output = output.copy()
    assert n_left_out > 100 and n_empty < 50


def test_budgets_and_resets() -> None:
    output = Output(avoiding(GRAMMARS[0], ["ab"]), None)
    output.limit = 1
    assert mask(output) == [0, 1, 3, 4, 7, EOS]
    output.accept(0)
    assert mask(output) == [EOS]
    output.reset()
    output.go_to([0, 0])
    output.limit = None
    assert mask(output) == [0, 7, EOS]
    with pytest.raises(anygram.AnygramError):
        output.go_to([0, 1])
    # Nothing of a key is begun that cannot be finished, and the same stop strings share what is known.
    source = {"type": "object", "properties": {"name": {}, "n": {}}, "additionalProperties": False}
    # Else a key can be spelled by escapes.
    language = anygram.Compiler(escapes="needed").compile(source, "json-schema")
    schema = anygram.Constraint(language, anygram.Vocabulary.builtin())
    assert avoiding(schema, ["am"]) is avoiding(schema, ["am"])
    language = avoiding(schema, ["am"]).language
    assert not language.read('{"na').is_viable and language.read('{"n": 1}').is_sentence
    assert pickle.loads(pickle.dumps(language)).read('{"na').length == 3
    with pytest.raises(anygram.GrammarError, match="stop strings"):
        avoiding(schema, ["{"])
    with pytest.raises(anygram.AnygramError, match="%lexer|lexer mode longest"):
        anygram.Compiler(avoid=["ab"]).compile("start: /[ab]+/", "lark")


def test_logits_processors() -> None:
    for avoid in ("ab", ["ab", "cc"]):
        processor = ConstraintProcessor(GRAMMARS[0], avoid=avoid)
        scores = np.zeros((2, 10), dtype=np.float32)
        finite = lambda rows: [np.flatnonzero(np.isfinite(row)).tolist() for row in processor(rows, scores)]  # noqa: E731
        assert finite(np.array([[7], [7]])) == [[0, 1, 3, 4, 7, EOS]] * 2
        assert finite(np.array([[7, 0], [7, 1]])) == [[0, 7, EOS], [0, 1, 3, 4, 7, EOS]]
        # Rows change places, as beams do, and grow by several tokens.
        assert finite(np.array([[7, 1, 3], [7, 0, 0]])) == [[0, 7, EOS]] * 2
        assert finite(np.array([[7, 0, 0, EOS], [7, 1, 1, 1]]))[1] == [0, 1, 3, 4, 7, EOS]
    with pytest.raises(anygram.GrammarError, match="stop strings"):
        ConstraintProcessor(constraint('start: "a" "b"'), avoid=["ab"])
    processors = anygram.llama_cpp.Processors(GRAMMARS[0], avoid="ab")
    row = processors(np.array([7], dtype=np.intc), np.zeros(10, dtype=np.single))
    assert np.flatnonzero(np.isfinite(row)).tolist() == [0, 1, 3, 4, 7, EOS]
    for wrong in ("", [""], [7], 7):
        with pytest.raises((anygram.AnygramError, TypeError)):
            ConstraintProcessor(GRAMMARS[0], avoid=wrong)  # type: ignore[arg-type]


def vllm_backend(options: dict[str, Any]) -> Any:
    outputs = SimpleNamespace(
        disable_any_whitespace=False, disable_additional_properties=False, reasoning_parser=""
    )
    config = SimpleNamespace(
        structured_outputs_config=outputs,
        additional_config={"anygram": options},
        model_config=SimpleNamespace(max_model_len=1000),
        num_speculative_tokens=0,
    )
    return anygram.vllm.Backend(config, anygram.Vocabulary.builtin(), 2000)


JSON = SimpleNamespace(name="JSON")


def served(options: dict[str, Any], own: dict[str, Any], stop: Any) -> Any:
    backend = vllm_backend(options)
    request = SimpleNamespace(
        sampling_params=SimpleNamespace(stop=stop, max_tokens=100), num_prompt_tokens=1, num_output_tokens=0
    )
    with backend.serving(request):
        return backend.compile_grammar(JSON, json.dumps({"type": "string", "x-anygram": own}))


def test_vllm() -> None:
    # By default the server cuts outputs; it or a request can ask to avoid that.
    text = anygram.Vocabulary.builtin().encode('"say stop"')
    for options, own, stop, avoids in [
        ({}, {}, "stop", False),
        ({}, {"avoid_stop": True}, "stop", True),
        ({}, {"avoid_stop": True}, ["x", "stop"], True),
        ({}, {"avoid_stop": True}, None, False),
        ({}, {"avoid_stop": ["stop"]}, None, True),
        ({"avoid_stop": True}, {}, "stop", True),
        ({"avoid_stop": ["stop"]}, {}, "other", True),
        ({"avoid_stop": True}, {"avoid_stop": False}, "stop", False),
    ]:
        grammar = served(options, own, stop)
        n_valid = len(grammar.validate_tokens(text))
        assert (n_valid < len(text)) == avoids, (options, own, stop)
    for wrong in ({"avoid_stop": 1}, {"avoid_stop": [""]}):
        with pytest.raises(anygram.AnygramError):
            served({}, wrong, "stop")
        with pytest.raises(anygram.AnygramError):
            served(wrong, {}, "stop")


def test_sglang() -> None:
    kind: Any = type("Made", (anygram.sglang.Backend,), {"invalid": staticmethod(lambda message: message)})
    vocabulary = anygram.Vocabulary.builtin()
    backend = kind(vocabulary, len(vocabulary))
    text = vocabulary.encode('"say stop"')
    ask = lambda own: backend.dispatch_json(json.dumps({"type": "string", "x-anygram": own}))  # noqa: E731
    plain, without = ask({}), ask({"avoid_stop": ["stop"]}).copy()
    rows = np.zeros((2, -(-len(vocabulary) // 32)), dtype=np.int32)
    entries = [SimpleNamespace(row=0, grammar=plain), SimpleNamespace(row=1, grammar=without)]
    n_read = 0
    for token in text:
        anygram.sglang.Grammar.fill_vocab_mask_batched(entries, rows)
        assert token in allowed(rows[0])
        plain.accept_token(token)
        if token not in allowed(rows[1]):
            break
        without.accept_token(token)
        n_read += 1
    assert 0 < n_read < len(text)
    assert "list them" in ask({"avoid_stop": True})


def test_stop_strings_have_a_deadline() -> None:
    # Whoever sends a request chooses them, and many long ones take long.
    service = anygram.serving.CompileService(anygram.Vocabulary.builtin())
    options, grammar = {"avoid": ["a" * 800]}, '%lexer scannerless\nstart: /[a-z ]*/ "!"'
    with pytest.raises(anygram.LimitError, match="in the time that the request has"):
        service.get("grammar", grammar, options, seconds=0.2)
    assert service.get("grammar", grammar).constraint.language.read("a!").is_sentence
    service.close()
