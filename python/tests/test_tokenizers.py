"""Vocabularies of the tokenizers of other packages."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anygram
import pytest
import sentencepiece
import tiktoken
import tokenizers

TEXTS = ["SELECT name FROM t;\n", "größer 日本 🙂", '{"a": [1, 2]}', "the quick brown fox " * 3]


@pytest.fixture(scope="module")
def fast() -> Any:
    """A byte-level BPE."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|end|>", "<|pad|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(TEXTS, trainer)
    return made


@pytest.fixture(scope="module")
def encoding() -> Any:
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"the": 256, b" qu": 257, b"\xe6\x97": 258}
    return tiktoken.Encoding(
        "small", pat_str=r"\s?\w+|\W", mergeable_ranks=ranks, special_tokens={"<|end|>": 259}
    )


@pytest.fixture(scope="module")
def processor() -> Any:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS * 4),
        model_writer=model,
        vocab_size=330,
        byte_fallback=True,
        hard_vocab_limit=False,
        pad_id=3,
        add_dummy_prefix=False,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def test_hugging_face(fast: Any) -> None:
    vocabulary = anygram.Vocabulary.from_tokenizer(fast, eos=[0], pad=1)
    assert (len(vocabulary), vocabulary.eos, vocabulary.pad) == (fast.get_vocab_size(), (0,), 1)
    assert vocabulary.special("<|end|>") == 0
    for text in TEXTS:
        assert vocabulary.encode(text) == fast.encode(text).ids
    assert vocabulary.supports(fast)


def test_padding_and_truncation_are_left_out(fast: Any) -> None:
    other = tokenizers.Tokenizer.from_str(fast.to_str())
    other.enable_padding(length=32)
    other.enable_truncation(2)
    vocabulary = anygram.Vocabulary.from_tokenizer(other)
    assert vocabulary.encode(TEXTS[0]) == fast.encode(TEXTS[0]).ids
    assert other.truncation is not None and other.padding is not None


def test_transformers_by_their_attributes(fast: Any) -> None:
    tokenizer = SimpleNamespace(backend_tokenizer=fast, eos_token_id=0, pad_token_id=1, mask_token_id=None)
    vocabulary = anygram.Vocabulary.from_tokenizer(tokenizer)
    assert (vocabulary.eos, vocabulary.pad, vocabulary.mask) == ((0,), 1, None)
    assert anygram.Vocabulary.from_tokenizer(tokenizer, eos=[1], pad=0).eos == (1,)


def test_tiktoken(encoding: Any) -> None:
    vocabulary = anygram.Vocabulary.from_tokenizer(encoding, eos=[259])
    assert (vocabulary.eos, vocabulary.special("<|end|>")) == ((259,), 259)
    for text in TEXTS:
        assert vocabulary.encode(text) == encoding.encode(text)
    assert vocabulary.supports(encoding)


def test_sentence_piece(processor: Any) -> None:
    vocabulary = anygram.Vocabulary.from_tokenizer(processor)
    assert (vocabulary.eos, vocabulary.pad) == ((processor.eos_id(),), 3)
    assert vocabulary.supports(processor)
    slow = SimpleNamespace(sp_model=processor, eos_token_id=2)
    assert len(anygram.Vocabulary.from_tokenizer(slow)) == len(vocabulary)


def test_other_vocabularies_are_compared(encoding: Any) -> None:
    vocabulary = anygram.Vocabulary.from_tokenizer(encoding)
    assert vocabulary.supports(vocabulary)
    with pytest.raises(anygram.VocabularyError):
        vocabulary.supports(anygram.Vocabulary.builtin())


def test_slow_tokenizers_add_special_tokens(processor: Any) -> None:
    class Slow:
        """As much of a slow tokenizer of transformers as is looked at."""

        sp_model = processor
        all_special_ids = (1, 2)

        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
            ids: list[int] = processor.encode(text)
            return [1, *ids, 2] if add_special_tokens else ids

        def decode(self, ids: list[int]) -> str:
            text: str = processor.decode([id for id in ids if id not in self.all_special_ids])
            return "<s>" * (1 in ids) + text

    assert anygram.Vocabulary.from_tokenizer(Slow()).supports(Slow())


def test_a_tokenizer_of_another_model(fast: Any, encoding: Any) -> None:
    vocabulary = anygram.Vocabulary.from_tokenizer(encoding)
    with pytest.raises(anygram.VocabularyError):
        vocabulary.supports(fast)


@pytest.mark.parametrize("tokenizer", [None, 3, "gpt2", SimpleNamespace(encode=len)])
def test_what_is_no_tokenizer(tokenizer: Any) -> None:
    with pytest.raises(anygram.VocabularyError, match="cannot be read"):
        anygram.Vocabulary.from_tokenizer(tokenizer)


def test_files_that_are_none(tmp_path: Any) -> None:
    with pytest.raises(anygram.VocabularyError) as caught:
        anygram.Vocabulary.from_file(tmp_path / "nowhere.json")
    assert (caught.value.kind, caught.value.path) == ("io", str(tmp_path / "nowhere.json"))
    for data, format in (
        (b"{", "tokenizer-json"),
        (b"", "json-array"),
        (b"x", "sentencepiece"),
        (b"[]", "gguf"),
    ):
        with pytest.raises(anygram.VocabularyError):
            anygram.Vocabulary.from_bytes(data, format)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["fast", "encoding", "processor"])
def test_saved_and_pickled(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    vocabulary = anygram.Vocabulary.from_tokenizer(request.getfixturevalue(kind), eos=[900], pad=901)
    file = tmp_path / "v.anyvocab"
    vocabulary.save(file)
    read = anygram.Vocabulary.from_file(file)
    again = [read, pickle.loads(pickle.dumps(vocabulary)), pickle.loads(pickle.dumps(read))]
    again.append(anygram.Vocabulary.from_bytes(file.read_bytes(), "saved"))
    for other in again:
        assert (other.fingerprint, other.eos, other.pad) == (vocabulary.fingerprint, (900,), 901)
        for text in TEXTS:
            assert other.encode(text) == vocabulary.encode(text)
    assert anygram.Vocabulary.from_file(file, pad=902).pad == 902
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(anygram.VocabularyError, match=r"v\.anyvocab.*damaged"):
        anygram.Vocabulary.from_file(file)
    with pytest.raises(anygram.VocabularyError, match="cannot save"):
        vocabulary.save(tmp_path / "none" / "there")
