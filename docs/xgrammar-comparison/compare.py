#!/usr/bin/env python3
"""Compares Anygram's EBNF and GBNF with XGrammar's EBNF, and writes what XGrammar says to expected.jsonl.

    cargo build --release
    python3 docs/xgrammar-comparison/compare.py            # writes expected.jsonl
    python3 docs/xgrammar-comparison/compare.py --check    # writes nothing; fails if it would change

Needs Python 3.11 and the package `xgrammar`, and installs nothing. Environment: ANYGRAM_SHARED, the folder of shared data (../shared);
ANYGRAM, the program (target/release/anygram). XGrammar imports torch and transformers, which what is asked here does not need: where they are
missing, empty modules stand for them. The questions are those of texts.toml; the Rust test `xgrammar_comparison` asks them without Python.
"""

import importlib.machinery
import importlib.util
import json
import os
import random
import subprocess
import sys
import tomllib
import types

from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EXPECTED = HERE / "expected.jsonl"
SHARED = Path(os.environ.get("ANYGRAM_SHARED", ROOT.parent / "shared")) / "data" / "grammars"
PROGRAM = os.environ.get("ANYGRAM", ROOT / "target" / "release" / "anygram")
MUTANTS = 150  # texts that are made of the seeds of one grammar

class Empty(types.ModuleType):
    """A module in which every name is a class that takes anything."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        take = {"__init__": lambda self, *_, **__: None, "__getattr__": lambda self, _: None}
        return type(name, (), take | {"__class_getitem__": classmethod(lambda cls, _: cls)})

class EmptyModules:
    """Finds the modules that are missing."""

    def __init__(self, names):
        self.names = {name for name in names if importlib.util.find_spec(name) is None}

    def find_spec(self, name, _path=None, _target=None):
        if name.split(".")[0] in self.names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Empty(spec.name)

    def exec_module(self, module):
        pass

def load_xgrammar():
    try:
        import tvm_ffi  # noqa: F401  before the empty modules: it looks whether there is a torch
    except ImportError:
        sys.exit("compare.py: the Python package `xgrammar` is missing; in a virtual environment: pip install xgrammar")
    sys.meta_path.insert(0, EmptyModules(["torch", "transformers", "triton"]))
    import xgrammar
    import xgrammar.testing

    return xgrammar

def texts_of(entry):
    """The seeds, their beginnings and mutants, in order and without repetition."""
    seeds, rng = entry["seeds"], random.Random(entry["file"])
    texts = list(seeds)
    for seed in seeds:
        texts += [seed[:end] for end in range(min(len(seed), 40))]
    alphabet = sorted(set(entry["alphabet"]) | set("".join(seeds)))
    for _ in range(MUTANTS):
        text = list(rng.choice(seeds))
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            at = rng.randrange(len(text) + 1)
            text[at : at + rng.choice([0, 1, 1])] = rng.choice([[], [rng.choice(alphabet)], text[at : at + 2] * 2])
        texts.append("".join(text))
    return list(dict.fromkeys(texts))

def ask_anygram(path, fmt, texts):
    questions = "".join(json.dumps({"id": at, "op": "text", "text": text}) + "\n" for at, text in enumerate(texts))
    command = [PROGRAM, "batch", "--grammar", path, "--format", fmt, "--vocab", "builtin"]
    done = subprocess.run(command, input=questions.encode(), stdout=subprocess.PIPE, check=True)
    return [json.loads(line)["sentence"] for line in done.stdout.splitlines()]

def main():
    xgrammar = load_xgrammar()
    data = tomllib.loads((HERE / "texts.toml").read_text())
    lines, wrong = [{"xgrammar": metadata.version("xgrammar")}], []
    for entry in data["grammar"]:
        name = entry["file"]
        path = SHARED / name.removeprefix("shared/") if name.startswith("shared/") else HERE / name
        source = path.read_text().replace(*entry.get("rewrite", ["", ""]))
        grammar, texts = xgrammar.Grammar.from_ebnf(source), texts_of(entry)
        theirs = [xgrammar.testing._is_grammar_accept_string(grammar, text) for text in texts]
        for fmt in dict.fromkeys([path.suffix[1:], "ebnf"]):
            for text, them, us in zip(texts, theirs, ask_anygram(path, fmt, texts), strict=True):
                if them != us:
                    wrong.append(f"{name} as {fmt}: {text!r} is a sentence: here {us}, there {them}")
        sentences, others = ([text for text, them in zip(texts, theirs) if them == side] for side in [True, False])
        lines.append({"file": name, "sentences": sentences, "others": others})
        print(f"{name}: {len(texts)} texts, {sum(theirs)} sentences")
    for entry in data["snippet"]:
        try:
            xgrammar.Grammar.from_ebnf(entry["source"])
            them = True
        except RuntimeError:
            them = False
        lines.append({"source": entry["source"], "read": them, "why": entry.get("why")})
    written = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    if wrong:
        sys.exit("different:\n" + "\n".join(wrong))
    if "--check" in sys.argv:
        sys.exit(0 if EXPECTED.read_text() == written else "expected.jsonl would change")
    EXPECTED.write_text(written)

if __name__ == "__main__":
    main()
