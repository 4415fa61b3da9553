"""How long a fresh process takes until it has its first mask: vocabulary, schema or grammar, mask.

    target/release/anygram vocab save --vocab tokenizer.json --eos 151643 qwen.anyvocab
    python bench/python/start.py --vocab tokenizer.json qwen.anyvocab --grammar sqlite.lark

For each vocabulary, of the program (`anygram batch`) and of the package: milliseconds from the start of the
process to its answer, and CPU time, each the median and the least of some runs. `import_ms` is for
the package with numpy, `load_ms` for the vocabulary, `compile_ms` for the language. All have to answer alike.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}
WORKER = """
import json, sys, time
began = time.perf_counter()
import anygram, numpy
imported = time.perf_counter()
path, format, source = sys.argv[1:]
vocabulary = anygram.Vocabulary.from_file(path)
loaded = time.perf_counter()
language = anygram.Compiler().compile(source, format)
compiled = time.perf_counter()
mask = anygram.Constraint(language, vocabulary).matcher().mask()
answered = time.perf_counter()
ids = [32 * at + bit for at, word in enumerate(mask.tolist()) if word for bit in range(32) if word >> bit & 1]
parts = {"import_ms": imported - began, "load_ms": loaded - imported, "compile_ms": compiled - loaded}
parts["mask_ms"] = answered - compiled
print(json.dumps({"allowed": ids, **{name: seconds * 1e3 for name, seconds in parts.items()}}))
"""


def run(command: list[str], given: str) -> tuple[dict[str, Any], float, float]:
    """The answer of a process, milliseconds until it is there, and milliseconds of CPU time."""
    before = os.times()
    began = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(given)
    process.stdin.close()
    line = process.stdout.readline()
    wall = time.perf_counter() - began
    if process.wait() != 0:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return json.loads(line), wall * 1e3, cpu * 1e3


def measure(command: list[str], given: str, runs: int) -> tuple[list[int], dict[str, float]]:
    """The allowed tokens, and times."""
    results = [run(command, given) for _ in range(runs)]
    (answer, _, _), walls = results[0], [wall for _, wall, _ in results]
    if any(other["allowed"] != answer["allowed"] for other, _, _ in results):
        raise SystemExit(f"{command[0]} gives different answers")
    times = {
        "ms": statistics.median(walls),
        "least_ms": min(walls),
        "cpu_ms": statistics.mean(cpu for _, _, cpu in results),
    }
    for name in ("import_ms", "load_ms", "compile_ms", "mask_ms"):
        if name in answer:
            times[name] = statistics.median(other[name] for other, _, _ in results)
    return answer["allowed"], {name: round(value, 1) for name, value in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--vocab", nargs="+", required=True, help="files of the same vocabulary")
    parser.add_argument("--grammar", help="a grammar in Lark's notation, in place of the schema")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--program", default=str(ROOT / "target" / "release" / "anygram"))
    args = parser.parse_args()
    if args.grammar:
        format, source = "lark", Path(args.grammar).read_text()
        question = {"id": 1, "op": "mask", "grammar": source, "format": format, "tokens": []}
    else:
        format, source = "json-schema", json.dumps(SCHEMA)
        question = {"id": 1, "op": "mask", "schema": SCHEMA, "tokens": []}
    expected = None
    for vocab in args.vocab:
        commands = {
            "program": [args.program, "batch", "--vocab", vocab],
            "package": [sys.executable, "-c", WORKER, vocab, format, source],
        }
        for name, command in commands.items():
            allowed, times = measure(command, json.dumps(question) + "\n", args.runs)
            if allowed != (expected := expected or allowed):
                raise SystemExit(f"{name} with {vocab} has another mask")
            print(json.dumps({"process": name, "vocab": Path(vocab).name, **times}), flush=True)


if __name__ == "__main__":
    main()
