"""Threads, forks, event loops, pickles."""

from __future__ import annotations

import asyncio
import copy
import os
import pickle
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anygram
import numpy
import pytest
from conftest import allowed

NESTED = 'start: "(" start ")" | "x"'


@pytest.fixture
def busy():  # type: ignore[no-untyped-def]
    """A thread of pure Python that never rests."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            sum(range(1_000))

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stop.set()
    thread.join()


def walk(constraint: anygram.Constraint, out: object, row: int) -> list[list[int]]:
    """The masks of an output that is nested and closed again."""
    matcher, masks = constraint.matcher(), []
    for token in [0] * 5 + [2] + [1] * 5:
        matcher.fill_mask(out, row)
        masks.append(allowed(matcher.mask()))
        matcher.advance(token)
    assert matcher.is_sentence
    return masks


@pytest.mark.parametrize("tables", [1, 2])
def test_threads_share_a_constraint(vocabulary: anygram.Vocabulary, busy: None, tables: int) -> None:
    constraint = anygram.Constraint(anygram.Compiler().compile(NESTED), vocabulary, tables=tables)
    out = anygram.MaskBuffer(numpy.zeros((8, 1), dtype=numpy.uint32))
    with ThreadPoolExecutor(8) as pool:
        walks = list(pool.map(lambda row: walk(constraint, out, row), range(8)))
    assert all(masks == walks[0] for masks in walks)


def test_threads_share_an_output_and_a_solver(constraint: anygram.Constraint) -> None:
    matcher, solver = constraint.matcher(), anygram.Solver(constraint)

    def ask(seed: int) -> None:
        for n_holes in range(1, 6):
            assert solver.completable(anygram.Canvas([None] * n_holes)).answer is True
            assert allowed(matcher.mask()) == [0, 2, 4]
            assert matcher.fork().try_advance([0, 2, 1]) == 3

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))


def in_child(check: object) -> int:
    """Runs a check in a fork; the child's status."""
    assert callable(check)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(60)
            check()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forks_work_while_threads_work(vocabulary: anygram.Vocabulary) -> None:
    constraint = anygram.Constraint(anygram.Compiler().compile(NESTED), vocabulary, tables=2)
    matchers = [constraint.matcher() for _ in range(100)]
    out = numpy.zeros((100, 1), dtype=numpy.uint32)
    # Threads of the parent's pool, which the child does not have.
    assert anygram.fill_masks(matchers, out) == [None] * 100
    assert anygram.Compiler().submit(NESTED).result()
    stop = threading.Event()

    def work() -> None:
        mine = [constraint.matcher() for _ in range(100)]
        rows, n = numpy.zeros((100, 1), dtype=numpy.uint32), 0
        while not stop.is_set():
            n = n % 40 + 1
            for matcher in mine:
                matcher.go_to([0] * n)
            anygram.fill_masks(mine, rows)

    thread = threading.Thread(target=work)
    thread.start()

    def check() -> None:
        assert anygram.fill_masks(matchers, out) == [None] * 100
        assert (out == 21).all()
        fresh = anygram.Constraint(anygram.Compiler().submit(NESTED).result(), vocabulary)
        assert anygram.Solver(fresh).completable(anygram.Canvas([None, None])).answer is True

    try:
        assert [in_child(check) for _ in range(5)] == [0] * 5
    finally:
        stop.set()
        thread.join()


def test_an_event_loop_goes_on_meanwhile() -> None:
    async def run() -> tuple[anygram.Language, int]:
        language = asyncio.create_task(asyncio.to_thread(anygram.Compiler().compile, NESTED))
        n_turns = 0
        while not language.done():
            await asyncio.sleep(0)
            n_turns += 1
        return language.result(), n_turns

    language, n_turns = asyncio.run(run())
    assert language.read("(x)").is_sentence and n_turns > 0


def test_futures() -> None:
    compiler = anygram.Compiler()
    assert compiler.submit(NESTED).result().read("(x)").is_sentence
    with pytest.raises(anygram.GrammarError):
        compiler.submit("start: nowhere").result()
    endless = anygram.Compiler(limits=dict.fromkeys(["dfa_states", "nfa_states", "compile_steps"], 1 << 60))
    begun = endless.submit("[ab]*a[ab]{22}c", "regex")
    while not begun.running():
        pass
    assert not begun.cancel()
    with pytest.raises(anygram.Cancelled):
        begun.result()

    async def run() -> bool:
        future = asyncio.wrap_future(compiler.submit(NESTED))
        return (await future).read("x").is_sentence

    assert asyncio.run(run())


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(constraint: anygram.Constraint, protocol: int) -> None:
    matcher = constraint.matcher(eos=[5])
    matcher.advance_all([4, 2])
    solver = anygram.Solver(constraint)
    canvas = anygram.Canvas([0, None, anygram.GAP], end="prefix", remaining=3)
    canvas.pin(1)
    both = pickle.loads(pickle.dumps((matcher, constraint, solver, canvas, anygram.GAP), protocol))
    again, same, solved, slots, gap = both
    assert again.constraint is same is solved.constraint
    assert (again.tokens, again.eos) == ([4, 2], (5,))
    assert (again.mask() == matcher.mask()).all()
    assert same.vocabulary.fingerprint == constraint.vocabulary.fingerprint
    assert same.language.source == constraint.language.source
    assert slots == canvas and slots.is_pinned(1) and gap is anygram.GAP


def test_pickles_of_languages_and_vocabularies(tmp_path: Path) -> None:
    compiler = anygram.Compiler("longest", limits={"dfa_states": 1000}, key_order=["b"])
    language = pickle.loads(pickle.dumps(compiler)).compile("s: /a+/", start="s")
    again = pickle.loads(pickle.dumps(language))
    assert (again.lexer, again.read("aa").is_sentence) == ("longest", True)
    builtin = pickle.loads(pickle.dumps(anygram.Vocabulary.builtin()))
    assert builtin.fingerprint == anygram.Vocabulary.builtin().fingerprint
    file = tmp_path / "vocabulary.json"
    file.write_text('["a", "b", null]')
    vocabulary = anygram.Vocabulary.from_file(file, eos=[2], names={3: "<|x|>"})
    data = pickle.dumps(vocabulary)
    assert pickle.loads(data).fingerprint == vocabulary.fingerprint
    file.write_text('["a", "c", null]')
    with pytest.raises(anygram.VocabularyError, match="fingerprint"):
        pickle.loads(data)
    of_bytes = anygram.Vocabulary.from_bytes(b'["a"]', "json-array", pad=4)
    assert pickle.loads(pickle.dumps(of_bytes)).pad == 4


def test_pickles_of_errors(constraint: anygram.Constraint) -> None:
    matcher = constraint.matcher()
    with pytest.raises(anygram.RefusedError) as caught:
        matcher.advance(1)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.token) == (anygram.RefusedError, str(caught.value), 1)
    assert again.expected == caught.value.expected


def test_importing_takes_no_other_package() -> None:
    code = (
        "import sys, anygram; print([m for m in ('numpy', 'torch', 'pydantic', 'json') if m in sys.modules])"
    )
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_values_are_their_own_copies(constraint: anygram.Constraint) -> None:
    for value in (constraint, constraint.language, constraint.vocabulary):
        assert copy.copy(value) is copy.deepcopy(value) is value
    assert copy.deepcopy({"constraint": constraint})["constraint"] is constraint
