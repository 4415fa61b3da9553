"""The page that shows runs of the decoding loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anygram
import numpy
import pytest

GRAMMAR = 'start: "(" start ")" | "x"'
HOSTILE = "</script><script>alert(1)</script><!-- \u2028"


@pytest.fixture
def constraint() -> anygram.Constraint:
    vocabulary = anygram.Vocabulary.from_tokens([b"(", b")", b"x", None, None], eos=[3], mask=4)
    return anygram.Constraint(anygram.Compiler().compile(GRAMMAR, "lark"), vocabulary)


def model(view: anygram.View) -> Any:
    return numpy.tile(numpy.float32([-0.1, -3, -4, -9, -99]), (len(view.wanted), 1))


def data_of(page: str) -> Any:
    _, rest = page.split('<script id="data" type="application/json">')
    data, _ = rest.split("</script>", 1)
    assert "<" not in data
    return json.loads(data)


def test_a_page_has_its_runs(constraint: anygram.Constraint, tmp_path: Path) -> None:
    replay = anygram.Replay(constraint, {"prompt": HOSTILE, "steps": 2})
    runs = {}
    for strategy in ["exact", "none"]:
        decoder = anygram.Decoder(constraint, strategy)
        runs[strategy] = decoder.decode(anygram.Canvas([0, None, None, None, 1]), model, steps=2)
        replay.add(strategy, runs[strategy], functional=strategy == "exact")
    assert repr(replay) == "Replay(exact, none)"
    path = tmp_path / "replay.html"
    replay.save(path)
    assert path.read_text("utf-8") == replay.page()
    data = data_of(replay.page())
    assert data["facts"] == [["prompt", HOSTILE], ["steps", "2"]]
    assert (data["vocabulary"], data["eos"]) == (5, [3])
    for run, (strategy, decoded) in zip(data["runs"], runs.items(), strict=True):
        assert (run["method"], run["final"]) == (strategy, decoded.tokens)
        assert run["functional"] == run["syntactic"] == (strategy == "exact")
        assert sum(event[0] == "asked" for event in run["events"]) == decoded.n_asked
        assert sum(event[0] == "refused" for event in run["events"]) == decoded.n_refused
        assert all(str(token) in data["tokens"] for token in run["final"])
    assert data["runs"][0]["text"] == "((x))"


def test_a_page_without_runs_is_a_page(constraint: anygram.Constraint) -> None:
    assert data_of(anygram.Replay(constraint).page())["runs"] == []


def test_what_cannot_be_shown_is_said(constraint: anygram.Constraint, tmp_path: Path) -> None:
    larger = anygram.Vocabulary.from_tokens([b"(", b")", b"x", None, None, b"((("], eos=[3], mask=4)
    other = anygram.Constraint(anygram.Compiler().compile(GRAMMAR, "lark"), larger)
    decoded = anygram.Decoder(other).decode(anygram.Canvas([5, 2, 1, 1, 1]), model, vocabulary_size=6)
    with pytest.raises(anygram.AnygramError, match="token 5 is none of the 5"):
        anygram.Replay(constraint).add("exact", decoded)
    with pytest.raises(OSError, match="No such file"):
        anygram.Replay(constraint).save(tmp_path / "missing" / "replay.html")
