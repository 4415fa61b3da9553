"""What the examples of Ray share: a constraint that checks texts and repairs them by infilling."""

from __future__ import annotations

import anygram

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 3},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


def constraint(vocabulary: anygram.Vocabulary | None = None) -> anygram.Constraint:
    """Compiled once, in the driver. Pickled, it is its sources: a worker has it in some milliseconds."""
    # A canvas that is not decided soon is given up: the next attempt takes out more, and is easier.
    limits = {"canvas_steps": 50_000}
    compiler = anygram.Compiler(key_order="schema", whitespace="compact", limits=limits)
    language = compiler.compile(SCHEMA, "json-schema")
    return anygram.Constraint(language, vocabulary or anygram.Vocabulary.builtin())


class Repairer:
    """Checks texts, and repairs those that are none of the language. One for each worker."""

    def __init__(self, constraint: anygram.Constraint) -> None:
        self._language = constraint.language
        self._vocabulary = constraint.vocabulary
        self._solver = anygram.Solver(constraint)

    def repair(self, text: str) -> tuple[str | None, bool]:
        """A text of the language, and whether it is the given one; `None` where none was found.

        The reader says up to which byte a text could still have become one. Around it ever more is taken out
        and filled by a gap, a little more behind it than before: what the model wrote there goes on being
        part of the output, unless it fits nowhere.
        """
        data = text.encode()
        reading = self._language.read(data)
        if reading.is_sentence:
            return text, True
        at = reading.length
        for lost in (0, 1, 2, 4, 8, 16, len(data)):
            for back in (0, 1, lost // 2):
                begin, end = max(at - back, 0), min(at + lost, len(data))
                filled = self._fill(data[:begin], data[end:])
                if filled is not None:
                    return filled, False
        return self._fill(b"", b""), False

    def _fill(self, begin: bytes, end: bytes) -> str | None:
        """A text of the language between these two, if there is one."""
        encode = self._vocabulary.encode
        decision = self._solver.completable(anygram.Canvas([*encode(begin), anygram.GAP, *encode(end)]))
        if decision.witness is None:
            return None
        tokens = [slot if isinstance(slot, list) else [slot] for slot in decision.witness]
        filled = self._vocabulary.decode([token for part in tokens for token in part])
        # A gap may begin or end between the bytes of a character, but the whole is UTF-8 if the language is.
        return filled.decode()
