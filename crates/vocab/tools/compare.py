"""Compares our encodings with those of the libraries that the vocabularies come from, over real and made-up texts.

    cargo build --release -p anygram-vocab --example encode
    python3 crates/vocab/tools/compare.py target/release/examples/encode [SHARED]

Needs `pip install tiktoken sentencepiece protobuf` and the folder of shared data (../shared). Prints, for each
vocabulary, how many texts have the same ids. Unigram models are trained on the texts, and made from them again with
byte fallback.
"""

import base64
import gzip
import io
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import sentencepiece
import tiktoken
from sentencepiece import sentencepiece_model_pb2


def real_texts(data):
    yield from (data / "spider" / "queries.txt").read_text().splitlines()
    for path in sorted((data / "replay").glob("*.tok.jsonl")):
        if not path.name.startswith("stress_"):
            yield from (json.loads(line)["text"] for line in path.read_text().splitlines())


def made_up_texts(n):
    """Characters of all kinds in runs of one kind."""
    chance = random.Random(5)
    kinds = ["abcdefgh", "ABCXYZ", "0123456789", " ", "\n\r\t ", "'\"()[]{}<>=+-*/.,;:_", "äöüßéñç", "日本語中文字漢", "かなカナ", "한국어"]
    kinds += ["🙂🙃👨\u200d👩🏳️🇩🇪", "\u0301\u0308\u0323", "العربية١٢٣", "שלום", "абвгд", "\x00\x01\x1b\x7f\u0085\u00a0\u200b\ufeff", "▁", "ﬁℌ①２"]
    words = ["the", " the", "'ll", "'S", "SELECT", " FROM", "return", "</s>", "<|endoftext|>", "[INST]", "<0x41>", "\u3000", "\u2028"]
    for _ in range(n):
        parts = []
        for _ in range(chance.randint(1, 12)):
            kind = chance.choice(kinds)
            parts.append(chance.choice(words) if chance.random() < 0.2 else "".join(chance.choices(kind, k=chance.randint(1, 8))))
        yield "".join(parts)


def ours(encode, file, *options, texts):
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    run = subprocess.run([encode, file, *options], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def report(name, texts, expected, found):
    same = sum(a == b for a, b in zip(expected, found, strict=True))
    unknown = sum(a is None for a in expected)
    print(f"{name}: {same} of {len(texts)} texts have the same ids" + (f" ({unknown} with an unknown part)" if unknown else ""))
    for text, a, b in [t for t in zip(texts, expected, found) if t[1] != t[2]][:3]:
        print(f"  {text!r}\n    theirs {a}\n    ours   {b}")


def pieces(model):
    """A function that encodes as the model does, without what changes the text."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    proto.normalizer_spec.CopyFrom(
        sentencepiece_model_pb2.NormalizerSpec(name="identity", add_dummy_prefix=False, remove_extra_whitespaces=False)
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())

    def encode(text):
        ids = processor.encode(text)
        return None if processor.unk_id() in ids else ids

    return encode


def train(texts, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, minloglevel=2, hard_vocab_limit=False, num_threads=1, **options
    )
    return model.getvalue()


def main():
    encode = sys.argv[1]
    data = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "../shared") / "data"
    real, made_up = list(real_texts(data)), list(made_up_texts(5000))
    texts = real + made_up
    print(len(real), "real texts,", len(made_up), "made up")
    for name, facts in json.loads((data / "tokenizers" / "tokenizers.json").read_text()).items():
        if facts["kind"] == "byte_bpe_ranks":
            file = data / "tokenizers" / facts["file"]
            lines = [line.split() for line in gzip.open(file)]
            ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
            theirs = tiktoken.Encoding(name, pat_str=facts["pattern"], mergeable_ranks=ranks, special_tokens={})
            offset = facts["id_offset"]
            expected = [[rank + offset for rank in theirs.encode_ordinary(text)] for text in texts]
            found = ours(encode, file, "--pattern", facts["pattern"], "--id-offset", str(offset), texts=texts)
        else:
            file = data / "tokenizers" / f"{name}.model.gz"
            theirs = pieces(gzip.open(file).read())
            # A mark in the text is a space to them, and itself to us.
            kept = [text for text in texts if "▁" not in text]
            report(name, kept, [theirs(text) for text in kept], ours(encode, file, texts=kept))
            continue
        report(name, texts, expected, found)
    texts = [text for text in texts if "▁" not in text and "\0" not in text]
    symbols = ["<tool>", "SELECT", "==", "the"]
    for name, options in {
        "unigram with bytes": dict(model_type="unigram", vocab_size=4000, byte_fallback=True),
        "unigram": dict(model_type="unigram", vocab_size=4000, character_coverage=0.99),
        "unigram with symbols": dict(model_type="unigram", vocab_size=2000, byte_fallback=True, user_defined_symbols=symbols),
        "BPE with symbols": dict(model_type="bpe", vocab_size=2000, byte_fallback=True, user_defined_symbols=symbols),
        "characters": dict(model_type="char", vocab_size=400),
        "words": dict(model_type="word", vocab_size=4000),
    }.items():
        model = train(texts, **options)
        theirs = pieces(model)
        with tempfile.NamedTemporaryFile(suffix=".model") as file:
            file.write(model)
            file.flush()
            report(name, texts, [theirs(text) for text in texts], ours(encode, file.name, texts=texts))


if __name__ == "__main__":
    main()
