"""What tests share: the program to compare with, small constraints, and random ones."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anygram
import hypothesis
import pytest

ROOT = Path(__file__).resolve().parents[2]

hypothesis.settings.register_profile(
    "anygram",
    # Times vary on loaded machines; what was found once is in a test of its own, not in a data base.
    deadline=None,
    database=None,
    print_blob=True,
    max_examples=int(os.environ.get("ANYGRAM_EXAMPLES", "30")),
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.function_scoped_fixture],
)
hypothesis.settings.load_profile("anygram")


def program() -> Path:
    """The program `anygram`: the answers to compare with."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    found = Path(os.environ.get("ANYGRAM_PROGRAM", target / "release" / "anygram"))
    if not found.exists():
        pytest.fail(f"{found} is not there: run `cargo build --release`, or set ANYGRAM_PROGRAM")
    return found


class Batch:
    """Answers of `anygram batch`."""

    def __init__(self, folder: Path) -> None:
        self._program = program()
        self._folder = folder

    def ask(
        self, tokens: Sequence[bytes | None], eos: Sequence[int], questions: Sequence[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """One answer for each question."""
        vocabulary = self._folder / "vocabulary.json"
        listed = [None if token is None else {"hex": token.hex()} for token in tokens]
        vocabulary.write_text(json.dumps(listed))
        command = [self._program, "batch", "--vocab", vocabulary]
        for id in eos:
            command += ["--eos", str(id)]
        lines = "".join(json.dumps(question) + "\n" for question in questions)
        done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def batch(tmp_path: Path) -> Batch:
    return Batch(tmp_path)


TOKENS: list[bytes | None] = [b"(", b")", b"x", b"()", b"((", None, None]
"""A small vocabulary; token 5 is EOS, 6 is PAD."""


@pytest.fixture
def vocabulary() -> anygram.Vocabulary:
    return anygram.Vocabulary.from_tokens(TOKENS, eos=[5], pad=6)


@pytest.fixture
def constraint(vocabulary: anygram.Vocabulary) -> anygram.Constraint:
    language = anygram.Compiler().compile('start: "(" start ")" | "x"', "lark")
    return anygram.Constraint(language, vocabulary)


def allowed(mask: Any) -> list[int]:
    """The tokens of a mask."""
    return [32 * at + bit for at, word in enumerate(mask.tolist()) for bit in range(32) if word >> bit & 1]
