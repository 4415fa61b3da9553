"""The exceptions of the package. All of them are values: they can be pickled, and carry what they say."""

from __future__ import annotations


class AnygramError(ValueError):
    """The base of all exceptions of this package.

    Args of the constructor are a message and, by keyword, `kind`.
    """

    kind: str
    """What went wrong, as a word: `invalid_argument`, `limit`, `refused`, `syntax`, `unsupported`, …"""

    def __init__(self, message: str = "", *, kind: str = "invalid_argument") -> None:
        super().__init__(message)
        self.kind = kind


class GrammarError(AnygramError):
    """A grammar or a JSON schema that cannot be used. Its text shows the place, with a caret under it."""

    message: str
    """The reason alone, in one line."""
    line: int | None
    """The line, from 1; `None` if the whole grammar is the reason, and in JSON schemas."""
    column: int | None
    """The column, from 1, in characters."""
    span: tuple[int, int] | None
    """The place as a range of bytes of the UTF-8 text."""
    help: str | None
    """What to do about it."""
    pointer: str | None
    """In a JSON schema: the place as a JSON pointer (RFC 6901)."""

    def __init__(
        self,
        message: str = "",
        *,
        kind: str = "syntax",
        reason: str | None = None,
        line: int | None = None,
        column: int | None = None,
        span: tuple[int, int] | None = None,
        help: str | None = None,
        pointer: str | None = None,
    ) -> None:
        super().__init__(message, kind=kind)
        self.message = message if reason is None else reason
        self.line = line
        self.column = column
        self.span = span
        self.help = help
        self.pointer = pointer


class LimitError(AnygramError):
    """A limit on work or memory was reached. No answer was given."""

    name: str | None
    """The limit, as `Compiler(limits={name: …})` takes it."""
    value: int | None
    """What it was."""

    def __init__(
        self, message: str = "", *, kind: str = "limit", name: str | None = None, value: int | None = None
    ) -> None:
        super().__init__(message, kind=kind)
        self.name = name
        self.value = value


class Cancelled(AnygramError):
    """Somebody called `Cancel.cancel`."""

    def __init__(self, message: str = "", *, kind: str = "cancelled") -> None:
        super().__init__(message, kind=kind)


class VocabularyError(AnygramError):
    """A vocabulary that cannot be loaded or made, or a text that it cannot encode."""

    path: str | None
    """The file, if it came from one."""

    def __init__(self, message: str = "", *, kind: str = "unsupported", path: str | None = None) -> None:
        super().__init__(message, kind=kind)
        self.path = path


class RefusedError(AnygramError):
    """A token that may not come next. The output is as it was."""

    token: int | None
    """The token."""
    byte: int | None
    """The first byte of it that is not allowed; `None` for a special token, and after the end."""
    offset: int | None
    """The number of bytes of text before that byte."""
    accepted_bytes: int
    """The number of bytes of the token before that byte."""
    expected: list[str]
    """The names of the terminals that could have begun or gone on there."""
    could_end: bool
    """Whether the text could have ended there."""
    has_ended: bool
    """Whether the output had ended before."""
    pointer: str | None
    """The JSON pointer of the place in the value of a JSON schema that it is in; `None` outside of such."""
    schema: str | None
    """Which schema that is: its JSON pointer in a structural tag. It is empty if the schema is the whole grammar,
    or stands in a Lark grammar."""
    schema_span: tuple[int, int] | None
    """Where in a Lark grammar the schema stands, in bytes."""
    repeats: bool
    """Whether what is wrong is that in a JSON value a key, or an item that has to differ, would repeat one."""
    repeated_key: str | None
    """The key that the object has already, if that is what is wrong."""

    def __init__(
        self,
        message: str = "",
        *,
        kind: str = "refused",
        token: int | None = None,
        byte: int | None = None,
        offset: int | None = None,
        accepted_bytes: int = 0,
        expected: list[str] | None = None,
        could_end: bool = False,
        has_ended: bool = False,
        pointer: str | None = None,
        schema: str | None = None,
        schema_span: tuple[int, int] | None = None,
        repeats: bool = False,
        repeated_key: str | None = None,
    ) -> None:
        super().__init__(message, kind=kind)
        self.token = token
        self.byte = byte
        self.offset = offset
        self.accepted_bytes = accepted_bytes
        self.expected = [] if expected is None else expected
        self.could_end = could_end
        self.has_ended = has_ended
        self.pointer = pointer
        self.schema = schema
        self.schema_span = schema_span
        self.repeats = repeats
        self.repeated_key = repeated_key


class BufferError(AnygramError):
    """An array that cannot be written to or read from: too few rows or columns, another type, read-only, …"""

    def __init__(self, message: str = "", *, kind: str = "invalid_argument") -> None:
        super().__init__(message, kind=kind)
