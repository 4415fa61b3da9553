"""Texts that outputs of a request are likely to look like: along them the compile service computes masks
before the first output begins. They are guesses, made of what stands in a schema. Where one is not valid,
masks are computed as far as it is."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from anygram._errors import AnygramError
from anygram._native import Compiler

MAX_DEPTH = 12
"""How deep values are nested."""

MAX_VALUES = 400
"""How many values a text has, with those within others."""

PLAIN = "The name, of 12 a"
"""A string: blanks, digits, a capital and a comma lead to other masks than letters."""

FORMATS: Mapping[str, tuple[str, ...]] = {
    "date": ("2024-05-16", "2023-12-31"),
    "date-time": ("2024-05-16T07:08:09Z", "2023-12-31T14:35:50.123Z", "2024-10-02T23:00:00+00:00"),
    "email": ("jane.doe@example.com",),
    "hostname": ("www.example.com",),
    "ipv4": ("192.168.1.1",),
    "ipv6": ("2001:db8::1",),
    "time": ("07:08:09Z", "14:35:50.123Z"),
    "uri": ("https://www.example.com/a",),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000",),
}
"""Strings of formats; those of a text take turns."""

ANY = {"name": PLAIN, "items": [{"id": 12, "ok": True}, None, -1.5], "more": ["a", "b"]}
"""Where anything is allowed."""


def texts(kind: str, source: str) -> list[str]:
    """Likely outputs of a request, the likeliest first. There is always one; the empty one stands for the
    first mask.

    >>> texts("json", '{"properties": {"a": {"type": "integer", "minimum": 3}, "b": {"enum": ["x", "y"]}}}')
    ['{"a": 12, "b": "x"}', '{"a": 12, "b": "y"}']
    >>> texts("choice", '["yes", "no"]')
    ['yes', 'no']
    """
    if kind == "json_object":
        return [json.dumps(ANY)]
    if kind not in ("json", "choice"):
        return [""]
    try:
        asked: Any = json.loads(source)
        if kind == "choice":
            return [text for text in asked if isinstance(text, str)][:MAX_VALUES]
        # All that is listed, with the first of what can be chosen; and what is required, with the second.
        made = (_Guess(asked, second).value(asked) for second in (False, True))
        found = [_spelled(value) for value in made]
    except (ValueError, RecursionError, OverflowError):
        # The compiler says what is wrong with it, if anything is.
        return [""]
    return list(dict.fromkeys(found))


def _spelled(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # Half of a pair of surrogates is a string, but no text.
    return text if text.encode(errors="replace").decode() == text else json.dumps(value)


class _Guess:
    """A value that a schema describes."""

    def __init__(self, root: Any, is_second: bool) -> None:
        self.root = root
        self.is_second = is_second
        self.left = MAX_VALUES
        self.n_strings = int(is_second)

    def value(self, schema: Any, depth: int = 0) -> Any:
        schema = self._resolved(schema)
        self.left -= 1
        if not schema or depth > MAX_DEPTH or self.left < 0:
            return PLAIN
        if "const" in schema:
            return schema["const"]
        if _listed(schema.get("enum")):
            return self._chosen(schema["enum"])
        kind: Any = schema.get("type")
        if _listed(kind):
            kind = self._chosen(kind)
        if kind is None:
            kind = "object" if "properties" in schema else "array" if "items" in schema else "string"
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        if kind in ("integer", "number"):
            return _number(schema, kind == "integer")
        if kind in ("boolean", "null"):
            return None if kind == "null" else not self.is_second
        self.n_strings += 1
        return _string(schema, self.n_strings)

    def _chosen(self, options: list[Any]) -> Any:
        return options[int(self.is_second) % len(options)]

    def _resolved(self, schema: Any) -> dict[str, Any]:
        """A schema with what it refers to, and with one of what it can be."""
        found: dict[str, Any] = {}
        for one in self._parts(schema):
            for name, value in one.items():
                if name == "properties" and isinstance(value, dict) and isinstance(found.get(name), dict):
                    found[name] = {**value, **found[name]}
                elif name == "required" and _listed(value) and _listed(found.get(name)):
                    found[name] = [*found[name], *value]
                else:
                    found.setdefault(name, value)
        return found

    def _parts(self, schema: Any) -> Iterator[dict[str, Any]]:
        """All schemas that describe the same value, as far as one follows from the other."""
        open = [schema]
        for _ in range(4 * MAX_DEPTH):
            if not open:
                return
            schema = open.pop()
            if not isinstance(schema, dict):
                continue
            one = cast("dict[str, Any]", schema)
            yield one
            reference = one.get("$ref")
            if isinstance(reference, str):
                open.append(self._place(reference))
            for name in ("anyOf", "oneOf"):
                if _listed(one.get(name)):
                    open.append(self._chosen(one[name]))
            if _listed(one.get("allOf")):
                open.extend(reversed(one["allOf"]))

    def _place(self, reference: str) -> Any:
        """Where a pointer into the document leads."""
        at = self.root if reference.startswith("#") else None
        for part in reference.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            at = cast("dict[str, Any]", at).get(name) if isinstance(at, dict) else None
        return at

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        given: Any = schema.get("properties")
        properties = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        required: list[Any] = schema["required"] if _listed(schema.get("required")) else []
        names = [name for name in properties if not self.is_second or name in required]
        names += [name for name in required if isinstance(name, str) and name not in properties]
        made: dict[str, Any] = {}
        for name in names:
            if self.left < 0:
                break
            made[name] = self.value(properties.get(name), depth + 1)
        more: Any = schema.get("additionalProperties")
        of_patterns: Any = schema.get("patternProperties")
        if isinstance(of_patterns, dict):
            for pattern, value in cast("dict[str, Any]", of_patterns).items():
                key = _of_known_pattern(json.dumps({"type": "string", "pattern": pattern}), ("a",))[-1]
                made.setdefault(key, self.value(value, depth + 1))
        elif not properties and isinstance(more, dict):
            made.setdefault("a", self.value(more, depth + 1))
        return made

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        first: Any = schema.get("prefixItems", schema.get("items"))
        if _listed(first):
            return [self.value(item, depth + 1) for item in first[: max(self.left, 0)]]
        least, most = _whole(schema, "minItems", 0), _whole(schema, "maxItems", MAX_VALUES)
        n_items = min(max(least, 1 if self.is_second else 2), most, MAX_VALUES)
        # Each is counted: lists of lists grow fast.
        made: list[Any] = []
        while len(made) < n_items and self.left > 0:
            made.append(self.value(schema.get("items"), depth + 1))
        return made


def _listed(value: Any) -> bool:
    return isinstance(value, list) and bool(cast("list[Any]", value))


def _whole(schema: dict[str, Any], name: str, otherwise: int) -> int:
    value: Any = schema.get(name)
    return value if type(value) is int and value >= 0 else otherwise


def _bound(schema: dict[str, Any], name: str) -> float | None:
    value: Any = schema.get(name)
    return value if type(value) in (int, float) else None


def _number(schema: dict[str, Any], is_whole: bool) -> int | float:
    low, high = _bound(schema, "minimum"), _bound(schema, "maximum")
    above, below = _bound(schema, "exclusiveMinimum"), _bound(schema, "exclusiveMaximum")
    value = 12 if is_whole else 12.5
    if high is not None and value > high or below is not None and value >= below:
        value = math.floor(high) if high is not None else math.ceil(below or 0) - 1
    if low is not None and value < low or above is not None and value <= above:
        value = math.ceil(low) if low is not None else math.floor(above or 0) + 1
    step = _bound(schema, "multipleOf")
    return math.ceil(value / step) * step if step and step > 0 else value


def _string(schema: dict[str, Any], turn: int) -> str:
    form: Any = schema.get("format")
    known = FORMATS.get(form) if isinstance(form, str) else None
    if known is None and "pattern" in schema:
        named: list[Any] = schema["examples"] if _listed(schema.get("examples")) else []
        likely = [text for text in (*named, schema.get("default")) if isinstance(text, str)]
        asked = {name: schema[name] for name in ("minLength", "maxLength", "pattern") if name in schema}
        known = _of_known_pattern(json.dumps({"type": "string", **asked}), (*likely, PLAIN))
    if known:
        return known[turn % len(known)]
    least, most = _whole(schema, "minLength", 0), _whole(schema, "maxLength", MAX_VALUES)
    text = PLAIN + "a" * (min(least, MAX_VALUES) - len(PLAIN))
    return text[: min(most, MAX_VALUES)]


def _of_pattern(schema: str, likely: tuple[str, ...]) -> tuple[str, ...]:
    """The first of some strings that a schema of strings allows, or others that it does."""
    try:
        language = Compiler().compile(schema, "json-schema")
        for text in likely:
            if language.read(json.dumps(text)).is_sentence:
                return (text,)
        return tuple(json.loads(text) for text in language.examples(2)) or (PLAIN,)
    except AnygramError:
        # The compiler of the whole schema says so.
        return (PLAIN,)


_of_known_pattern: Callable[[str, tuple[str, ...]], tuple[str, ...]]
_of_known_pattern = functools.lru_cache(maxsize=1024)(_of_pattern)
