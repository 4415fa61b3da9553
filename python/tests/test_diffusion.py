"""Loops of diffusion models over numpy: `anygram.diffusion`. What needs torch is in
python/integration/diffusion_generate.py."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import anygram
import numpy as np
import pytest
from anygram import diffusion

TOKENS: list[bytes | None] = [None, None, b"(", b")", b",", b"a", b"b", b"a)", b"),", None]
EOS, MASK, UNUSED = 0, 1, 9
SIZE = len(TOKENS)
EXACT = ("exact", "compatible", "best", "sample")
STRATEGIES = tuple(anygram.Decoder.STRATEGIES)
LISTS = 'start: item\nitem: WORD | "(" (item ("," item)*)? ")"\nWORD: /[a-z]+/\n'
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "boolean"}, "b": {"enum": [1, 2]}},
    "required": ["a"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def lists() -> anygram.Constraint:
    vocabulary = anygram.Vocabulary.from_tokens(TOKENS, eos=[EOS], mask=MASK)
    return anygram.Constraint(anygram.Compiler().compile(LISTS, "lark"), vocabulary)


@pytest.fixture(scope="module")
def records() -> anygram.Constraint:
    tokens = [
        None,
        None,
        *(bytes([byte]) for byte in b'{}":,ab12truefls '),
        b'{"a"',
        b"true",
        b"false",
        b"}\n",
    ]
    vocabulary = anygram.Vocabulary.from_tokens(tokens, eos=[EOS], mask=MASK)
    language = anygram.Compiler(key_order="schema", whitespace="compact").compile(SCHEMA, "json-schema")
    return anygram.Constraint(language, vocabulary)


def random_model(columns: int = SIZE, seed: int = 0, sharpness: float = 2.0) -> Callable[[Any], Any]:
    """Logits that depend on all that is seen; the output layer is padded."""

    def model(tokens: Any) -> Any:
        rows = []
        for row in tokens:
            generator = np.random.default_rng([seed, *row.tolist()])
            rows.append(generator.normal(size=(len(row), columns + 3)) * sharpness)
        return np.stack(rows).astype(np.float32)

    return model


OPTIONS: list[dict[str, Any]] = [
    {},
    {"block": None, "order": "entropy"},
    {"block": 4, "order": "margin", "temperature": 0.7},
    {"order": "random", "pace": {"threshold": 0.6}},
    {"temperature": 1.0, "top_k": 4, "top_p": 0.9},
    {"revision": {"above": 0.6, "most": 3}, "pace": {"threshold": 0.5}},
    {"revision": {"below": 0.1, "most": 3}},
    {"guidance": 1.5},
    {"family": "dream"},
    {"candidates": 4},
    {"open_slots": "next"},
    {key: value for key, value in anygram.Decoder.RENOISING.items() if key != "steps"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "plain")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_at_every_number_of_steps(
    lists: anygram.Constraint, strategy: str, options: dict[str, Any]
) -> None:
    decoder = anygram.Decoder(lists, strategy)
    for steps in (1, 2, 4, 12):
        made = diffusion.generate(
            random_model(seed=steps), [5, 2], lists, length=12, strategy=decoder, steps=steps, **options
        )
        assert made.decoded.is_stuck == (made.text is None) == (None in made.tokens)
        assert made.model_seconds > 0 and made.waited_seconds >= 0
        if strategy in EXACT:
            assert made.text is not None and lists.language.read(made.text).is_sentence, made


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_schemas(records: anygram.Constraint, strategy: str) -> None:
    if strategy == "intersection":
        # IG-CD is defined over terminals that are finite automata, which those of schemas are not.
        with pytest.raises(anygram.AnygramError, match="intersection"):
            diffusion.generate(random_model(len(records.vocabulary)), [5], records, strategy=strategy)
        return
    n_right = 0
    for seed in range(6):
        model = random_model(len(records.vocabulary), seed)
        made = diffusion.generate(model, [5], records, length=24, strategy=strategy, steps=6, seed=seed)
        right = made.text is not None and records.language.read(made.text).is_sentence
        n_right += right
        if right:
            assert made.text is not None and set(json.loads(made.text)) >= {"a"}
    assert n_right == 6 if strategy in EXACT else n_right <= 6
    if strategy == "none":
        assert n_right == 0


def test_what_is_stuck_ends_with_a_text_of_the_intersection(lists: anygram.Constraint) -> None:
    n_completed = 0
    for seed in range(12):
        made, stuck = (
            diffusion.generate(
                random_model(seed=seed), [5], lists, length=9, strategy=strategy, steps=3, seed=seed
            )
            for strategy in (diffusion.WITH_COMPLETION, "intersection")
        )
        # The run is the same; only its end differs.
        assert events(made.decoded) == events(stuck.decoded)
        assert made.completed == stuck.decoded.is_stuck and not stuck.completed
        assert made.text is not None and (made.completed or made.text == stuck.text)
        if made.completed:
            n_completed += 1
            assert lists.language.read(made.text).is_sentence
    assert n_completed > 0


def test_lookahead_takes_parameters(lists: anygram.Constraint) -> None:
    made = {
        strategy: diffusion.generate(random_model(), [5], lists, length=12, strategy=strategy, steps=4)
        for strategy in ("lookahead", "lookahead:N=10:tau=5", "lookahead:N=1:tau=1", "lookahead:published")
    }
    assert events(made["lookahead"].decoded) == events(made["lookahead:N=10:tau=5"].decoded)
    assert anygram.Decoder(lists, "lookahead:N=1").strategy == "lookahead:N=1"
    for wrong in ("lookahead:N=0", "exact:N=3", "lave"):
        with pytest.raises(anygram.AnygramError, match="lookahead:N=3:tau=10"):
            anygram.Decoder(lists, wrong)


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_it_is_the_loop_of_the_library(lists: anygram.Constraint, strategy: str, overlap: bool) -> None:
    """On recorded logits, step by step: the same questions, and the same events in the same order."""
    for number, options in enumerate(OPTIONS[:7]):
        recorded: list[tuple[list[int], Any]] = []
        inner = random_model(seed=number)

        def model(tokens: Any, inner: Any = inner, recorded: Any = recorded) -> Any:
            logits = inner(tokens)
            recorded.append((tokens[0].tolist(), logits[0]))
            return SimpleNamespace(logits=logits)

        prompt = [5, 2, 6]
        made = diffusion.generate(
            model, prompt, lists, length=10, strategy=strategy, steps=5, overlap=overlap, seed=3, **options
        )
        answers = iter(recorded)

        def replay(view: anygram.View, answers: Any = answers, prompt: list[int] = prompt) -> Any:
            seen, logits = next(answers)
            assert seen == [*prompt, *view.tokens]
            return np.ascontiguousarray(logits[[len(prompt) + slot for slot in view.wanted]])

        loop = anygram.Decoder(lists, strategy).decode(
            anygram.Canvas([None] * 10), replay, vocabulary_size=SIZE + 3, steps=5, seed=3, **options
        )
        assert next(answers, None) is None
        assert events(made.decoded) == events(loop)
        assert made.decoded.canvas == loop.canvas


def events(decoded: anygram.Decoded) -> list[dict[str, Any]]:
    return [{name: value for name, value in event.items() if name != "micros"} for event in decoded.events]


def llada(
    model: Callable[[Any], Any], prompt: list[int], length: int, steps: int, block: int, guidance: float
) -> list[int]:
    """LLaDA's generation at temperature 0, from its description: blocks from left to right; in each step the
    surest of the likeliest tokens are kept, as many as it takes to be even over the steps of a block."""
    x = np.array([[*prompt, *[MASK] * length]])
    for first in range(len(prompt), len(prompt) + length, block):
        left = block
        for step in range(steps * block // length):
            logits = model(x)[0][:, :SIZE].astype(np.float64)
            if guidance:
                without = np.where(np.arange(x.shape[1]) < len(prompt), MASK, x)
                plain = model(without)[0][:, :SIZE].astype(np.float64)
                logits = plain + (guidance + 1) * (logits - plain)
            logits[:, MASK] = -np.inf
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
            shares /= shares.sum(axis=1, keepdims=True)
            open_slots = [at for at in range(first, first + block) if x[0, at] == MASK]
            total, parts = block, steps * block // length
            count = total // parts + (step < total % parts)
            for at in sorted(open_slots, key=lambda at: -shares[at].max())[:count]:
                x[0, at] = shares[at].argmax()
            left -= count
    return x[0, len(prompt) :].tolist()


@pytest.mark.parametrize("guidance", [0.0, 1.0])
@pytest.mark.parametrize(("steps", "block"), [(4, 4), (12, 4), (12, 12), (5, 12), (12, 6)])
def test_without_a_constraint_it_is_llada(
    lists: anygram.Constraint, steps: int, block: int, guidance: float
) -> None:
    for seed in range(5):
        inner = random_model(seed=seed)

        def model(tokens: Any, inner: Any = inner) -> Any:
            logits = inner(tokens)
            # LLaDA goes on behind an EOS; here all that follows is EOS.
            logits[..., EOS] = -60
            return logits

        made = diffusion.generate(
            model, [5, 3], lists, length=12, strategy="none", steps=steps, block=block, guidance=guidance
        )
        expected = llada(model, [5, 3], 12, steps, block, guidance)
        assert made.tokens == expected


def test_candidates_of_all_tokens_change_nothing(lists: anygram.Constraint) -> None:
    for strategy in ("exact", "compatible", "intersection", "forced-sequential", "none"):
        for seed in range(5):
            makes = [
                diffusion.generate(
                    random_model(seed=seed),
                    [],
                    lists,
                    length=10,
                    strategy=strategy,
                    steps=4,
                    candidates=count,
                )
                for count in (None, SIZE, 1_000)
            ]
            assert makes[0].tokens == makes[1].tokens == makes[2].tokens


def test_the_loop_continues_a_canvas(lists: anygram.Constraint) -> None:
    canvas = anygram.Canvas([2, None, None, 4, None, anygram.GAP, 3])
    made = diffusion.generate(random_model(), [5], lists, canvas=canvas, steps=3)
    assert made.tokens[0] == 2 and made.tokens[3] == 4 and made.tokens[-1] == 3
    assert made.text is not None and lists.language.read(made.text).is_sentence


def test_equal_seeds_give_equal_texts(lists: anygram.Constraint) -> None:
    def run(seed: int) -> Any:
        model = random_model(seed=1)
        return diffusion.generate(model, [], lists, length=10, temperature=1.0, steps=5, seed=seed).tokens

    assert run(7) == run(7)
    assert len({tuple(run(seed)) for seed in range(8)}) > 1


def test_wrong_arguments(lists: anygram.Constraint) -> None:
    model = random_model()

    def run(model: Any = model, prompt: Any = (), **options: Any) -> None:
        diffusion.generate(model, prompt, lists, length=4, **options)

    for error, match, arguments in [
        (anygram.AnygramError, "compatible", {"strategy": "guess"}),
        (anygram.AnygramError, "family", {"family": "gpt"}),
        (anygram.AnygramError, "candidates is 0", {"candidates": 0}),
        (anygram.AnygramError, "guidance is -1", {"guidance": -1}),
        (anygram.AnygramError, "guidance", {"guidance": 1.0, "open_slots": "noise"}),
        (anygram.AnygramError, "one row|-1", {"prompt": [-1]}),
        (anygram.BufferError, "integers", {"prompt": [0.5]}),
        (anygram.BufferError, "one row", {"prompt": np.zeros((2, 3), dtype=np.int64)}),
        (anygram.BufferError, r"\[1, 4, columns\]", {"model": lambda tokens: np.zeros((1, 3, SIZE))}),
        (anygram.BufferError, r"shape \[\]", {"model": lambda tokens: None}),
        (anygram.AnygramError, "step", {"steps": -1}),
    ]:
        with pytest.raises(error, match=match):
            run(**arguments)
    with pytest.raises(anygram.AnygramError, match="NaN|number"):
        run(lambda tokens: np.full((*tokens.shape, SIZE), np.nan))
    with pytest.raises(ZeroDivisionError):
        run(lambda tokens: 1 / 0)
    other = anygram.Constraint(lists.language, lists.vocabulary)
    with pytest.raises(anygram.AnygramError, match="another constraint"):
        run(strategy=anygram.Decoder(other))
    no_mask = anygram.Constraint(lists.language, anygram.Vocabulary.from_tokens(TOKENS, eos=[EOS]))
    with pytest.raises(anygram.AnygramError, match="open_slots"):
        diffusion.generate(model, [], no_mask, length=4)
    assert diffusion.generate(model, [], no_mask, length=4, open_slots=MASK).text is not None


def test_sessions(lists: anygram.Constraint) -> None:
    decoder = anygram.Decoder(lists)
    session = decoder.begin(anygram.Canvas([None] * 3), steps=1)
    with pytest.raises(anygram.AnygramError, match="view"):
        session.answer(np.zeros((3, SIZE), dtype=np.float32))
    view = session.view()
    assert view is not None and view.wanted == [0, 1, 2] and view.tokens == [MASK] * 3
    session.prepare()
    with pytest.raises(anygram.BufferError, match="float32"):
        session.answer(np.zeros((3, SIZE)))
    with pytest.raises(anygram.AnygramError, match="2 slots; 3 were wanted"):
        session.answer(np.zeros((2, SIZE), dtype=np.float32))
    with pytest.raises(anygram.AnygramError, match="3 tokens, the constraint 10"):
        session.answer(np.zeros((3, 3), dtype=np.float32))
    logits = anygram.LogProbs.listed([[(2, 3.0)]] * 3)
    with pytest.raises(anygram.AnygramError, match="log_softmax"):
        session.answer(logits)
    # The token that is given cannot be; the surest of all slots is kept.
    session.answer(np.tile(np.float32([0, 0, 3, 9, 0, 2, 0, 1, 0, 0]), (3, 1)), given=[(0, 3)])
    assert session.tokens == [None, 3, None] and not session.decoded().is_stuck
    assert session.view() is not None and session.decoder is decoder
    assert repr(session) == "Session(3 slots, 2 open)"
    decoder.begin(anygram.Canvas([None]))
    with pytest.raises(anygram.AnygramError, match="another run"):
        session.view()


# Infilling.

MIDDLE = diffusion.FillInTheMiddle(prefix=[9], suffix=[9], middle=[9], end=[EOS])


@pytest.mark.parametrize("method", ["exact", "intersection"])
def test_regions_are_filled(lists: anygram.Constraint, method: Any) -> None:
    for seed in range(10):
        made = diffusion.infill(
            random_model(seed=seed),
            ["(", ",", ",(", ")"],
            lists,
            MIDDLE,
            method=method,
            most=5,
            seed=seed,
        )
        assert not made.is_stuck and len(made.regions) == 3
        assert lists.language.read(made.text).is_sentence, made
        pieces = [lists.vocabulary.encode(piece) for piece in ("(", ",", ",(", ")")]
        expected = list(pieces[0])
        for region, piece in zip(made.regions, pieces[1:]):
            expected += [*region, *piece]
        assert made.tokens == expected
    again = [diffusion.infill(random_model(), ["(", ")"], lists, MIDDLE, seed=5).tokens for _ in range(2)]
    assert again[0] == again[1]


def test_what_an_infilling_model_sees(lists: anygram.Constraint) -> None:
    seen: list[list[int]] = []

    def model(tokens: Any) -> Any:
        seen.append(tokens[0].tolist())
        logits = np.zeros((*tokens.shape, SIZE), dtype=np.float32)
        logits[0, -1, 5 if len(seen) % 2 else EOS] = 9
        return logits

    markers = diffusion.FillInTheMiddle(prefix=[7], suffix=[8], middle=[9], end=[EOS])
    made = diffusion.infill(model, [[2], [4], [3]], lists, markers, temperature=0)
    assert made.text == "(a,a)" and made.regions == [[5], [5]] and made.n_asked == 4
    assert seen == [
        [7, 2, 8, 4, 3, 9],
        [7, 2, 8, 4, 3, 9, 5],
        [7, 2, 5, 4, 8, 3, 9],
        [7, 2, 5, 4, 8, 3, 9, 5],
    ]


def test_regions_that_the_model_does_not_close(lists: anygram.Constraint) -> None:
    def opens(tokens: Any) -> Any:
        logits = np.zeros((*tokens.shape, SIZE), dtype=np.float32)
        logits[..., 2] = 9
        return logits

    made = diffusion.infill(opens, ["(", ")"], lists, MIDDLE, temperature=0, most=4)
    assert made.regions[0][:4] == [2] * 4 and made.completed == [0]
    assert lists.language.read(made.text).is_sentence and not made.is_stuck
    free = diffusion.infill(opens, ["(", ")"], lists, MIDDLE, temperature=0, most=4, method="none")
    assert free.text == "(((((" + ")" and free.n_refused == 0
    stuck = diffusion.infill(opens, [")", ")"], lists, MIDDLE, temperature=0, most=4, refusals=2)
    assert stuck.is_stuck and stuck.n_refused == 2
    for pieces, markers, options, match in [
        (["("], MIDDLE, {}, "two"),
        (["(", ")"], diffusion.FillInTheMiddle([], [], [], []), {}, "end"),
        (["(", ")"], MIDDLE, {"most": -1}, "most is -1"),
    ]:
        with pytest.raises(anygram.AnygramError, match=match):
            diffusion.infill(opens, pieces, lists, markers, **options)


# A large canvas over a large vocabulary.

LARGE = """
import resource, sys
import anygram, numpy as np
from anygram import diffusion

tokens = [None, None, *(bytes([byte]) for byte in range(256))]
letters = b"abcdefghijklmnopqrstuvwxyz"
word = 0
while len(tokens) < 262144:
    word, rest, text = word + 1, word, b""
    for _ in range(5):
        rest, letter = divmod(rest, 26)
        text += letters[letter : letter + 1]
    tokens.append(text)
vocabulary = anygram.Vocabulary.from_tokens(tokens, eos=[0], mask=1)
schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
          "required": ["a", "b"]}
constraint = anygram.Constraint(anygram.Compiler().compile(schema, "json-schema"), vocabulary)
generator = np.random.default_rng(0)
logits = generator.standard_normal((256, 262144), dtype=np.float32)
session = anygram.Decoder(constraint, sys.argv[1]).begin(anygram.Canvas([None] * 256), steps=32, block=None)
view = session.view()
candidates = None if sys.argv[2] == "all" else int(sys.argv[2])
model = diffusion.Prompted(lambda _: logits[None], [], vocabulary_size=262144, mask=1, candidates=candidates)
session.prepare()
session.answer(model(view))
assert sum(token is not None for token in session.tokens) == 8, session
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="memory is not counted there")
@pytest.mark.parametrize(
    ("strategy", "candidates"), [("exact", "64"), ("exact", "all"), ("best", "64"), ("compatible", "64")]
)
def test_a_step_over_a_large_vocabulary_fits(strategy: str, candidates: str) -> None:
    """A canvas of 256 slots over 262,144 tokens, its logits included (268 MB), within 2 GB."""
    done = subprocess.run(
        [sys.executable, "-c", LARGE, strategy, candidates], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # Bytes on macOS, kilobytes elsewhere.
    n_bytes = int(done.stdout) * (1 if sys.platform == "darwin" else 1024)
    print(f"{strategy}, {candidates} candidates: {n_bytes / 1e6:.0f} MB")
    assert n_bytes < 2e9
