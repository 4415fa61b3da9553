"""Requests with 500 schemas and grammars on 16 threads through the back end for vLLM, aborted at random.

    python python/integration/serving_soak.py [REQUESTS]

Needs the package, numpy and the program `anygram` (`cargo build --release`, or ANYGRAM_PROGRAM). By default
10,000 requests: JSON schemas, some with a budget, regular expressions, grammars in Lark's notation and EBNF,
and choices; some with errors, some that take seconds to compile. They are aborted while their grammar
compiles, at its deadline, and while they write.

Fails at a wrong mask, where a sample is compared with `anygram batch`; if more memory is kept than the bound,
after requests are gone; if a compilation or a waiting request is left; and if it stands still for a minute.
"""

from __future__ import annotations

import collections
import enum
import faulthandler
import gc
import json
import os
import random
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anygram
import anygram.vllm
import numpy as np
from anygram.serving import _choice

N_THREADS = 16
N_SOURCES = 500
BOUND = 24 << 20
"""Bytes of constraints that are kept: a fraction of what all of them have."""
VOCABULARY = anygram.Vocabulary.builtin()
EOS = VOCABULARY.eos[0]
Asked = enum.Enum("Asked", ["JSON", "REGEX", "GRAMMAR", "CHOICE"])
OPTIONS = {"key_order": "schema", "whitespace": {"at_most": 1}}
SAMPLED = 0.02


def backend() -> anygram.vllm.Backend:
    outputs = SimpleNamespace(disable_any_whitespace=False, disable_additional_properties=False)
    additional = {"anygram": {"cache_entries": 200, "cache_bytes": BOUND, "compile_threads": 2}}
    config = SimpleNamespace(structured_outputs_config=outputs, additional_config=additional)
    return anygram.vllm.Backend(config, VOCABULARY, len(VOCABULARY))


def schema(n: int) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            f"k{n}": {"type": "string", "maxLength": 3 + n % 9},
            "list": {"type": "array", "items": {"enum": [n, None, f"v{n}"]}, "maxItems": 3},
        },
        "required": [f"k{n}"],
        "additionalProperties": False,
    }


def source(n: int) -> tuple[Any, str, dict[str, Any]]:
    """What a request asks for, and the same as a question of `anygram batch`."""
    if n % 50 == 0:
        # With an error.
        return Asked.GRAMMAR, f"start: nothing{n}", {}
    if n % 50 == 1:
        # Takes longer than such a request waits, mostly.
        return Asked.JSON, json.dumps({"enum": [f"{n}.{at}" * 20 for at in range(6_000)]}), {}
    match n % 5:
        case 0:
            return Asked.JSON, json.dumps(schema(n)), {"schema": schema(n), "options": OPTIONS}
        case 1:
            most = 30 + n % 20
            text = json.dumps({**schema(n), "x-anygram": {"max_tokens": most}})
            return Asked.JSON, text, {"schema": schema(n), "options": OPTIONS, "budget": most - 1}
        case 2:
            text = f"[a-z]{{1,{n % 7 + 1}}}-{n}"
            return Asked.REGEX, text, {"grammar": text, "format": "regex"}
        case 3 if n % 2:
            text = f'start: "n{n}" _sum\n_sum: NUMBER | "(" _sum ("+" _sum)* ")"\nNUMBER: /[0-9]+/'
            return Asked.GRAMMAR, text, {"grammar": text, "format": "lark"}
        case 3:
            text = f'root ::= "n{n}" value\nvalue ::= [a-c]+ | "(" value ")"'
            return Asked.GRAMMAR, text, {"grammar": text, "format": "ebnf"}
        case _:
            text = json.dumps([f"yes {n}", f"no {n}", "perhaps"])
            return Asked.CHOICE, text, {"grammar": _choice(text), "format": "lark"}


class Request:
    """What the back end reads of a request of vLLM."""

    def __init__(self, aborted_at: float) -> None:
        self.sampling_params = SimpleNamespace()
        self._aborted_at = aborted_at

    def is_finished(self) -> bool:
        return time.monotonic() > self._aborted_at


class Soak:
    """All threads share it."""

    def __init__(self, n_requests: int) -> None:
        self.backend = backend()
        self.masks = np.full((N_THREADS, -(-len(VOCABULARY) // 32)), -1, dtype=np.int32)
        self.n_requests = n_requests
        self.counts: collections.Counter[str] = collections.Counter()
        self.samples: list[tuple[dict[str, Any], list[int], Any]] = []
        self.failed: list[BaseException] = []
        self.lock = threading.Lock()

    def thread(self, number: int) -> None:
        choose = random.Random(number)
        try:
            while not self.failed:
                with self.lock:
                    if self.counts["requests"] >= self.n_requests:
                        return
                    self.counts["requests"] += 1
                ended = self.request(choose, number)
                with self.lock:
                    self.counts[ended] += 1
        except BaseException as error:
            self.failed.append(error)

    def request(self, choose: random.Random, row: int) -> str:
        """One request, with drafts taken back, until it ends or is aborted; how it ended."""
        n = choose.randrange(N_SOURCES)
        kind, text, question = source(n)
        patience = 0.02 if n % 50 == 1 or choose.random() < 0.1 else 60.0
        try:
            with self.backend.serving(Request(time.monotonic() + patience)):
                grammar = self.backend.compile_grammar(kind, text)
        except anygram.Cancelled:
            return "aborted while compiling"
        except anygram.GrammarError:
            assert n % 50 == 0, text
            return "errors"
        if not question:
            # On a loaded machine it may be compiled before the request is seen to be aborted.
            return "compiled in spite of all"
        tokens: list[int] = []
        for _ in range(choose.randrange(60)):
            grammar.fill_bitmask(self.masks, row)
            bits = allowed(self.masks[row])
            assert bits and grammar.output.error is None, (text, tokens, grammar.output.error)
            if choose.random() < SAMPLED:
                self.samples.append((question, list(tokens), self.masks[row].copy()))
            tokens.append(choose.choice(bits))
            assert grammar.accept_tokens("request", tokens[-1:])
            if grammar.is_terminated():
                return "ended"
            if choose.random() < 0.2:
                grammar.rollback(1)
                tokens.pop()
        return "aborted while writing"


def allowed(row: Any) -> list[int]:
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def compare(samples: list[tuple[dict[str, Any], list[int], Any]]) -> None:
    """The masks with those of the program."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    program = os.environ.get("ANYGRAM_PROGRAM", str(target / "release" / "anygram"))
    questions = []
    for at, (question, tokens, _) in enumerate(samples):
        asked = {"id": at, "op": "mask", "tokens": tokens, **question}
        if "budget" in asked:
            asked["budget"] -= len(tokens)
        questions.append(json.dumps(asked) + "\n")
    done = subprocess.run(
        [program, "batch", "--vocab", "builtin"],
        input="".join(questions),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(samples)
    for answer, (question, tokens, mask) in zip(answers, samples, strict=True):
        bits = allowed(mask)
        assert "error" not in answer, (answer, question)
        assert answer["allowed"] == [bit for bit in bits if bit != EOS], (question, tokens)
        assert answer["eos"] == (EOS in bits), (question, tokens)


def main() -> None:
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        # glibc gives threads heaps of their own, of which each keeps what the largest grammar took.
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "MALLOC_ARENA_MAX": "2"})
    n_requests = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    soak = Soak(n_requests)
    service = soak.backend.service
    began, cpu = time.perf_counter(), time.process_time()
    threads = [threading.Thread(target=soak.thread, args=(n,), daemon=True) for n in range(N_THREADS)]
    for thread in threads:
        thread.start()
    resident: list[int] = []
    kept: list[int] = []
    moved, seen = time.monotonic(), -1
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.1)
        kept.append(service.stats["bytes"] - service.stats["leaving_bytes"])
        resident.append(_resident())
        if soak.counts["requests"] != seen:
            moved, seen = time.monotonic(), soak.counts["requests"]
        if time.monotonic() - moved > 60:
            faulthandler.dump_traceback()
            sys.exit("it stands still")
    if soak.failed:
        raise soak.failed[0]
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    end = time.monotonic() + 30
    while service.stats["compiling"] or service.stats["waiting"]:
        assert time.monotonic() < end, service.stats
        time.sleep(0.01)
    gc.collect()
    service._sweep()
    stats = service.stats
    assert stats["leaving_bytes"] == 0 and stats["bytes"] <= BOUND, stats
    compare(soak.samples)
    # The first third warms everything up.
    third = resident[len(resident) // 3]
    print(
        json.dumps({**soak.counts, "seconds": round(took, 1), "cpu_seconds": round(cpu, 1), "stats": stats})
    )
    print(
        f"{len(soak.samples)} masks are those of `anygram batch`; kept at most "
        f"{max(kept) / 2**20:.1f} MiB, bound {BOUND / 2**20:.0f}; "
        f"resident {third} MiB after a third, at most {max(resident)} MiB, "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB at the peak"
    )
    assert len(soak.samples) > n_requests / 100
    # Languages grow with masks between two looks at them, and hundreds of new ones come in a second here.
    assert max(kept) < 1.1 * BOUND, "more is kept than the bound"
    if n_requests >= 2000:
        assert max(resident) < third + 64, "memory grows"


def _resident() -> int:
    """MiB of the process, where the system tells."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * resource.getpagesize() >> 20


if __name__ == "__main__":
    main()
