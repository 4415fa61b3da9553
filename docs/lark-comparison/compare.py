#!/usr/bin/env python3
"""Compares Anygram with python-lark on small grammars and many texts, and writes what is different and why.

    cargo build --release
    python3 docs/lark-comparison/compare.py            # writes expected.jsonl and ../lark-comparison.md
    python3 docs/lark-comparison/compare.py --check    # writes nothing; fails if they would change

Needs Python 3.11 and the package `lark`, and installs nothing. What is compared:

    python-lark                                  Anygram
    parser=lalr, lexer=contextual                --lexer contextual
    parser=earley, lexer=dynamic_complete        --lexer scannerless

Grammars are the `*.lark` files beside this script (and import from `imported`), texts come from `texts.toml`.
Every difference must belong to exactly one entry of `differences.toml`, which a person wrote after looking;
otherwise the script lists what is new and fails.
"""

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from collections import Counter
from pathlib import Path

try:
    import lark
except ImportError:
    sys.exit("compare.py: the Python package `lark` is missing; in a virtual environment: pip install lark")

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "lark-comparison.md"
EXPECTED = HERE / "expected.jsonl"
WIDTH = 110  # of lines of the page, but for tables

# Our lexer mode and what we hold against it.
MODES = {
    "contextual": {"parser": "lalr", "lexer": "contextual"},
    "scannerless": {"parser": "earley", "lexer": "dynamic_complete"},
}


def texts_of(entry):
    """The texts of one grammar, in order and without repetition."""
    texts = list(entry.get("texts", []))
    for length in range(entry.get("length", 0) + 1 if "units" in entry else 0):
        texts += map("".join, itertools.product(entry["units"], repeat=length))
    return list(dict.fromkeys(texts))


def ask_lark(source, options, texts):
    """Whether each text parses; and `None` for all and the reason if the grammar is refused."""
    try:
        parser = lark.Lark(source, import_paths=[str(HERE)], **options)
    except lark.exceptions.LarkError as error:
        # Of a conflict Lark names the terminal that it happens to meet first, not always the same.
        return [None] * len(texts), re.sub(r" in Terminal.*", "", str(error).splitlines()[0])

    def parses(text):
        try:
            parser.parse(text)
        except lark.exceptions.UnexpectedInput:
            return False
        return True

    return [parses(text) for text in texts], None


def ask_anygram(binary, grammar, mode, texts):
    """Whether each text is a sentence."""
    questions = "".join(json.dumps({"id": at, "op": "text", "text": text}) + "\n" for at, text in enumerate(texts))
    command = [binary, "batch", "--grammar", grammar, "--vocab", "builtin", "--lexer", mode]
    done = subprocess.run(command, input=questions.encode(), stdout=subprocess.PIPE, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for answer in answers:
        if "error" in answer:
            sys.exit(f"compare.py: {grammar.name}: {answer['error']}")
    if [answer["id"] for answer in answers] != list(range(len(texts))):
        sys.exit(f"compare.py: {grammar.name}: answers are missing")
    return [answer["sentence"] for answer in answers]


class Differences:
    """What a person said about the differences."""

    def __init__(self, path):
        file = tomllib.loads(path.read_text())
        self.entries, self.same = file["difference"], file["same"]
        self.found = {entry["id"]: [] for entry in self.entries}
        self.unknown = []
        self.idle = self.places()

    def places(self):
        """All ids with all their places."""
        return [(entry["id"], place) for entry in self.entries for place in entry["where"]]

    def classify(self, grammar, mode, text, theirs, ours):
        """The id of the difference."""
        matching = [
            (name, place)
            for name, place in self.places()
            if (place["grammar"], place["mode"], place["ours"]) == (grammar, mode, ours)
            and re.fullmatch(place.get("text", "(?s:.*)"), text)
        ]
        self.idle = [place for place in self.idle if place not in matching]
        if len(matching) != 1:
            self.unknown.append((grammar, mode, text, theirs, ours, [name for name, _ in matching]))
            return None
        self.found[matching[0][0]].append((grammar, mode, text, ours))
        return matching[0][0]


def compare(binary):
    """All verdicts, the counts and the differences."""
    all_texts = tomllib.loads((HERE / "texts.toml").read_text())
    grammars = sorted(HERE.glob("*.lark"))
    if {path.stem for path in grammars} != set(all_texts):
        sys.exit("compare.py: texts.toml does not name exactly the grammars there are")
    differences = Differences(HERE / "differences.toml")
    rows, counts, refused = [], {}, []
    for path in grammars:
        source, texts = path.read_text(), texts_of(all_texts[path.stem])
        lines = [{"grammar": path.stem, "text": text, "lark": {}, "difference": {}} for text in texts]
        for mode, options in MODES.items():
            theirs, reason = ask_lark(source, options, texts)
            if reason:
                refused.append((path.stem, options, reason))
            ours = ask_anygram(binary, path, mode, texts)
            count = counts[path.stem, mode] = Counter(zip(theirs, ours))
            assert count.total() == len(texts)
            for line, text, they, we in zip(lines, texts, theirs, ours):
                line["lark"][mode] = they
                if they is None:
                    # Nothing to compare with: our own answer is kept, so that it cannot change unseen.
                    line.setdefault("anygram", {})[mode] = we
                elif they != we:
                    line["difference"][mode] = differences.classify(path.stem, mode, text, they, we)
        rows += lines
    return rows, counts, refused, differences


def expected_file(rows):
    """The facts as JSON Lines: first the versions, then a line for each text."""
    head = {"lark": lark.__version__, "python": sys.version.split()[0]}
    return "".join(json.dumps(row) + "\n" for row in [head, *rows])


def code(text):
    """A text in Markdown, safe in a table."""
    shown = json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"')
    shown = "".join(c if c.isprintable() or c == " " else f"\\u{ord(c):04x}" for c in shown)
    # A mark alone would stand on the backtick.
    shown = re.sub(r"^(?=[\u0300-\u036f])", "\u25cc", shown)
    ticks = "``" if "`" in shown else "`"
    return f"{ticks}{shown}{ticks}" if shown else "(the empty text)"


def paragraph(text, **options):
    """A text in lines of Markdown."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False, **options)


def listed(line, texts):
    """An item of a list with some texts, broken between them."""
    lines = [line]
    for text, end in zip(texts, [","] * (len(texts) - 1) + [""]):
        if len(lines[-1]) + len(text) + 2 > WIDTH:
            lines.append(" ")
        lines[-1] += f" {text}{end}"
    return "\n".join(lines)


def page(counts, refused, differences):
    """The documentation."""
    out = [
        "# Anygram and python-lark",
        "",
        "<!-- Written by lark-comparison/compare.py: change that, or differences.toml. -->",
        "",
        paragraph(
            "For people who bring a grammar from [python-lark](https://github.com/lark-parser/lark). A Lark grammar means nearly the"
            " same in both. Afterwards you know which texts they read differently, why, and how to write a grammar that both read"
            " alike."
        ),
        "",
        paragraph(
            "The comparison can be repeated (`docs/lark-comparison/compare.py`), and our tests hold us to its results. It compares"
            f" python-lark {lark.__version__} with `parser=\"lalr\", lexer=\"contextual\"` with our lexer mode `contextual` (the default for"
            " Lark grammars), and `parser=\"earley\", lexer=\"dynamic_complete\"` with `scannerless`. The only question is whether a text is"
            " valid. Trees are not compared, because Anygram makes none."
        ),
        "",
        "## Counts",
        "",
        "*same*: both say yes, or both no. *only Lark* and *only ours*: one says yes, the other no.",
        "",
        "| grammar | texts | LALR: same (yes + no) | only Lark | only ours | Earley: same (yes + no) | only Lark | only ours |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    totals = Counter()
    for grammar in sorted({grammar for grammar, _ in counts}):
        cells = [f"[{grammar}](lark-comparison/{grammar}.lark)", str(counts[grammar, "contextual"].total())]
        totals["texts"] += counts[grammar, "contextual"].total()
        for mode in MODES:
            count = counts[grammar, mode]
            if count[None, True] + count[None, False]:
                cells += ["refused by Lark", "", ""]
                continue
            same = f"{count[True, True] + count[False, False]} ({count[True, True]} + {count[False, False]})"
            cells += [same, str(count[True, False] or ""), str(count[False, True] or "")]
            totals[mode, "same"] += count[True, True] + count[False, False]
            totals[mode, "lark"] += count[True, False]
            totals[mode, "ours"] += count[False, True]
        out.append(f"| {' | '.join(cells)} |")
    sums = [totals["texts"]] + [totals[mode, what] for mode in MODES for what in ("same", "lark", "ours")]
    out += [f"| all | {' | '.join(map(str, sums))} |", "", "## Differences", ""]
    for entry in differences.entries:
        out += [f"### {entry['title']}", "", entry["why"].strip(), ""]
        found = sorted(differences.found[entry["id"]], key=lambda row: (row[0], row[1], row[3]))
        for (grammar, mode, ours), group in itertools.groupby(found, key=lambda row: (row[0], row[1], row[3])):
            shown = [code(text) for _, _, text, _ in group]
            lark_name = {"contextual": "LALR", "scannerless": "Earley"}[mode]
            who = f"only ours (`{mode}`)" if ours else f"only Lark ({lark_name})"
            out += [listed(f"- [{grammar}](lark-comparison/{grammar}.lark), {who}:", shown)]
        out += [""] if found else []
    out += ["## No difference", "", differences.same.strip(), ""]
    out += ["## Grammars that python-lark refuses", ""]
    for grammar, options, reason in refused:
        item = f"- [{grammar}](lark-comparison/{grammar}.lark), `{options['parser']}`: {reason}"
        out.append(paragraph(item, subsequent_indent="  "))
    out += [
        "",
        paragraph(
            "Anygram refuses no grammar for its shape. Ambiguity, cycles and conflicts are no errors, and a terminal that matches the empty"
            " string may be left out. It refuses what it cannot read; `anygram check` says what and why."
        ),
        "",
    ]
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    default = os.environ.get("ANYGRAM", HERE.parent.parent / "target/release/anygram")
    parser.add_argument("--anygram", default=default, help="our binary [default: $ANYGRAM or target/release/anygram]")
    parser.add_argument("--check", action="store_true", help="write nothing, fail if something would change")
    arguments = parser.parse_args()
    if not Path(arguments.anygram).exists():
        sys.exit(f"compare.py: {arguments.anygram} is missing; build it with: cargo build --release")

    rows, counts, refused, differences = compare(arguments.anygram)
    for grammar, mode, text, theirs, ours, names in differences.unknown:
        print(f"{grammar}, {mode}: {text!r}: lark {theirs}, ours {ours}; in differences.toml: {names or 'nothing'}")
    for name, place in differences.idle:
        print(f"differences.toml: `{name}` says {place}, which does not happen")
    if differences.unknown or differences.idle:
        sys.exit(f"compare.py: {len(differences.unknown)} differences without an explanation")
    stale = []
    for path, content in [(EXPECTED, expected_file(rows)), (PAGE, page(counts, refused, differences))]:
        if arguments.check:
            stale += [path.name] if not path.exists() or path.read_text() != content else []
        else:
            path.write_text(content)
    if stale:
        sys.exit(f"compare.py: not up to date: {', '.join(stale)}")
    found = sum(map(len, differences.found.values()))
    print(f"{len(rows)} texts, {len(counts)} comparisons of grammars, {found} differences, all of them explained")


if __name__ == "__main__":
    main()
