"""Benchmarks from local folders: what is asked for, under which grammar, and whether an answer is right.

| name | files in the folder | right |
|---|---|---|
| `humaneval-cpp` | `humaneval_cpp.jsonl[.gz]` as in HumanEval-X | the tests pass, compiled and run here (only with `execute`); the grammar is given (`--grammar`) |
| `json-mode-eval` | `data.jsonl` (`input`, `output`, perhaps `schema`) and `grammars_lark.jsonl[.gz]` (`index`, `grammar`) | equal as JSON |
| `smiles-eval` | `data.jsonl` (`input`, `output`) | equal as text; the grammar is given |
"""

from __future__ import annotations

import gzip
import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAMES = ("humaneval-cpp", "json-mode-eval", "smiles-eval")


@dataclass(frozen=True)
class Problem:
    """Something to answer."""

    benchmark: str
    index: int
    prompt: str
    #: The text of a Lark grammar.
    grammar: str
    #: What the benchmark has as an answer, or the program that tests one.
    wanted: str
    #: What an answer goes on with: it is part of the text that the grammar describes.
    before: str = ""

    def check(self, answer: str, execute: bool = False) -> bool | None:
        """Whether an answer is right; `None` if that cannot be known without running it."""
        if self.benchmark == "json-mode-eval":
            return _same_json(answer, self.wanted)
        if self.benchmark == "smiles-eval":
            return answer.strip() == self.wanted.strip()
        return _passes(self.before + answer + "\n" + self.wanted) if execute else None


def load(name: str, folder: Path, grammar: Path | None = None) -> list[Problem]:
    """Reads a benchmark."""
    if name == "json-mode-eval":
        return list(_json_mode(folder))
    if grammar is None:
        raise ValueError(f"{name} needs a grammar: its answers are all of one language")
    text = grammar.read_text()
    if name == "humaneval-cpp":
        return list(_humaneval(folder, text))
    if name == "smiles-eval":
        rows = enumerate(_lines(_find(folder, "data.jsonl")))
        return [Problem(name, at, row["input"], text, row["output"]) for at, row in rows]
    raise ValueError(f"no benchmark is called {name}; known: {', '.join(NAMES)}")


def _humaneval(folder: Path, grammar: str) -> Iterator[Problem]:
    for row in _lines(_find(folder, "humaneval_cpp.jsonl")):
        index = int(row["task_id"].rsplit("/", 1)[1])
        prompt = f"Complete the function in C++. Answer with the code that follows, nothing else.\n\n{row['prompt']}"
        yield Problem("humaneval-cpp", index, prompt, grammar, row["test"], before=row["declaration"])


def _json_mode(folder: Path) -> Iterator[Problem]:
    grammars = {row["index"]: row["grammar"] for row in _lines(_find(folder, "grammars_lark.jsonl"))}
    for at, row in enumerate(_lines(_find(folder, "data.jsonl"))):
        index = row.get("index", at)
        if index in grammars:
            schema = f"\n\nSchema: {row['schema']}" if row.get("schema") else ""
            yield Problem(
                "json-mode-eval", index, row["input"] + schema, plain(grammars[index]), row["output"]
            )


def plain(grammar: str) -> str:
    """A grammar without llguidance's directive, which Lark does not know."""
    lines = grammar.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("%llguidance"))


def _find(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise ValueError(f"{folder} has no {name}, plain or in gzip")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    return (json.loads(line) for line in text.splitlines() if line.strip())


def _same_json(answer: str, wanted: str) -> bool:
    try:
        return bool(json.loads(answer) == json.loads(wanted))
    except ValueError:
        return False


def _passes(program: str, seconds: float = 10.0) -> bool:
    """Compiles and runs a program. It is a model's: run this where that does no harm."""
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "a.cpp"), Path(folder, "a.out")
        source.write_text(program)
        try:
            compiled = subprocess.run(
                ["g++", "-std=c++17", "-o", binary, source],
                capture_output=True,
                timeout=6 * seconds,
                check=False,
            )
            if compiled.returncode != 0:
                return False
            return (
                subprocess.run(
                    [binary], capture_output=True, timeout=seconds, cwd=folder, check=False
                ).returncode
                == 0
            )
        except subprocess.TimeoutExpired:
            return False
