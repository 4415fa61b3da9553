"""Vocabularies of the tokenizers of other packages, told apart by their methods: none is imported here."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, cast

from anygram._errors import VocabularyError
from anygram._native import Vocabulary

SAMPLES = (
    "The quick brown fox, 12,345 times.\n",
    '{"name": "J\\u00f6rg", "tags": ["a b", null, -1.5e3]}',
    "SELECT * FROM t WHERE a <= 'b' -- c\n\n\tend",
    "größer, 日本語, Ελληνικά, 🙂 and  two  spaces",
)
"""Texts that tokenizers cut differently."""


def vocabulary_of(
    cls: type[Vocabulary], tokenizer: Any, eos: Iterable[int] | None, pad: int | None, mask: int | None
) -> Vocabulary:
    """The vocabulary of a tokenizer, with the special tokens that it names unless others are given."""
    own = _special_ids(tokenizer)
    special: dict[str, Any] = {
        "eos": own["eos"] if eos is None else list(eos),
        "pad": own["pad"] if pad is None else pad,
        "mask": own["mask"] if mask is None else mask,
    }
    fast = _fast(tokenizer)
    if fast is not None:
        return cls.from_bytes(_json_of(fast), "tokenizer-json", **special)
    if hasattr(tokenizer, "_mergeable_ranks"):
        return _of_tiktoken(cls, tokenizer, special)
    model = _sentence_piece(tokenizer)
    if model is not None:
        return cls.from_bytes(model, "sentencepiece", **special)
    raise VocabularyError(
        f"the tokens of a {type(tokenizer).__module__}.{type(tokenizer).__qualname__} cannot be read: give a "
        "fast tokenizer of Hugging Face, a tiktoken.Encoding or a SentencePieceProcessor, or use "
        "Vocabulary.from_file or Vocabulary.from_tokens"
    )


def _special_ids(tokenizer: Any) -> dict[str, Any]:
    """What a tokenizer says of its special tokens: transformers by attributes, SentencePiece by methods."""

    def of(name: str) -> int | None:
        value = getattr(tokenizer, f"{name}_token_id", None)
        if value is None:
            value = getattr(tokenizer, f"{name}_id", None)
            value = value() if callable(value) else None
        # SentencePiece says -1 for none; other objects may have attributes that mean something else.
        return value if isinstance(value, int) and value >= 0 else None

    eos = of("eos")
    if eos is None:
        # tiktoken's `eot_token` raises where there is none.
        named: dict[str, int] = getattr(tokenizer, "_special_tokens", {})
        eos = named.get("<|endoftext|>")
    return {"eos": [] if eos is None else [eos], "pad": of("pad"), "mask": of("mask")}


def _fast(tokenizer: Any) -> Any:
    """The `tokenizers.Tokenizer` that it is or has."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    found = tokenizer if backend is None else backend
    return found if hasattr(found, "to_str") and hasattr(found, "no_truncation") else None


def _json_of(fast: Any) -> bytes:
    """Its `tokenizer.json`, without padding and truncation, which would change texts."""
    if getattr(fast, "padding", None) is not None or getattr(fast, "truncation", None) is not None:
        copy = cast(Any, type(cast(object, fast))).from_str(fast.to_str())
        copy.no_padding()
        copy.no_truncation()
        return _json_of(copy)
    text: str = fast.to_str()
    return text.encode()


def _of_tiktoken(cls: type[Vocabulary], encoding: Any, special: dict[str, Any]) -> Vocabulary:
    ranks: dict[bytes, int] = encoding._mergeable_ranks
    lines = [b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in ranks.items()]
    names = {id: name for name, id in encoding._special_tokens.items()}
    pattern: str = encoding._pat_str
    return cls.from_bytes(b"".join(lines), "tiktoken", names=names, pattern=pattern, **special)


def _sentence_piece(tokenizer: Any) -> bytes | None:
    """The model of a `SentencePieceProcessor`, or of a slow tokenizer of transformers that has one."""
    for found in (tokenizer, getattr(tokenizer, "sp_model", None)):
        serialize: Any = getattr(found, "serialized_model_proto", None)
        if serialize is not None:
            model: bytes = serialize()
            return model
    return None


def supports(vocabulary: Vocabulary, tokenizer: Any, texts: Iterable[Any] | None) -> bool:
    """Compares what a tokenizer makes of texts with the bytes of its tokens here."""
    if not callable(getattr(tokenizer, "encode", None)) or not callable(getattr(tokenizer, "decode", None)):
        raise VocabularyError(
            f"a {type(tokenizer).__qualname__} is no tokenizer: it has no `encode` and `decode`"
        )
    for text in SAMPLES if texts is None else texts:
        if not isinstance(text, str):
            raise TypeError(f"texts are strings, not {type(text).__qualname__}")
        ids = _encode(tokenizer, text)
        beyond = [id for id in ids if id >= len(vocabulary)]
        if beyond:
            raise VocabularyError(
                f"the tokenizer has the token {beyond[0]}, the vocabulary {len(vocabulary)}: is it of the "
                "same model?"
            )
        told = _decode(tokenizer, ids)
        here = vocabulary.decode(ids)
        # Some tokenizers put a space in front, or take it away again, when they decode.
        if told.strip() != here.strip():
            at = next(
                (i for i, pair in enumerate(zip(told, here)) if pair[0] != pair[1]), min(len(told), len(here))
            )
            raise VocabularyError(
                f"the tokenizer decodes {ids[:8]}… of {text!r} to {told[:60]!r}, the vocabulary to "
                f"{here[:60]!r}; they differ at byte {at}"
            )
    return True


def _encode(tokenizer: Any, text: str) -> list[int]:
    """The ids of a text, without special tokens around it."""
    fast = _fast(tokenizer)
    if fast is not None:
        ids: list[int] = fast.encode(text, add_special_tokens=False).ids
        return ids
    if hasattr(tokenizer, "encode_ordinary"):
        ordinary: list[int] = tokenizer.encode_ordinary(text)
        return ordinary
    # The slow ones of transformers put special tokens around it unless they are told.
    plain: dict[str, bool] = {"add_special_tokens": False} if hasattr(tokenizer, "all_special_ids") else {}
    encoded: list[int] = tokenizer.encode(text, **plain)
    return encoded


def _decode(tokenizer: Any, ids: list[int]) -> bytes:
    fast = _fast(tokenizer)
    decoded = tokenizer.decode(ids) if fast is None else fast.decode(ids, skip_special_tokens=False)
    # A `Vocabulary` has bytes.
    return decoded if isinstance(decoded, bytes) else str(decoded).encode()
