"""What masks and advances take on whole texts by the package, beside llguidance where it is installed.

    python bench/python/workloads.py --vocab FILE --eos ID GRAMMAR.lark TEXTS.tok.jsonl

A line of the texts has `ids`, the tokens. Each text is decoded twice, the first time with tables that know
nothing; a text ends where a mask lacks the token that comes next, and `whole_texts` says how many did not.
Masks of both engines are compared, with the number of those that have tokens which the other lacks: on SQL
llguidance leaves out tokens that cross terminals, such as `";` and a line break. Prints JSON, in
microseconds.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anygram
import numpy as np
from calls import Tokens

Fill = Callable[[Any], None]
Advance = Callable[[int], None]


def ours(source: str, vocabulary: anygram.Vocabulary) -> Callable[[], tuple[Fill, Advance]]:
    """Outputs of our package."""
    constraint = anygram.Constraint(anygram.Compiler().compile(source, "lark"), vocabulary)

    def begin() -> tuple[Fill, Advance]:
        matcher = constraint.matcher()
        return (lambda row: matcher.fill_mask(row, 0)), matcher.advance

    return begin


def llguidance(source: str, vocabulary: anygram.Vocabulary) -> Callable[[], tuple[Fill, Advance]]:
    """Outputs of llguidance by its own interface."""
    import llguidance as module
    import llguidance.numpy as ll

    wrapper = module.TokenizerWrapper(Tokens(vocabulary))
    tokenizer = module.LLTokenizer(wrapper, n_vocab=len(vocabulary))
    grammar = module.grammar_from("lark", source)

    def begin() -> tuple[Fill, Advance]:
        matcher = module.LLMatcher(tokenizer, grammar)

        def advance(token: int) -> None:
            if not matcher.consume_token(token):
                raise ValueError(matcher.get_error())

        return (lambda row: ll.fill_next_token_bitmask(matcher, row, 0)), advance

    return begin


def decode(
    begin: Callable[[], tuple[Fill, Advance]], ids: list[int], row: Any, times: list[float]
) -> list[bytes]:
    """The masks of a text as far as the engine takes it; adds what each step takes."""
    fill, advance = begin()
    masks: list[bytes] = []
    for token in ids:
        began = time.perf_counter()
        fill(row)
        filled = time.perf_counter()
        words = row[0].view(np.uint32)
        if not int(words[token // 32]) >> token % 32 & 1:
            break
        masks.append(words.tobytes())
        rest = time.perf_counter()
        advance(token)
        times.append((filled - began + time.perf_counter() - rest) * 1e6)
    return masks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("grammar", type=Path, help="in Lark's notation")
    parser.add_argument("texts", type=Path, help="JSON Lines with `ids`")
    parser.add_argument("--vocab", type=Path, required=True)
    parser.add_argument("--eos", type=int, required=True)
    parser.add_argument("--first", type=int, default=50, help="how many texts")
    args = parser.parse_args()

    vocabulary = anygram.Vocabulary.from_file(args.vocab, eos=[args.eos])
    lines = args.texts.read_text().splitlines()[: args.first]
    texts: list[list[int]] = [json.loads(line)["ids"] for line in lines]
    engines = {"anygram": ours}
    if importlib.util.find_spec("llguidance"):
        engines["llguidance"] = llguidance
    told: dict[str, Any] = {"texts": len(texts), "tokens": sum(map(len, texts))}
    found: dict[str, list[list[bytes]]] = {}
    for name, make in engines.items():
        began = time.perf_counter()
        begin = make(args.grammar.read_text(), vocabulary)
        told[name] = {"compile_ms": (time.perf_counter() - began) * 1e3}
        row: Any = np.zeros((1, -(-len(vocabulary) // 32)), dtype=np.int32)
        for which in ("cold", "warm"):
            times: list[float] = []
            found[name] = [decode(begin, ids, row, times) for ids in texts]
            percentiles = np.percentile(times, [50, 99, 100])
            named = dict(zip(("p50", "p99", "max"), map(float, percentiles), strict=True))
            told[name][which] = {**named, "mean": sum(times) / len(times)}
        told[name]["whole_texts"] = sum(
            len(masks) == len(ids) for masks, ids in zip(found[name], texts, strict=True)
        )
    if len(found) == 2:
        pairs = [pair for texts in zip(*found.values(), strict=True) for pair in zip(*texts, strict=False)]
        rows = [(np.frombuffer(a, np.uint32), np.frombuffer(b, np.uint32)) for a, b in pairs]
        told["masks"] = len(rows)
        told["only_anygram_allows_some"] = sum(bool((a & ~b).any()) for a, b in rows)
        told["only_llguidance_allows_some"] = sum(bool((b & ~a).any()) for a, b in rows)
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
