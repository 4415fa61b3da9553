"""What calls of the package take, beside the Rust API and, where installed, llguidance and XGrammar.

    python bench/python/calls.py --bench target/release/anygram-bench
        [--grammar FILE --text TEXT --vocab FILE --eos ID]

Prints JSON. Wall-clock times, the least of several runs, so that other work on the machine counts little; the
share that a busy thread keeps is a median. Each mask is compared with the one that other ways give.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import threading
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anygram
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
TEXT = '{"name": "Ada", "age": 36, "tags": ["a", "b"]}'


def least(call: Callable[[], Any], number: int) -> float:
    """Microseconds of a call."""
    return min(timeit.repeat(call, number=number, repeat=15)) / number * 1e6


def outputs(constraint: anygram.Constraint, text: str, n: int) -> list[anygram.Matcher]:
    """Outputs that stand at the beginnings of a text."""
    tokens = constraint.vocabulary.encode(text)
    matchers = [constraint.matcher() for _ in range(n)]
    for at, matcher in enumerate(matchers):
        matcher.advance_all(tokens[: at % (len(tokens) + 1)])
    return matchers


def ours(constraint: anygram.Constraint, text: str, batches: list[int]) -> dict[str, float]:
    """The package."""
    matcher = constraint.matcher()
    matcher.advance_text(text)
    mask = matcher.mask()
    rows = np.zeros((2, constraint.mask_words), dtype=np.uint32)
    buffer = anygram.MaskBuffer(rows)
    times = {
        "fill_mask_us": least(lambda: matcher.fill_mask(buffer, 1), 2_000),
        "fill_mask_numpy_us": least(lambda: matcher.fill_mask(rows, 1), 1_000),
        "mask_us": least(matcher.mask, 1_000),
    }
    assert (rows[1] == mask).all()
    for n in batches:
        matchers = outputs(constraint, text, n)
        rows = np.zeros((n, constraint.mask_words), dtype=np.uint32)
        buffer = anygram.MaskBuffer(rows)
        assert not any(anygram.fill_masks(matchers, buffer))
        times[f"fill_masks_{n}_us"] = least(lambda: anygram.fill_masks(matchers, buffer), 20)
        assert all((row == matcher.mask()).all() for row, matcher in zip(rows, matchers, strict=True))
    return times


def importing() -> float:
    """Milliseconds of `import anygram` in a new interpreter, the least of several."""
    code = "import time; t = time.perf_counter(); import anygram; print((time.perf_counter() - t) * 1e3)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for _ in range(7)]
    return min(float(run.stdout) for run in runs)


def share_of_a_busy_thread(constraint: anygram.Constraint, text: str) -> float:
    """What a thread of pure Python keeps of its speed while another fills 256 masks every 10 ms."""
    matchers = outputs(constraint, text, 256)
    buffer = anygram.MaskBuffer(np.zeros((256, constraint.mask_words), dtype=np.uint32))
    anygram.fill_masks(matchers, buffer)

    def speed(seconds: float) -> float:
        n, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            sum(range(100))
            n += 1
        return n / (time.perf_counter() - began)

    def beside() -> float:
        stop = threading.Event()

        def fill() -> None:
            while not stop.wait(0.01):
                anygram.fill_masks(matchers, buffer)

        thread = threading.Thread(target=fill)
        thread.start()
        try:
            return speed(0.5)
        finally:
            stop.set()
            thread.join()

    return statistics.median(beside() / speed(0.5) for _ in range(7))


class Tokens:
    """A vocabulary as llguidance takes it."""

    def __init__(self, vocabulary: anygram.Vocabulary) -> None:
        self.bos_token_id, self.eos_token_id = None, vocabulary.eos[0]
        tokens = [vocabulary.bytes(id) for id in range(len(vocabulary))]
        self.special_token_ids = [id for id, token in enumerate(tokens) if token is None]
        self.tokens = [b"\xff<[%d]>" % id if token is None else token for id, token in enumerate(tokens)]
        self.encode = vocabulary.encode

    def __call__(self, text: bytes) -> list[int]:
        return self.encode(text)


def llguidance(
    vocabulary: anygram.Vocabulary, text: str, grammar: str, batches: list[int]
) -> dict[str, float]:
    """llguidance by its own interface. It keeps no mask: each call computes one."""
    import llguidance
    import llguidance.numpy as ll

    tokenizer = llguidance.LLTokenizer(
        llguidance.TokenizerWrapper(Tokens(vocabulary)), n_vocab=len(vocabulary)
    )
    executor = llguidance.LLExecutor()
    began = time.perf_counter()
    first = llguidance.LLMatcher(tokenizer, llguidance.grammar_from("lark", grammar))
    times = {"compile_ms": (time.perf_counter() - began) * 1e3}
    tokens = vocabulary.encode(text)
    assert first.consume_tokens(tokens), first.get_error()
    rows = ll.allocate_token_bitmask(1, len(vocabulary))
    pointer, size = rows.ctypes.data, rows.shape[1] * 4
    times["fill_mask_us"] = least(lambda: first.unsafe_compute_mask_ptr(pointer, size), 500)
    times["fill_mask_numpy_us"] = least(lambda: ll.fill_next_token_bitmask(first, rows, 0), 500)
    for n in batches:
        matchers = [
            (llguidance.LLMatcher(tokenizer, llguidance.grammar_from("lark", grammar)), at) for at in range(n)
        ]
        for matcher, at in matchers:
            matcher.consume_tokens(tokens[: at % (len(tokens) + 1)])
        many = ll.allocate_token_bitmask(n, len(vocabulary))
        times[f"fill_masks_{n}_us"] = least(
            lambda: ll.fill_next_token_bitmask_par(executor, matchers, many), 5
        )
    return times


def xgrammar(vocabulary: anygram.Vocabulary, text: str, batches: list[int]) -> dict[str, float]:
    """XGrammar by its own interface, with its built-in grammar of JSON."""
    import xgrammar as xgr

    tokens = [vocabulary.bytes(id) or b"" for id in range(len(vocabulary))]
    info = xgr.TokenizerInfo(tokens, stop_token_ids=list(vocabulary.eos))
    began = time.perf_counter()
    compiled = xgr.GrammarCompiler(info).compile_builtin_json_grammar()
    times = {"compile_ms": (time.perf_counter() - began) * 1e3}
    ids = vocabulary.encode(text)

    def at(n_tokens: int) -> Any:
        matcher = xgr.GrammarMatcher(compiled)
        assert all(matcher.accept_token(id) for id in ids[:n_tokens])
        return matcher

    rows = xgr.allocate_token_bitmask(1, len(vocabulary))
    first = at(len(ids))
    times["fill_mask_us"] = least(lambda: first.fill_next_token_bitmask(rows, 0), 500)
    batch = xgr.BatchGrammarMatcher()
    for n in batches:
        matchers = [at(row % (len(ids) + 1)) for row in range(n)]
        many = xgr.allocate_token_bitmask(n, len(vocabulary))
        times[f"fill_masks_{n}_us"] = least(lambda: batch.batch_fill_next_token_bitmask(matchers, many), 5)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bench", type=Path, default=ROOT / "target/release/anygram-bench")
    parser.add_argument(
        "--grammar", type=Path, default=Path(__file__).with_name("json.lark"), help="in Lark's notation"
    )
    parser.add_argument("--text", default=TEXT, help="a text of the grammar")
    parser.add_argument("--vocab", type=Path, help="by default the small vocabulary of the package")
    parser.add_argument("--eos", type=int, help="the token that ends an output, which other engines need")
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 32, 256])
    parser.add_argument("--tables", type=int, default=2)
    args = parser.parse_args()

    grammar = args.grammar.read_text()
    eos = [] if args.eos is None else [args.eos]
    vocabulary = (
        anygram.Vocabulary.from_file(args.vocab, eos=eos) if args.vocab else anygram.Vocabulary.builtin()
    )
    began = time.perf_counter()
    language = anygram.Compiler().compile(grammar, "lark")
    compile_ms = (time.perf_counter() - began) * 1e3
    constraint = anygram.Constraint(language, vocabulary, tables=args.tables)
    told: dict[str, Any] = {"vocabulary": len(vocabulary), "tables": args.tables}
    command = [
        args.bench,
        "calls",
        "--grammar",
        args.grammar,
        "--text",
        args.text,
        "--tables",
        str(args.tables),
    ]
    command += ["--vocab", args.vocab] if args.vocab else []
    for n in args.batches:
        command += ["--batches", str(n)]
    told["rust"] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    told["python"] = {"compile_ms": compile_ms, **ours(constraint, args.text, args.batches)}
    told["import_ms"] = importing()
    told["busy_thread_keeps"] = share_of_a_busy_thread(constraint, args.text)
    if vocabulary.eos and importlib.util.find_spec("llguidance"):
        told["llguidance"] = llguidance(vocabulary, args.text, grammar, args.batches)
    if vocabulary.eos and importlib.util.find_spec("xgrammar"):
        told["xgrammar"] = xgrammar(vocabulary, args.text, args.batches)
    print(json.dumps(told, indent=2, default=lambda value: round(value, 3)))


if __name__ == "__main__":
    main()
