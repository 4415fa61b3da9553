"""`anygram-eval --model FOLDER --family llada --benchmark smiles-eval --data FOLDER --out FILE`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anygram

from anygram_eval import benchmarks, models
from anygram_eval.decoding import METHODS, Options, Outcome, decode
from anygram_eval.records import Lines, Record, key


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="anygram-eval", description=__doc__)
    parser.add_argument(
        "--model", type=Path, required=True, help="a folder as transformers has it, with tokenizer.json"
    )
    parser.add_argument("--family", choices=models.FAMILIES, required=True)
    parser.add_argument("--benchmark", choices=benchmarks.NAMES, required=True)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the benchmark")
    parser.add_argument("--grammar", type=Path, help="Lark; json-mode-eval has its own")
    parser.add_argument(
        "--methods",
        nargs="+",
        default=["none", "compatible"],
        metavar="METHOD",
        help=f"{', '.join(METHODS)}; lookahead with parameters, as lookahead:N=3:tau=10, lookahead:published",
    )
    parser.add_argument("--steps", nargs="+", type=int, default=[128])
    parser.add_argument("--slots", type=int, default=256)
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--temperature", type=float, default=0.2)
    parser.add_argument("--prompts", type=int, default=None, help="only the first N problems")
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--execute", action="store_true", help="compile and run answers in C++: they are a model's"
    )
    parser.add_argument("--out", type=Path, required=True)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    args = parser().parse_args(arguments)
    for method in args.methods:
        if method.split(":")[0] not in METHODS:
            parser().error(f"no method is called {method}; there are {', '.join(METHODS)}")
    loaded = models.load(args.family, args.model, args.device)
    problems = benchmarks.load(args.benchmark, args.data, args.grammar)[: args.prompts]
    lines = Lines(args.out)
    try:
        lines.write({"command": "anygram-eval " + " ".join(arguments or sys.argv[1:]), "note": ""})
        measure(args, loaded, problems, lines)
    finally:
        lines.close()
    return 0


def measure(
    args: argparse.Namespace, loaded: models.Loaded, problems: list[benchmarks.Problem], lines: Lines
) -> None:
    """One constraint for each grammar in a row; problems of one grammar stand together in the benchmarks."""
    vocabulary = loaded.vocabulary()
    constraint: anygram.Constraint | None = None
    for problem in problems:
        if constraint is None or constraint.language.source != problem.grammar:
            constraint = anygram.Constraint(anygram.Compiler().compile(problem.grammar, "lark"), vocabulary)
        for run in range(args.runs):
            for steps in args.steps:
                for method in args.methods:
                    generate(args, loaded, problem, constraint, run, steps, method, lines)


def generate(
    args: argparse.Namespace,
    loaded: models.Loaded,
    problem: benchmarks.Problem,
    constraint: anygram.Constraint,
    run: int,
    steps: int,
    method: str,
    lines: Lines,
) -> None:
    record: Record = {
        "task": problem.benchmark,
        "model": args.model.name,
        "method": method,
        "steps": steps,
        "slots": args.slots,
        "block": args.block,
        "temperature": args.temperature,
        "prompt": problem.index,
        "run": run,
        "seed": args.seed,
    }
    if key(record) in lines.done:
        return
    # The same for all methods and numbers of steps.
    seed = args.seed * 1_000_003 + problem.index * 1_009 + run
    options = Options(method=method, steps=steps, block=args.block, temperature=args.temperature, seed=seed)
    before: list[int] = (
        list(loaded.tokenizer(problem.before, add_special_tokens=False)["input_ids"])
        if problem.before
        else []
    )
    model = loaded.at(loaded.prompt(problem.prompt), len(constraint.vocabulary))
    begun = time.perf_counter()
    decoded = decode(constraint, model, [*before, *[None] * args.slots], options)
    elapsed = (time.perf_counter() - begun) * 1e6
    record |= judged(problem, loaded, constraint, decoded, len(before), args.execute)
    record |= {
        "asked": decoded.asked,
        "proposed": decoded.proposed,
        "refused": decoded.refused,
        "recovered": decoded.recovered,
        "rescued": decoded.rescued,
        "us": {
            "model": round(decoded.model_us, 1),
            "constraint": round(decoded.constraint_us, 1),
            "all": round(elapsed, 1),
            "steps": decoded.steps_us,
        },
    }
    lines.write(record)


def judged(
    problem: benchmarks.Problem,
    loaded: models.Loaded,
    constraint: anygram.Constraint,
    decoded: Outcome,
    n_before: int,
    execute: bool,
) -> dict[str, Any]:
    """The text and what is wrong with it, as `anygram eval` has it. An answer that was not run counts as not
    functional, and fails by nothing."""
    slots = decoded.canvas[n_before:]
    completed: dict[str, Any] = {}
    if any(token is None for token in slots):
        answer = anygram.Solver(constraint).completable(anygram.Canvas(decoded.canvas))
        failure = "dead-end" if answer.answer is False else "gave-up"
        if decoded.completion is None:
            return _answer(None, False, False, failure, 0, None)
        completed = {"completed": failure}
        slots = [*decoded.completion[n_before:]]
    end = next((at for at, token in enumerate(slots) if token in loaded.eos), None)
    tokens = [token for token in slots[:end] if token is not None]
    text = loaded.tokenizer.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    counted = range(n_before, n_before + len(tokens) + (end is not None))
    known = [None if completed else decoded.log_probs.get(slot) for slot in counted]
    log_prob = None if None in known else round(sum(value for value in known if value is not None), 4)
    reading = constraint.language.read(problem.before + text)
    if not reading.is_sentence:
        failure = "length" if reading.is_viable and end is None else "syntax"
        return _answer(text, False, False, failure, len(tokens), log_prob) | completed
    right = problem.check(text, execute)
    failed = "function" if right is False else None
    return _answer(text, True, right is True, failed, len(tokens), log_prob) | completed


def _answer(
    text: str | None,
    syntactic: bool,
    functional: bool,
    failure: str | None,
    n_tokens: int,
    log_prob: float | None,
) -> dict[str, Any]:
    return {
        "text": text,
        "syntactic": syntactic,
        "functional": functional,
        "failure": failure,
        "tokens": n_tokens,
        "log_prob": log_prob,
    }


if __name__ == "__main__":
    sys.exit(main())
