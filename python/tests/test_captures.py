"""Parse trees, and events while a text is written."""

import copy

import pytest

import anygram

SOURCE = 'start: call (";" call)*\ncall: NAME "(" value ")"\nvalue: NUMBER\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/'
LANGUAGE = anygram.Compiler().compile(SOURCE, "lark")


def shown(events: list[anygram.CaptureEvent] | None) -> list[tuple[str, int, int | None]]:
    assert events is not None
    return [(event.rule, event.start, event.end) for event in events]


def test_trees() -> None:
    tree = LANGUAGE.tree("f(1)")
    assert tree is not None
    found = [(node.name, node.is_rule, node.start, node.end, node.depth) for node in tree]
    assert found[:3] == [("start", True, 0, 4, 0), ("call", True, 0, 4, 1), ("NAME", False, 0, 1, 2)]
    assert ("value", True, 2, 3, 2) in found
    assert repr(tree[1]) == 'TreeNode("call", 0..4, depth=1)'
    assert LANGUAGE.tree("f(") is None


def test_events_while_a_text_is_written() -> None:
    captures = anygram.Captures(LANGUAGE)
    assert shown(captures.read("f")) == [("start", 0, None), ("call", 0, None)]
    assert shown(captures.read(b"(12")) == [("value", 2, None)]
    fork = copy.copy(captures)
    assert captures.finish() is None
    told = shown(captures.read(")"))
    assert told == [("value", 2, 4), ("call", 0, 5)]
    assert shown(captures.finish()) == [("start", 0, 5)]
    assert shown(fork.read("3")) == []
    assert repr(fork.read(")")[0]) == 'CaptureEvent("value", 2, 5)'


def test_events_of_tokens() -> None:
    vocabulary = anygram.Vocabulary.from_tokens([b"a", b"b", None, None], eos=[3])
    language = anygram.Compiler().compile('start: "a" call\ncall: <[2]> body\nbody: "b"+', "lark")
    constraint = anygram.Constraint(language, vocabulary)
    captures = anygram.Captures(language)
    told = [shown(captures.read_token(constraint, token)) for token in (0, 2, 1)]
    assert told == [[("start", 0, None)], [], [("call", 1, None), ("body", 1, None)]]
    with pytest.raises(anygram.AnygramError, match="vocabulary of 4"):
        captures.read_token(constraint, 4)
    with pytest.raises(anygram.AnygramError, match="another language"):
        anygram.Captures(LANGUAGE).read_token(constraint, 0)


def test_a_tag_with_few_tokens() -> None:
    tag = {"format": {"type": "tag", "begin": "<", "content": {"type": "any_text", "max_tokens": 1}, "end": ">"}}
    language = anygram.Compiler().compile(tag, "structural-tag")
    assert language.counts_tokens and not LANGUAGE.counts_tokens
    vocabulary = anygram.Vocabulary.from_tokens([b"<", b"a", b"ab", b">", None], eos=[4])
    matcher = anygram.Constraint(language, vocabulary).matcher()
    matcher.advance_all([0, 2])
    assert matcher.mask().tolist() == [0b1000]
    with pytest.raises(anygram.RefusedError):
        matcher.advance(1)
    assert matcher.mask(budget=5).tolist() == [0b1000]
    assert matcher.minimum_tokens(5) == 1
