"""A data set of outputs, checked against a schema and repaired on all workers of a local Ray.

    python python/integration/ray_data.py --rows 100000 --workers 1 2 4

Fails where a result is no text of the schema, or a good text was changed. Prints one JSON object for each
number of workers: rows in a second, and seconds and core hours for a million texts.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from typing import Any

import anygram
import numpy
import ray
from ray_repair import Repairer, constraint


def damaged(text: str, choice: random.Random) -> str:
    """What goes wrong in outputs: cut off, something left out, twice, or in its place; mostly nothing."""
    a, b = sorted(choice.randrange(len(text) + 1) for _ in range(2))
    match choice.randrange(10):
        case 0:
            return text[:a]
        case 1:
            return text[:a] + text[min(b, a + 5) :]
        case 2:
            return text[:b] + text[max(a, b - 5) :]
        case 3:
            return text[:a] + choice.choice(['"', "}", ", ", "é", "null"]) + text[a:]
    return text


def person(choice: random.Random) -> str:
    """A text of the schema."""
    names = ["Ada", "Grace Hopper", "Zoë", "李", 'O"Neil']
    value: dict[str, Any] = {"name": choice.choice(names), "age": choice.randrange(151)}
    if choice.randrange(2):
        value["tags"] = choice.choices(["red", "green", "blue"], k=choice.randrange(4))
    return json.dumps(value, separators=(",", ":"), ensure_ascii=choice.randrange(2) == 0)


def outputs(n_rows: int) -> list[dict[str, Any]]:
    """Texts as a model might have written them."""
    choice = random.Random(31)
    return [{"id": id, "text": damaged(person(choice), choice)} for id in range(n_rows)]


class Repair:
    """A worker: Ray makes one for each actor, so the constraint arrives once and not with each batch."""

    def __init__(self, shared: Any) -> None:
        began = time.perf_counter()
        self._repairer = Repairer(ray.get(shared))
        self._start_ms = (time.perf_counter() - began) * 1e3

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        began = time.thread_time()
        results = [self._repairer.repair(text) for text in batch["text"]]
        cpu = (time.thread_time() - began) / max(len(results), 1)
        return {
            "id": batch["id"],
            "before": batch["text"],
            "text": numpy.array([text for text, _ in results], dtype=object),
            "was_valid": numpy.array([valid for _, valid in results]),
            "cpu_s": numpy.full(len(results), cpu),
            "start_ms": numpy.full(len(results), self._start_ms),
        }


def measure(rows: list[dict[str, Any]], shared: Any, workers: int) -> dict[str, Any]:
    """Repairs all rows on so many workers, and checks what came out."""
    data = ray.data.from_items(rows).repartition(8 * workers)
    began = time.perf_counter()
    repaired = data.map_batches(
        Repair,
        fn_constructor_args=(shared,),
        batch_size=256,
        compute=ray.data.ActorPoolStrategy(size=workers),
        num_cpus=1,
    )
    done = repaired.take_all()
    wall = time.perf_counter() - began

    language = ray.get(shared).language
    assert sorted(row["id"] for row in done) == [row["id"] for row in rows], "rows are missing"
    for row in done:
        assert language.read(row["text"]).is_sentence, row
        assert row["was_valid"] == language.read(row["before"]).is_sentence, row
        assert not row["was_valid"] or row["text"] == row["before"], row
    cpu = sum(row["cpu_s"] for row in done)
    return {
        "workers": workers,
        "rows": len(done),
        "valid_before": sum(bool(row["was_valid"]) for row in done),
        "wall_s": round(wall, 2),
        "rows_per_s": round(len(done) / wall),
        "cpu_s_per_million": round(cpu / len(done) * 1e6, 1),
        "worker_start_ms": round(max(row["start_ms"] for row in done), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--vocab", help="a vocabulary file, which every machine has [built-in]")
    args = parser.parse_args()
    ray.init(num_cpus=max(args.workers) + 1, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    vocabulary = anygram.Vocabulary.from_file(args.vocab) if args.vocab else None
    ours = constraint(vocabulary)
    # Once in the object store of each machine; each worker takes it from there.
    shared = ray.put(ours)
    rows = outputs(args.rows)
    for workers in args.workers:
        print(json.dumps(measure(rows, shared, workers)), flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
