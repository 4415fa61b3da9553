"""Log-probabilities, the best completion, samples, methods, and the decoding loop."""

from __future__ import annotations

from typing import Any

import anygram
import numpy
import pytest
from anygram import GAP, Canvas
from conftest import TOKENS, Batch
from hypothesis import given
from hypothesis import strategies as st
from strategies import grammars, vocabularies

SIZE = len(TOKENS)


def flat(n_rows: int, size: int = SIZE) -> Any:
    return numpy.full((n_rows, size), -2, dtype=numpy.float32)


@pytest.fixture
def weigher(constraint: anygram.Constraint) -> anygram.Weigher:
    return anygram.Weigher(constraint)


def test_the_best_completion(weigher: anygram.Weigher) -> None:
    log_probs = flat(3)
    log_probs[:, 2] = -0.5
    canvas = Canvas([None] * 3)
    best = weigher.best(canvas, log_probs)
    assert (best.answer, best.tokens, best.widened, best.why) == (True, [2, 5, 5], False, None)
    assert best.log_prob == pytest.approx(-4.5)
    free = weigher.best(canvas, log_probs, tail="free")
    assert (free.tokens, free.log_prob) == ([2, 5, 6], -2.5)
    assert weigher.best(Canvas([1, None]), flat(1)).answer is False


def test_kinds_of_log_probs_agree(weigher: anygram.Weigher) -> None:
    canvas = Canvas([None, None, None])
    values = numpy.random.default_rng(1).normal(size=(3, SIZE)).astype(numpy.float32)
    ids = numpy.tile(numpy.arange(SIZE), (3, 1))
    padded = numpy.concatenate([values, numpy.zeros((3, 5), numpy.float32)], axis=1)
    kinds = [
        values,
        padded,
        anygram.LogProbs.dense(values),
        anygram.LogProbs.dense(padded, size=SIZE),
        anygram.LogProbs.top_k(ids, values),
        anygram.LogProbs.top_k(ids.astype(numpy.int32), values),
        anygram.LogProbs.listed([list(enumerate(row)) for row in values.tolist()]),
    ]
    bests = [weigher.best(canvas, kind) for kind in kinds]
    assert len({tuple(best.tokens or ()) for best in bests}) == 1
    assert len(anygram.LogProbs.dense(values)) == 3


def test_floors(weigher: anygram.Weigher) -> None:
    canvas = Canvas([None])
    assert weigher.best(canvas, anygram.LogProbs.listed([[(0, -1.0)]])).widened
    assert weigher.best(canvas, anygram.LogProbs.listed([[(0, -1.0)]], floor=-3)).log_prob == -3
    excluded = anygram.LogProbs.listed([[(0, -1.0)]], floor=float("-inf"))
    assert weigher.best(canvas, excluded).answer is False


@pytest.mark.parametrize(
    "log_probs",
    [
        lambda: flat(2),
        lambda: flat(3, SIZE - 1),
        lambda: flat(3).astype(numpy.float64),
        lambda: numpy.full((3, SIZE), numpy.nan, dtype=numpy.float32),
        lambda: anygram.LogProbs.listed([[(0, 0.0), (0, 0.0)]] * 3),
        lambda: anygram.LogProbs.listed([[(99, 0.0)]] * 3),
        lambda: anygram.LogProbs.top_k(flat(3), flat(3)),
        lambda: anygram.LogProbs.top_k(numpy.full((3, SIZE), -1), flat(3)),
        lambda: anygram.LogProbs.top_k(numpy.zeros((3, 2), numpy.int64), flat(3)),
    ],
)
def test_log_probs_that_do_not_fit(weigher: anygram.Weigher, log_probs: Any) -> None:
    with pytest.raises(anygram.AnygramError):
        weigher.best(Canvas([None] * 3), log_probs())


def test_samples(weigher: anygram.Weigher) -> None:
    samples = weigher.sample(Canvas([None] * 3), flat(3), count=200, seed=7)
    assert samples.answer and samples.tokens is not None and samples.log_probs is not None
    drawn = {tuple(tokens) for tokens in samples.tokens}
    assert drawn == {(0, 2, 1), (2, 5, 5), (2, 5, 6)}
    assert samples.tokens == weigher.sample(Canvas([None] * 3), flat(3), count=200, seed=7).tokens
    with pytest.raises(anygram.AnygramError, match="too many"):
        weigher.sample(Canvas([None] * 3), flat(3), count=1 << 30)
    with pytest.raises(anygram.AnygramError, match="gap"):
        weigher.sample(Canvas([GAP]), flat(0))
    with pytest.raises(anygram.AnygramError, match="tail"):
        weigher.best(Canvas([None] * 3), flat(3), tail="x")


def test_methods(constraint: anygram.Constraint) -> None:
    methods = anygram.Methods(constraint)
    canvas = Canvas([0, None, 1, 1])
    says = {
        name: methods.completable(canvas, name) for name in ("exact", "intersection", "none", "lookahead")
    }
    told = {name: (answer.answer, answer.proven) for name, answer in says.items()}
    assert told["exact"] == (False, True)
    assert told["intersection"] == told["none"] == (True, False)
    assert told["lookahead"][0] is False
    answers = methods.compatible(
        Canvas([0, None, None]), [(1, 2), (2, 2)], "lookahead", log_probs=flat(2), seed=3
    )
    assert [answer.answer for answer in answers] == [True, False]
    with pytest.raises(anygram.AnygramError, match="intersection"):
        methods.completable(canvas, "best")
    for by in ("minimal-dfa", "dfa", "nfa", "earley"):
        told = methods.intersection(canvas, by=by, complete="always", seed=1)
        assert (told.answer, told.proven, told.why) == (True, False, None)
        assert told.text is not None and told.gaps is not None and told.stats["steps"] > 0
    with pytest.raises(anygram.AnygramError, match="earley"):
        methods.intersection(canvas, by="cyk")


@given(
    tokens=vocabularies(),
    source=grammars(),
    n_holes=st.integers(1, 5),
    seed=st.integers(0, 1 << 30),
)
def test_weights_against_the_program(
    batch: Batch, tokens: list[bytes | None], source: str, n_holes: int, seed: int
) -> None:
    eos = len(tokens) - 1
    values = (
        numpy.random.default_rng(seed).integers(-40, 0, size=(n_holes, len(tokens))).astype(numpy.float32) / 8
    )
    asked = {"op": "canvas", "grammar": source, "format": "lark", "lexer": "scannerless"}
    question = {"slots": [None] * n_holes, "log_probs": values.tolist(), "want": ["best", "sample"]}
    [answer] = batch.ask(tokens, [eos], [{**asked, **question, "seed": 5, "count": 3}])
    try:
        language = anygram.Compiler("scannerless").compile(source)
    except (anygram.GrammarError, anygram.LimitError):
        assert "error" in answer
        return
    weigher = anygram.Weigher(anygram.Constraint(language, anygram.Vocabulary.from_tokens(tokens, eos=[eos])))
    best = weigher.best(Canvas([None] * n_holes), values)
    ours = (
        None
        if best.tokens is None
        else {"tokens": best.tokens, "log_prob": best.log_prob, "widened": best.widened}
    )
    assert ours == answer["best"]
    assert weigher.sample(Canvas([None] * n_holes), values, seed=5, count=3).tokens == answer["samples"]


def eager(view: anygram.View) -> Any:
    """Likes brackets that open, everywhere."""
    return numpy.tile(numpy.float32([-0.1, -3, -4, -5, -6, -9, -9]), (len(view.wanted), 1))


@pytest.mark.parametrize("strategy", sorted(anygram.Decoder.STRATEGIES))
@pytest.mark.parametrize("open_slots", ["noise", "next", None])
def test_all_strategies_fill_a_canvas(constraint: anygram.Constraint, strategy: str, open_slots: Any) -> None:
    decoder = anygram.Decoder(constraint, strategy)
    decoded = decoder.decode(Canvas([None] * 5), eager, open_slots=open_slots, steps=8)
    assert (decoded.tokens is None) == decoded.is_stuck
    if strategy == "exact" and open_slots != "next":
        assert decoded.tokens is not None and decoded.canvas.slots == decoded.tokens
        assert anygram.Solver(constraint).completable(decoded.canvas).answer is True
    events = [event["event"] for event in decoded.events]
    assert events.count("asked") == decoded.n_asked > 0 and decoder.strategy == strategy


def test_what_a_model_does_wrong(constraint: anygram.Constraint) -> None:
    decoder, canvas = anygram.Decoder(constraint), Canvas([None] * 4)

    def fails(view: anygram.View) -> Any:
        raise KeyError(f"step {view.step} of {view.steps}: {view.tokens} {view.wanted}")

    with pytest.raises(KeyError, match="step 0"):
        decoder.decode(canvas, fails)
    for wrong in (
        numpy.zeros((4, 3), numpy.float32),
        numpy.zeros((4, SIZE)),
        numpy.zeros(SIZE, numpy.float32),
    ):
        with pytest.raises(anygram.AnygramError):
            decoder.decode(canvas, lambda view, wrong=wrong: wrong)
    with pytest.raises(TypeError):
        decoder.decode(canvas, lambda view: None)
    with pytest.raises(anygram.AnygramError):
        decoder.decode(canvas, lambda view: numpy.full((4, SIZE), numpy.nan, numpy.float32))


@pytest.mark.parametrize(
    "options",
    [
        {"order": "x"},
        {"pace": "fast"},
        {"pace": 0},
        {"pace": {"threshold": 2}},
        {"revision": "x"},
        {"revision": {"below": 3, "most": 1}},
        {"block": 0},
        {"temperature": -1.0},
        {"top_p": 3.0},
        {"open_slots": "x"},
    ],
)
def test_options_of_the_loop_that_cannot_be(constraint: anygram.Constraint, options: dict[str, Any]) -> None:
    with pytest.raises(anygram.AnygramError):
        anygram.Decoder(constraint).decode(Canvas([None] * 4), eager, **options)


def test_options_of_the_loop(constraint: anygram.Constraint) -> None:
    decoder = anygram.Decoder(constraint, "compatible")
    for options in (
        anygram.Decoder.RENOISING | {"steps": 4},
        {"pace": 2, "temperature": 1.0, "top_k": 4, "revision": {"below": 0.1, "most": 3}},
    ):
        first, again = (decoder.decode(Canvas([None] * 5), eager, seed=3, **options) for _ in range(2))
        assert first.tokens == again.tokens
    gap = anygram.Decoder(constraint).decode(Canvas([0, GAP, 1]), eager, inserted=8)
    assert gap.tokens is not None and gap.tokens[0] == 0
    with pytest.raises(anygram.AnygramError, match="exact"):
        anygram.Decoder(constraint, "greedy")


@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float16])
def test_masks_on_logits(dtype: Any) -> None:
    logits = numpy.zeros((2, 40), dtype=dtype)
    masks = numpy.array([[5, 0], [0, 1]], dtype=numpy.uint32)
    anygram.apply_mask(logits, masks)
    assert [numpy.flatnonzero(numpy.isfinite(row)).tolist() for row in logits] == [[0, 2], [32]]
    row = numpy.zeros(70, dtype=dtype)
    anygram.apply_mask(row, masks[1])
    assert numpy.flatnonzero(numpy.isfinite(row)).tolist() == [32]
    anygram.apply_mask(numpy.zeros((3, 3), dtype=dtype), masks[0])
    read_only = numpy.zeros(3, dtype=dtype)
    read_only.flags.writeable = False
    for wrong, mask in (
        (numpy.zeros(3, numpy.float64), masks),
        (numpy.zeros((3, 3), dtype), masks),
        (numpy.zeros(3, dtype), masks.astype(numpy.int64)),
        (read_only, masks[0]),
        (masks, masks),
    ):
        with pytest.raises(anygram.BufferError):
            anygram.apply_mask(wrong, mask)
