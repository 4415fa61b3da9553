"""JSON schemas of Python's types, by the libraries that define them. They are imported only if they are
used."""

from __future__ import annotations

import json
import sys
from typing import Any

from anygram._errors import AnygramError


def text_of(source: object) -> str:
    """A schema, or any value that JSON has, as JSON; of a type its schema."""
    schema = source if _is_json(source) else schema_of(source)
    try:
        return json.dumps(schema, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise AnygramError(f"the schema cannot be written as JSON: {error}") from error


def _is_json(source: object) -> bool:
    return source is None or isinstance(source, (dict, list, tuple, str, bool, int, float))


def schema_of(source: Any) -> Any:
    """The JSON schema of a type: of a Pydantic model or adapter by itself, of all others by Pydantic."""
    for method in ("model_json_schema", "json_schema", "__json_schema__"):
        found = getattr(source, method, None)
        if callable(found):
            return found()
    # What cannot be a type is refused before Pydantic is imported for it.
    if not isinstance(source, type) and not hasattr(source, "__origin__") and not _is_union(source):
        raise TypeError(
            f"{type(source).__name__} is no schema: give a dict, JSON, a Pydantic model or another type"
        )
    try:
        from pydantic import PydanticUserError, TypeAdapter
        from pydantic.errors import PydanticInvalidForJsonSchema
    except ImportError as error:
        raise AnygramError(
            f"the schema of {source!r} is made by Pydantic, which is not installed: `pip install pydantic`, "
            "or give the schema as a dict",
            kind="unsupported",
        ) from error
    try:
        return TypeAdapter(source).json_schema()
    except (PydanticUserError, PydanticInvalidForJsonSchema) as error:
        raise AnygramError(
            f"Pydantic has no JSON schema of {source!r}: {error}", kind="unsupported"
        ) from error


def _is_union(source: object) -> bool:
    types = sys.modules.get("types")
    return types is not None and isinstance(source, types.UnionType)
