"""Random vocabularies, grammars, schemas and canvases, small enough to have interesting collisions."""

from __future__ import annotations

from typing import Any

import anygram
from hypothesis import strategies as st

LETTERS = "ab(),"


@st.composite
def vocabularies(draw: st.DrawFn, letters: str = LETTERS) -> list[bytes | None]:
    """All letters, some longer tokens, and last EOS."""
    longer = draw(st.lists(st.text(letters, min_size=2, max_size=4), max_size=12, unique=True))
    return [letter.encode() for letter in letters] + [token.encode() for token in longer] + [None]


@st.composite
def grammars(draw: st.DrawFn) -> str:
    """A grammar in Lark's notation: rules in any recursion, terminals that overlap."""
    names = ["start", "p", "q"][: draw(st.integers(1, 3))]
    literal = st.text(LETTERS, min_size=1, max_size=2).map(lambda text: f'"{text}"')
    pattern = st.sampled_from(["/a+/", "/[ab]/", "/a?b/", "/[(),]+/"])
    symbol = st.one_of(literal, pattern, st.sampled_from(names))
    sequence = st.lists(symbol, min_size=1, max_size=4).map(" ".join)
    rules = []
    for name in names:
        alternatives = draw(st.lists(sequence, min_size=1, max_size=3))
        # One without rules, so that fewer languages are empty.
        alternatives.append(draw(literal))
        rules.append(f"{name}: " + " | ".join(alternatives))
    return "\n".join(rules)


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    """JSON schemas of the keywords that matter most."""
    names = st.sampled_from(["a", "b", "ab"])
    leaf = st.one_of(
        st.just({"type": "integer", "minimum": 0}),
        st.just({"type": "boolean"}),
        st.builds(lambda n: {"type": "string", "maxLength": n}, st.integers(0, 3)),
        st.builds(
            lambda values: {"enum": values}, st.lists(st.sampled_from([1, "a", None, [1]]), min_size=1)
        ),
    )

    def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        objects = st.builds(
            lambda properties, required, extra: {
                "type": "object",
                "properties": properties,
                "required": sorted(set(required) & set(properties)),
                "additionalProperties": extra,
            },
            st.dictionaries(names, inner, max_size=3),
            st.lists(names, max_size=2),
            st.booleans(),
        )
        arrays = st.builds(
            lambda items, n: {"type": "array", "items": items, "maxItems": n}, inner, st.integers(0, 3)
        )
        return st.one_of(objects, arrays, st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner))

    return st.recursive(leaf, larger, max_leaves=4)


def slots(n_tokens: int) -> st.SearchStrategy[list[Any]]:
    """Slots of a canvas: mostly holes, some tokens, at most a few gaps."""
    slot = st.one_of(st.none(), st.none(), st.integers(0, n_tokens - 1), st.just(anygram.GAP))
    return st.lists(slot, min_size=1, max_size=6)
