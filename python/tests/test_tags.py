"""Structural tags and tools."""

from __future__ import annotations

import json

import anygram
import pytest

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "now",
            "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]},
        },
    }
]
CALL = '<tool_call>\n{"name": "now", "arguments": {"zone": "UTC"}}\n</tool_call>'


def read(tag: object, text: str) -> bool:
    return anygram.Compiler().compile(tag, "structural-tag").read(text).is_sentence


def test_tags_are_dicts_or_texts() -> None:
    tag = {"type": "structural_tag", "format": {"type": "any_text", "excludes": ["<a>"]}}
    for source in (tag, json.dumps(tag)):
        assert read(source, "so <a") and not read(source, "so <a>")
    language = anygram.Compiler().compile(tag, "structural-tag")
    assert language.format == "structural-tag"


def test_refusals_have_a_pointer() -> None:
    with pytest.raises(anygram.GrammarError, match="max_tokens") as refused:
        anygram.Compiler().compile({"format": {"type": "any_text", "max_words": 5}}, "structural-tag")
    assert refused.value.pointer == "/format/max_words"


def test_tools() -> None:
    assert read(anygram.tool_tag(TOOLS, "qwen"), f"Well. {CALL}")
    assert read(anygram.tool_tag(json.dumps(TOOLS), "qwen", tool_choice="none"), "Well.")
    assert not read(anygram.tool_tag(TOOLS, "qwen", tool_choice="none"), CALL)
    assert not read(anygram.tool_tag(TOOLS, "qwen", parallel_tool_calls=False), CALL + CALL)
    choice = {"type": "function", "function": {"name": "now"}}
    assert not read(anygram.tool_tag(TOOLS, "qwen", tool_choice=choice), f"Well. {CALL}")
    with pytest.raises(ValueError, match="qwen"):
        anygram.tool_tag(TOOLS, "gwen")


def test_masks_of_free_text() -> None:
    tokens = [b"<", b"a", b">", b"<a>", b"x", None]
    vocabulary = anygram.Vocabulary.from_tokens(tokens, eos=[5])
    tag = {"format": {"type": "any_text", "excludes": ["<a>"]}}
    language = anygram.Compiler().compile(tag, "structural-tag")
    matcher = anygram.Constraint(language, vocabulary).matcher()
    matcher.advance_all([0, 1])
    assert int(matcher.mask()[0]) == 0b110011
