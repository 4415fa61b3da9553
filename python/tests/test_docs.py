"""What documentation says runs: examples of docstrings, and the code of the pages."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import anygram
import anygram._serving
import anygram.serving
import anygram.sglang
import anygram.transformers
import anygram.vllm
import pytest
from anygram import _native
from conftest import ROOT

PAGES = [ROOT / "README.md", ROOT / "python" / "README.md", *sorted((ROOT / "docs" / "python").glob("*.md"))]
"""Pages with code in Python; those without have only tables."""


def examples() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = finder.find(anygram, "anygram", globs={})
    for module in (anygram._serving, anygram.serving, anygram.sglang, anygram.vllm):
        found += finder.find(module, module.__name__)
    for name in _native.__all__:
        # Classes of the native module do not say that they are from there, so each is named.
        found += finder.find(getattr(_native, name), name, module=False, globs={})
    return [test for test in {test.name: test for test in found}.values() if test.examples]


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_examples_of_docstrings(example: doctest.DocTest) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    told: list[str] = []
    runner.run(example, out=told.append)
    assert not told, "".join(told)


def blocks(page: Path) -> list[Any]:
    """The Python code of a page, in one program: later blocks use what earlier ones made."""
    code = re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return code


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_pages(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks(page)), page.name, "exec"), {"__name__": page.stem})


def test_everything_public_is_described() -> None:
    for name in anygram.__all__:
        described = getattr(anygram, name)
        if not isinstance(described, (type, type(anygram.fill_masks))):
            continue
        assert described.__doc__, name
        for member in (member for member in getattr(described, "__dict__", {}) if not member.startswith("_")):
            assert getattr(described, member).__doc__, f"{name}.{member}"
