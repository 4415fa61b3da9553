"""Lines as `anygram eval` writes them, so that `anygram eval report` reads both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: What tells a generation from all others.
KEY = ("task", "model", "method", "steps", "slots", "block", "temperature", "prompt", "run", "seed")

Record = dict[str, Any]


def key(record: Record) -> tuple[Any, ...]:
    return tuple(record.get(name) for name in KEY)


class Lines:
    """A file of lines that is gone on with: a last line that was cut off is dropped."""

    def __init__(self, path: Path) -> None:
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        records = [json.loads(line) for line in whole.splitlines() if line.strip()]
        self.done = {key(record) for record in records if "task" in record}
        self._file = path.open("r+b" if path.exists() else "w+b")
        self._file.truncate(len(whole))
        self._file.seek(len(whole))

    def write(self, record: Record) -> None:
        self._file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        if "task" in record:
            self.done.add(key(record))

    def close(self) -> None:
        self._file.close()
