"""JSON schemas of Python's types, by the libraries that describe them."""

from __future__ import annotations

import dataclasses
import enum
import json
import subprocess
import sys
from typing import Any, Literal, Optional

import anygram
import pydantic
import pytest
from typing_extensions import TypedDict  # with Pydantic; `typing` has it from 3.12 on


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Model(pydantic.BaseModel):
    name: str
    color: Color
    parent: Optional[Model] = None


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Keys(TypedDict):
    a: list[int]


def reads(source: Any, text: str) -> bool:
    return anygram.Compiler().compile(source, "json-schema").read(text).is_sentence


@pytest.mark.parametrize(
    ("source", "valid", "invalid"),
    [
        ({"type": "integer"}, "17", '"17"'),
        ('{"type": "integer"}', "17", '"17"'),
        (True, "[]", "["),
        (
            Model,
            '{"name":"x","color":"red","parent":{"name":"y","color":"blue"}}',
            '{"name":"x","color":"green"}',
        ),
        (Point, '{"x":1}', '{"y":1}'),
        (Keys, '{"a":[1,2]}', '{"a":[true]}'),
        (Literal["yes", "no"], '"yes"', '"maybe"'),
        (Color, '"blue"', '"RED"'),
        (int | None, "null", '"1"'),
        (Optional[int], "null", '"1"'),
        (list[Point], '[{"x":1}]', "[1]"),
        (pydantic.TypeAdapter(dict[str, int]), '{"k":1}', '{"k":null}'),
    ],
)
def test_sources(source: Any, valid: str, invalid: str) -> None:
    assert reads(source, valid)
    assert not reads(source, invalid)


@pytest.mark.parametrize("source", [object(), len, b"{}", {1, 2}])
def test_what_is_no_schema(source: Any) -> None:
    with pytest.raises((TypeError, anygram.AnygramError)):
        anygram.Compiler().compile(source, "json-schema")


@pytest.mark.parametrize(
    "source", [{"type": object()}, {"minimum": float("nan")}, "{", {"$ref": "#/nowhere"}]
)
def test_schemas_with_errors(source: Any) -> None:
    with pytest.raises(anygram.AnygramError):
        anygram.Compiler().compile(source, "json-schema")


def test_documents_and_options() -> None:
    compiler = anygram.Compiler(
        documents={"http://x/a": {"type": "integer"}, "http://x/b": '{"const": 1}'}, key_order="schema"
    )
    schema = {
        "properties": {"b": {"$ref": "http://x/a"}, "a": {"$ref": "http://x/b"}},
        "required": ["a", "b"],
    }
    language = compiler.compile(schema, "json-schema")
    assert language.read('{"b":2,"a":1}').is_sentence
    assert not language.read('{"a":1,"b":2}').is_sentence
    assert json.loads(language.source) == schema


def test_pydantic_is_imported_only_for_types() -> None:
    code = "import sys, anygram; anygram.Compiler().compile({}, 'json-schema'); "
    code += "assert 'pydantic' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
