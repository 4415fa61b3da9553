"""`anygram batch` over a pipe: one JSON question a line, one answer a line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

HOLE = None
Slot = int | None


class BatchError(RuntimeError):
    """The program refused a question, or ended."""


class Batch:
    """A running `anygram batch` for one grammar and vocabulary. Use it as a context manager."""

    def __init__(
        self,
        grammar: Path,
        vocab: Path,
        *,
        eos: Sequence[int],
        mask: int | None = None,
        pad: int | None = None,
        lexer: str | None = None,
        program: str = "anygram",
    ) -> None:
        arguments = [program, "batch", "--grammar", str(grammar), "--vocab", str(vocab)]
        for token in eos:
            arguments += ["--eos", str(token)]
        for name, value in (("--mask", mask), ("--pad", pad), ("--lexer", lexer)):
            if value is not None:
                arguments += [name, str(value)]
        self._process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._id = 0
        #: CPU microseconds of all answers so far.
        self.us = 0.0

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """Asks one question and waits for the answer."""
        self._id += 1
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        try:
            stdin.write(json.dumps({"id": self._id, "op": op, **fields}) + "\n")
            stdin.flush()
        except BrokenPipeError:
            raise BatchError(self._last_words()) from None
        line = stdout.readline()
        if not line:
            raise BatchError(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        self.us += answer.get("us", 0.0)
        if "error" in answer:
            error = answer["error"]
            raise BatchError(error if isinstance(error, str) else error["message"])
        if answer["id"] != self._id:
            raise BatchError(f"an answer to question {answer['id']} came for question {self._id}")
        return answer

    def canvas(self, slots: Sequence[Slot], want: Sequence[str], **fields: Any) -> dict[str, Any]:
        """Asks about a canvas that has to end as a sentence."""
        return self.ask("canvas", slots=list(slots), want=list(want), **fields)

    def is_sentence(self, text: str) -> tuple[bool, bool]:
        """Whether a text is a sentence, and whether it is a viable prefix."""
        answer = self.ask("text", text=text)
        return answer["sentence"], answer["viable"]

    def _last_words(self) -> str:
        stderr = self._process.stderr
        assert stderr is not None
        return f"anygram ended: {stderr.read().strip() or self._process.poll()}"

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
