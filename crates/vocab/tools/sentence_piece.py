"""Writes the small SentencePiece models of testdata/vocab, and what the sentencepiece package makes of some texts.

    python3 crates/vocab/tools/sentence_piece.py      (needs: pip install sentencepiece==0.2.3)

The models are trained on the text below. Nothing is normalized and no space is put in front, because that is how we encode.
"""

import io
import json
import pathlib

import sentencepiece

TARGET = pathlib.Path(__file__).resolve().parents[3] / "testdata" / "vocab"

TEXT = """
A grammar says which texts are sentences, and a vocabulary says which bytes a token stands for.
The mask says which tokens may come next: those after which the text can still become a sentence.
SELECT name, age FROM singer WHERE age > 20 AND NOT (age > 30) ORDER BY name;
SELECT country, COUNT(*) FROM singer GROUP BY country HAVING COUNT(*) > 1;
if (x == 0) { return "zero"; } else { return x + 1; }
for (i = 0; i < 10; i = i + 1) print(i, i * i);
{"name": "Ann", "tags": ["a", "b"], "size": 1.5e3, "done": true, "next": null}
The cats chased the dogs, the dogs chased the cats, and nobody caught anybody in the garden of the queen.
Größe, Straße, Äpfel und Öl; café, naïve, señor, ça va; ελληνικά, русский, 日本語, 中文, 한국어.
one two  three   four    five, 1 22 333 4444 55555
""".strip().splitlines()

MODELS = {
    "unigram": dict(model_type="unigram", vocab_size=440, byte_fallback=True, user_defined_symbols=["<tool>", "cat", "==="]),
    "unigram_plain": dict(model_type="unigram", vocab_size=200),
    "bpe": dict(model_type="bpe", vocab_size=440, byte_fallback=True, user_defined_symbols=["<tool>", "cat"]),
    "words": dict(model_type="word", vocab_size=90),
    "characters": dict(model_type="char", vocab_size=130, user_defined_symbols=["<tool>"]),
}

TEXTS = TEXT + [
    "",
    " ",
    "a",
    "  the  cats ",
    "concatenated cats<tool><tool> cat <tool",
    "a==b ===c ====",
    "</s><unk><0x41>",
    "unseen: 🙂 ŵ ﬁ e\u0301\t\r\n\x00\x7f",
    "thethethethethe" * 4,
    "WHERE WHERE(WHERE)",
    "mixed日本語text",
]


def train(options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT * 3),
        model_writer=model,
        normalization_rule_name="identity",
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        hard_vocab_limit=False,
        character_coverage=0.985,
        minloglevel=2,
        num_threads=1,
        **options,
    )
    return model.getvalue()


def main():
    expected = {}
    for name, options in MODELS.items():
        model = train(options)
        (TARGET / f"{name}.model").write_bytes(model)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        # Where a piece is unknown there are no tokens that spell the text.
        ids = [processor.encode(text) for text in TEXTS]
        expected[name] = [[text, None if processor.unk_id() in found else found] for text, found in zip(TEXTS, ids)]
        print(name, processor.vocab_size(), len(model), "bytes", sum(found is None for _, found in expected[name]), "not encoded")
    lines = [f' "{name}": [\n' + ",\n".join("  " + json.dumps(e, ensure_ascii=False) for e in es) + "\n ]" for name, es in expected.items()]
    (TARGET / "sentence_piece.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
