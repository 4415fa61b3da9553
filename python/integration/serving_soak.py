"""Requests of 500 schemas and patterns on 16 threads through the back end for vLLM, cut off at random.

    python python/integration/serving_soak.py [SECONDS]

Needs the package and numpy alone. Fails at a wrong mask: some are compared with that of an output made anew.
Prints what the cache did, and the most memory the process had.
"""

from __future__ import annotations

import enum
import json
import random
import resource
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import anygram
import anygram.vllm
import numpy as np

N_THREADS = 16
N_SOURCES = 500
VOCABULARY = anygram.Vocabulary.builtin()
Asked = enum.Enum("Asked", ["JSON", "REGEX"])


def backend() -> anygram.vllm.Backend:
    outputs = SimpleNamespace(disable_any_whitespace=False, disable_additional_properties=False)
    additional = {"anygram": {"cache_entries": 50, "cache_bytes": 20 << 20}}
    config = SimpleNamespace(structured_outputs_config=outputs, additional_config=additional)
    return anygram.vllm.Backend(config, VOCABULARY, len(VOCABULARY))


def source(n: int) -> tuple[Any, str]:
    if n % 2:
        return Asked.REGEX, f"[a-z]{{1,{n % 7 + 1}}}-{n}"
    schema = {
        "type": "object",
        "properties": {f"k{n}": {"type": "string", "maxLength": n % 9}},
        "required": [f"k{n}"],
        "additionalProperties": False,
    }
    return Asked.JSON, json.dumps(schema)


def allowed(row: Any) -> list[int]:
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def request(made: anygram.vllm.Backend, choose: random.Random, masks: Any, row: int) -> None:
    """One request, with tokens taken back, until it ends or is cut off."""
    grammar = made.compile_grammar(*source(choose.randrange(N_SOURCES)))
    tokens: list[int] = []
    for _ in range(choose.randrange(40)):
        grammar.fill_bitmask(masks, row)
        if choose.random() < 0.02:
            fresh = grammar.output.matcher.constraint.matcher()
            fresh.advance_all(tokens)
            assert (masks[row].view(np.uint32) == fresh.mask()).all(), tokens
        tokens.append(choose.choice(allowed(masks[row])))
        assert grammar.accept_tokens("request", tokens[-1:])
        if choose.random() < 0.2:
            grammar.rollback(1)
            tokens.pop()
        if grammar.is_terminated():
            return


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    made = backend()
    masks = np.full((N_THREADS, -(-len(VOCABULARY) // 32)), -1, dtype=np.int32)
    counts = [0] * N_THREADS
    failed: list[BaseException] = []
    end = time.monotonic() + seconds

    def work(thread: int) -> None:
        choose = random.Random(thread)
        try:
            while time.monotonic() < end and not failed:
                request(made, choose, masks, thread)
                counts[thread] += 1
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(N_THREADS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(min(10.0, seconds / 6))
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{sum(counts)} requests, {most} MiB, {made.constraints.stats}", flush=True)
    if failed:
        raise failed[0]


if __name__ == "__main__":
    main()
