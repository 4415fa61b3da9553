"""Trains the tokenizer of the small models: byte-level BPE, 672 tokens, in seconds.

    python tokenizer.py DATA OUT VECTORS

DATA is the folder that `cargo run --release -p anygram-models --example write_data` wrote, OUT the tokenizer.json to write, VECTORS some texts
and their tokens, with which the Rust encoder is compared.
"""

import json
import sys
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

SPECIAL = ["<eos>", "<pad>", "<mask>"]
N_TOKENS = 672
# Merges stay within a piece. A piece is a word, with what opens a value after a key (`name":"`), or a number, or signs in a row with small
# words between them (`"},{"`, `)*(`, `, from `). So tokens cross the terminals of the grammars, and a word or number is the same token in a
# prompt and in an answer, which makes it easy to copy.
SMALL = "is|a|from|floor|likes|has|boss|and|plus|minus|times|all|ring|bond"
PIECES = rf"""[A-Z]?[a-z]+(?:":[\["{{]*)?|[A-Z]|[0-9]{{1,2}}|[^A-Za-z0-9]+(?:(?:{SMALL})[^A-Za-z0-9]+)*"""


# What the tasks do not have.
ODD = ["", " ", "  ", "\n", "naïve → 日本", "a  b\r\n\t", '"},{"', "x" * 50, "12345", "<eos>", '{"age": 7}', ", a b from C"]


def main(data: Path, out: Path, vectors: Path) -> None:
    lines = [json.loads(line) for line in (data / "train.jsonl").read_text().splitlines()[:30_000]]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=N_TOKENS,
        special_tokens=SPECIAL,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator((line[part] for line in lines for part in ("prompt", "answer")), trainer)
    tokenizer.save(str(out))
    texts = [line[part] for line in lines[:30] for part in ("prompt", "answer")] + ODD
    tokenizer.encode_special_tokens = True
    encoded = [[text, tokenizer.encode(text, add_special_tokens=False).ids] for text in texts]
    vectors.write_text(json.dumps(encoded, ensure_ascii=False) + "\n")
    for part in ("prompt", "answer"):
        longest = {}
        for line in lines:
            n = len(tokenizer.encode(line[part]).ids)
            longest[line["task"]] = max(n, longest.get(line["task"], 0))
        print(f"{tokenizer.get_vocab_size()} tokens; longest {part} in tokens: {longest}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
