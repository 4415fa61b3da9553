"""Canvases and questions about them."""

from __future__ import annotations

import anygram
import pytest
from anygram import GAP, Canvas
from conftest import allowed


@pytest.fixture
def solver(constraint: anygram.Constraint) -> anygram.Solver:
    return anygram.Solver(constraint)


def test_slots_change_in_any_order() -> None:
    canvas = Canvas([0, None, GAP])
    canvas.set(1, 2)
    canvas.pin(1)
    with pytest.raises(anygram.AnygramError, match="pinned"):
        canvas.clear(1)
    canvas.unpin(1)
    canvas.clear(1)
    canvas.split(2, [1, 1])
    assert canvas.slots == [0, None, GAP, 1, 1, GAP]
    canvas.merge(2, 5)
    canvas.open(0)
    canvas.close(3)
    assert (canvas.slots, canvas.holes, len(canvas)) == ([GAP, 0, None], [2], 3)
    other = canvas.copy()
    other.set_end("prefix", remaining=2)
    assert (other.end, other.remaining, other == canvas, other != canvas) == ("prefix", 2, False, True)
    assert repr(other) == 'Canvas([GAP, 0, None], end="prefix", remaining=2)'


@pytest.mark.parametrize(
    "make",
    [
        lambda: Canvas(["x"]),
        lambda: Canvas([-1]),
        lambda: Canvas([None], end="middle"),
        lambda: Canvas([None], remaining=3),
        lambda: Canvas([None], end="prefix", remaining=-1),
        lambda: Canvas([GAP]).set(0, 1),
        lambda: Canvas([]).pin(0),
    ],
)
def test_canvases_that_cannot_be(make: object) -> None:
    assert callable(make)
    with pytest.raises(anygram.AnygramError):
        make()


def test_answers(solver: anygram.Solver) -> None:
    answer = solver.completable(Canvas([0, None, None]))
    assert (answer.answer, answer.proven, answer.witness, answer.why) == (True, True, [0, 2, 1], None)
    assert answer
    no = solver.completable(Canvas([0, None]))
    assert (no.answer, no.proven, no.witness) == (False, True, None)
    assert not no
    gap = solver.completable(Canvas([4, GAP, 1]))
    assert gap.answer is True and gap.witness is not None and isinstance(gap.witness[1], list)
    prefix = solver.completable(Canvas([0, None], end="prefix", remaining=3))
    assert prefix.answer is True and prefix.closing
    assert solver.minimum(Canvas([0, GAP])).tokens == 3
    assert solver.minimum(Canvas([1, GAP])).answer is False


def test_admissible_sets(solver: anygram.Solver) -> None:
    admissible = solver.admissible(Canvas([None, None, None, None]))
    assert admissible.masks.shape == (4, 1) and admissible.masks.dtype.name == "uint32"
    assert not admissible.undecided and not any(admissible.undecided)
    assert list(admissible.undecided) == [None] * 4
    assert [allowed(mask) for mask in admissible.masks] == [[0, 2, 4], [2, 5], [1, 5, 6], [1, 5, 6]]
    assert (admissible.get(0, 0), admissible.get(0, 1), len(admissible)) == (True, False, 4)
    with pytest.raises(anygram.AnygramError):
        admissible.get(4, 0)
    none = solver.admissible(Canvas([2]))
    assert none.masks.shape == (0, 1)


def test_proposals(solver: anygram.Solver) -> None:
    canvas = Canvas([0, None, None])
    assert solver.compatible(canvas, [(2, 1), (1, 0), (1, 2)]) == [True, False, True]
    with pytest.raises(anygram.AnygramError, match="hole"):
        solver.compatible(canvas, [(0, 1)])
    with pytest.raises(anygram.AnygramError, match="token 99"):
        solver.completable(Canvas([99]))


def test_many_canvases_at_once(constraint: anygram.Constraint) -> None:
    solvers = [anygram.Solver(constraint) for _ in range(2)]
    canvases = [Canvas([0, *[None] * n]) for n in range(6)] + [Canvas([99])]
    answers = anygram.batch_canvases(solvers, canvases)
    assert [answer.answer for answer in answers[:-1]] == [False, False, True, True, True, True]
    assert isinstance(answers[-1], anygram.AnygramError)
    [admissible] = anygram.batch_canvases(solvers, [canvases[2]], "admissible")
    assert (admissible.masks == solvers[0].admissible(canvases[2]).masks).all()
    for arguments in ([], canvases), ([solvers[0], solvers[0]], canvases), (solvers, canvases, "best"):
        with pytest.raises(anygram.AnygramError):
            anygram.batch_canvases(*arguments)
    solvers[0].count_stages(True)
    solvers[0].completable(Canvas([None] * 4))
    assert all(count["runs"] > 0 for count in solvers[0].counters)


def test_limits_are_no_answers(vocabulary: anygram.Vocabulary) -> None:
    compiler = anygram.Compiler("longest", limits={"canvas_steps": 1})
    language = compiler.compile('start: start "(" start | "x" | ")"', "lark")
    solver = anygram.Solver(anygram.Constraint(language, vocabulary))
    answer = solver.completable(Canvas([None] * 12 + [0]))
    if answer.answer is None:
        assert answer.why
        with pytest.raises(anygram.AnygramError):
            bool(answer)
