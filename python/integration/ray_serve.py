"""A service of Ray Serve that checks and repairs texts, with two replicas on a local Ray.

    python python/integration/ray_serve.py

Fails where an answer is no text of the schema, or where HTTP and a handle disagree.
"""

from __future__ import annotations

import asyncio
import json
import os
import urllib.request
from typing import Any

import anygram
import ray
from ray import serve
from ray_data import outputs
from ray_repair import Repairer, constraint
from starlette.requests import Request


@serve.deployment(num_replicas=2, ray_actor_options={"num_cpus": 1})
class Repair:
    """A replica: the constraint is an argument of its constructor, so it comes once."""

    def __init__(self, constraint: anygram.Constraint) -> None:
        self._repairer = Repairer(constraint)

    @serve.batch(max_batch_size=64, batch_wait_timeout_s=0.002)
    async def repair(self, texts: list[str]) -> list[dict[str, Any]]:
        """Requests that come together are answered together, on another thread than the event loop."""
        results = await asyncio.to_thread(lambda: [self._repairer.repair(text) for text in texts])
        return [{"text": text, "valid": valid, "replica": os.getpid()} for text, valid in results]

    async def __call__(self, request: Request) -> dict[str, Any]:
        return await self.repair((await request.body()).decode())


def main() -> None:
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    ours = constraint()
    serve.start(http_options={"host": "127.0.0.1", "port": 18_431})
    handle = serve.run(Repair.bind(ours), route_prefix="/repair")
    rows = outputs(400)
    answers = [handle.repair.remote(row["text"]) for row in rows]
    replicas = set()
    for row, answer in zip(rows, (answer.result() for answer in answers), strict=True):
        assert ours.language.read(answer["text"]).is_sentence, (row, answer)
        assert answer["valid"] == ours.language.read(row["text"]).is_sentence, (row, answer)
        replicas.add(answer["replica"])
    assert len(replicas) == 2, "both replicas answer"
    for row in rows[:20]:
        request = urllib.request.Request("http://127.0.0.1:18431/repair", row["text"].encode())
        with urllib.request.urlopen(request) as response:
            answer = json.load(response)
        ours_again = handle.repair.remote(row["text"]).result()
        assert {**answer, "replica": 0} == {**ours_again, "replica": 0}, (row, answer, ours_again)
    print(f"ray_serve: {len(rows)} texts by two replicas, 20 by HTTP: ok")
    serve.shutdown()
    ray.shutdown()


if __name__ == "__main__":
    main()
