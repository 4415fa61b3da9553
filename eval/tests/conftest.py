"""What tests share: the program that makes reports, a tokenizer, tiny models with random weights."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import Any

import anygram
import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Words of small letters, and lists of them in parentheses.
LISTS = 'start: item\nitem: WORD | "(" (item ("," item)*)? ")"\nWORD: /[a-z]+/\n'


def missing(what: str) -> None:
    """Skips loudly, and fails where CI is `true`."""
    notice = f"NOT TESTED: {what}"
    assert os.environ.get("CI") != "true", notice
    print(notice)
    pytest.skip(notice)


@pytest.fixture(scope="session")
def program() -> str:
    """The binary: `ANYGRAM`, the repository's own, or one on the path."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [path for path in (target / "release/anygram", target / "debug/anygram") if path.is_file()]
    found = os.environ.get("ANYGRAM") or (str(built[0]) if built else shutil.which("anygram"))
    if found is None:
        missing("no anygram: build it with cargo build --release, or name it with ANYGRAM")
    assert found is not None
    return found


@pytest.fixture(scope="session")
def transformers() -> Any:
    """The library, with torch."""
    for name in ("torch", "transformers", "tokenizers"):
        if importlib.util.find_spec(name) is None:
            missing(f"{name} is not installed: pip install 'anygram-eval[models]'")
    import torch
    import transformers

    torch.manual_seed(0)
    torch.set_num_threads(1)
    return transformers


@pytest.fixture(scope="session")
def folder(transformers: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with random weights as transformers stores one: BERT of two layers, a byte-level BPE of some
    tokens that cross terminals."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    folder = tmp_path_factory.mktemp("bert")
    words = [
        "<eos>",
        "<mask>",
        "<unk>",
        "(",
        ")",
        ",",
        "a",
        "b",
        "c",
        "d",
        "ab",
        "cd",
        "(a",
        "),",
        "))",
        ",(",
    ]
    merges = [("a", "b"), ("c", "d"), ("(", "a"), (")", ","), (")", ")"), (",", "(")]
    bpe = models.BPE(vocab={word: at for at, word in enumerate(words)}, merges=merges)
    tokenizer = Tokenizer(bpe)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<eos>", "<mask>", "<unk>"])
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<eos>", mask_token="<mask>", unk_token="<unk>"
    )
    fast.save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def language() -> anygram.Language:
    return anygram.Compiler().compile(LISTS, "lark")
