"""Readers and checks, on folders in the form of the real ones."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from conftest import ROOT, missing

from anygram_eval import benchmarks


def write(path: Path, *rows: dict[str, object]) -> None:
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def test_json_mode_eval(tmp_path: Path) -> None:
    write(tmp_path / "grammars_lark.jsonl.gz", {"index": 1, "grammar": '%llguidance {}\nstart: "{}"\n'})
    rows = [{"input": "x", "output": "{}"}, {"input": "y", "output": '{"a": 1}', "schema": "{}"}]
    write(tmp_path / "data.jsonl", *rows)
    (problem,) = benchmarks.load("json-mode-eval", tmp_path)
    assert (problem.index, problem.grammar) == (1, 'start: "{}"\n')
    assert problem.prompt == "y\n\nSchema: {}"
    assert problem.check('{ "a":1 }') is True
    assert problem.check('{"a": 2}') is False and problem.check("{") is False


def test_smiles_eval(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", {"input": "ethanol", "output": "CCO"})
    grammar = tmp_path / "g.lark"
    grammar.write_text('start: "C"+')
    (problem,) = benchmarks.load("smiles-eval", tmp_path, grammar)
    assert problem.check("CCO\n") is True and problem.check("OCC") is False
    with pytest.raises(ValueError, match="needs a grammar"):
        benchmarks.load("smiles-eval", tmp_path)
    with pytest.raises(ValueError, match="no data.jsonl"):
        benchmarks.load("smiles-eval", tmp_path / "nowhere", grammar)


def test_humaneval_cpp(tmp_path: Path) -> None:
    declaration = "#include<assert.h>\nint one(){\n"
    test = "int main(){ assert(one() == 1); }\n"
    row = {
        "task_id": "CPP/7",
        "prompt": "/* one */\n" + declaration,
        "declaration": declaration,
        "test": test,
    }
    write(tmp_path / "humaneval_cpp.jsonl.gz", row)
    grammar = tmp_path / "g.lark"
    grammar.write_text('start: "x"')
    (problem,) = benchmarks.load("humaneval-cpp", tmp_path, grammar)
    assert problem.index == 7 and problem.before == declaration
    assert problem.check("return 1; }") is None
    if shutil.which("g++") is None:
        missing("no g++")
    assert problem.check("return 1; }", execute=True) is True
    assert problem.check("return 2; }", execute=True) is False
    assert problem.check("return", execute=True) is False


def test_the_shared_benchmarks_are_read() -> None:
    data = ROOT.parent / "shared/data"
    if not data.is_dir():
        missing(f"no shared data at {data}")
    grammar = data / "replay/cpp_he.lark"
    problems = benchmarks.load("humaneval-cpp", data / "humaneval_cpp", grammar)
    assert len(problems) > 100 and all(problem.before and problem.wanted for problem in problems)
