"""The share of vLLM's manager of structured outputs in a step: masks and accepts of 256 sequences with JSON
schemas, by our back end, llguidance's and XGrammar's.

    pip download --no-deps vllm==0.33.0
    pip install torch numpy transformers tiktoken msgspec regex cachetools pydantic llguidance xgrammar
    python bench/python/serving.py vllm-0.33.0-*.whl --data ../shared/data

vLLM's own `StructuredOutputManager` and its own back ends, out of the wheel. Each back end has a process of
its own, one after the other, on the same work: schemas of JSONSchemaBench that all three compile, each with
an instance whose tokens all three accept, 256 sequences side by side; one that ends is replaced by the next.
In the first pass all schemas and texts are new: it ends when one would begin again. The later steps come when
as many texts were read as there are, so most were seen before. Compiling is outside of the steps, and so are
the masks that our service prepares with a grammar (not for `anygram, unprepared`), as are those that XGrammar
makes when it compiles. So the CPU time of all of it is printed too: of the process from the first request to
the end of the first pass. Prints JSON: microseconds of a step, wall-clock and CPU time of the process, since
the machine may be shared.

With `--compile-beside` it measures instead, of our back end alone, the masks of 64 sequences while another
thread compiles other schemas, and a cached compile.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "integration"))
REAL = {
    "vllm.exceptions",
    "vllm.sampling_params",
    "vllm.utils.import_utils",
    "vllm.v1.structured_output",
    "vllm.v1.structured_output.backend_guidance",
    "vllm.v1.structured_output.backend_types",
    "vllm.v1.structured_output.backend_xgrammar",
    "vllm.v1.structured_output.request",
    "vllm.v1.structured_output.utils",
}
ENGINES = ("anygram", "anygram, unprepared", "anygram, close", "guidance", "xgrammar")
"""Ours as it is by default, without masks that are prepared with a grammar, and with outputs that close within
`max_tokens` from the first token on."""
N_SEQUENCES = 256
MOST = 4096
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)


def work(data: Path, n: int) -> list[tuple[str, str]]:
    """Schemas and instances, some of each split."""
    found: list[tuple[str, str]] = []
    for split in ("BFCL", "Glaiveai2K", "JME", "Github_easy", "Github_medium", "Kubernetes", "Snowplow"):
        with gzip.open(data / "jsonschemabench" / f"{split}.jsonl.gz", "rt") as file:
            n_split = 0
            for line in file:
                one = json.loads(line)
                valid = [test["data"] for test in one["tests"] if test["valid"]]
                if not valid or n_split >= n // 7:
                    continue
                text = json.dumps(ordered(one["schema"], valid[0]), ensure_ascii=False)
                if 40 < len(text) < 2000:
                    found.append((json.dumps(one["schema"]), text))
                    n_split += 1
    return found


def ordered(schema: Any, value: Any) -> Any:
    """A value with its keys in the order of the schema, as all three want them."""
    if isinstance(value, dict) and isinstance(schema, dict):
        known = schema.get("properties") or {}
        names = [name for name in known if name in value] + [name for name in value if name not in known]
        return {name: ordered(known.get(name), value[name]) for name in names}
    if isinstance(value, list) and isinstance(schema, dict):
        return [ordered(schema.get("items"), one) for one in value]
    return value


def tokenizer(data: Path, folder: Path) -> Any:
    """Qwen's tokens as a fast tokenizer of transformers; made once."""
    from transformers import PreTrainedTokenizerFast

    made = folder / "tokenizer.json"
    if not made.exists():
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers
        from tokenizers import Regex
        from transformers.convert_slow_tokenizer import bytes_to_unicode

        names = bytes_to_unicode()
        ranks: dict[bytes, int] = {}
        with gzip.open(data / "tokenizers" / "qwen.tiktoken.gz", "rb") as file:
            for line in file:
                token, rank = line.split()
                ranks[base64.b64decode(token)] = int(rank)
        merges: list[tuple[str, str]] = []

        def name(token: bytes) -> str:
            return "".join(names[byte] for byte in token)

        for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
            # The pair that was merged last: of all cuts into known tokens the one of the lowest ranks.
            cuts = [
                (token[:at], token[at:])
                for at in range(1, len(token))
                if token[:at] in ranks and token[at:] in ranks
            ]
            cuts.sort(key=lambda cut: (ranks[cut[0]], ranks[cut[1]]))
            merges += [(name(a), name(b)) for a, b in cuts]
        bpe = Tokenizer(models.BPE({name(token): rank for token, rank in ranks.items()}, merges))
        bpe.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(PATTERN), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
        bpe.decoder = decoders.ByteLevel()
        bpe.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
        bpe.save(str(made))
    return PreTrainedTokenizerFast(tokenizer_file=str(made), eos_token="<|endoftext|>")


class Request(SimpleNamespace):
    """What the manager and back ends read of a request of vLLM."""

    def is_finished(self) -> bool:
        return False


class Manager:
    """vLLM's manager with one of the back ends."""

    def __init__(self, wheel: Path, engine: str, tokens: Any) -> None:
        from engine_stubs import Wheel

        Wheel(wheel, "vllm", REAL).install()
        import vllm.envs
        import vllm.utils.mistral

        vllm.envs.VLLM_XGRAMMAR_CACHE_MB = 512
        vllm.envs.VLLM_MAX_N_SEQUENCES = 1
        vllm.utils.mistral.is_mistral_tokenizer = lambda tokenizer: False
        import vllm.v1.structured_output as manager

        self.name = engine
        if engine.startswith("anygram"):
            import anygram.vllm

            anygram.vllm.install()
            self.name = "xgrammar"
        manager.cached_tokenizer_from_config = lambda model_config: tokens
        outputs = SimpleNamespace(
            backend="auto",
            disable_any_whitespace=False,
            disable_additional_properties=False,
            reasoning_parser="",
            reasoning_parser_plugin="",
            enable_in_reasoning=False,
        )
        options: dict[str, Any] = {"cache_entries": 2000}
        if "close" in engine:
            options["close"] = True
        if "unprepared" in engine:
            options["prepared_masks"] = 0
        self.n_vocab = -(-len(tokens) // 128) * 128
        config = SimpleNamespace(
            structured_outputs_config=outputs,
            parallel_config=SimpleNamespace(distributed_executor_backend="mp"),
            scheduler_config=SimpleNamespace(max_num_seqs=N_SEQUENCES),
            model_config=SimpleNamespace(
                skip_tokenizer_init=False,
                get_vocab_size=lambda: self.n_vocab,
                is_diffusion=False,
                max_model_len=2 * MOST,
                hf_config=SimpleNamespace(model_type="qwen"),
            ),
            speculative_config=None,
            num_speculative_tokens=0,
            additional_config={"anygram": options},
        )
        self.manager: Any = manager.StructuredOutputManager(config)
        self.eos = tokens.eos_token_id

    def begin(self, name: str, schema: str) -> Any:
        """A request with its grammar compiled."""
        from vllm.sampling_params import SamplingParams, StructuredOutputsParams
        from vllm.v1.structured_output.request import StructuredOutputRequest

        params: Any = SamplingParams(max_tokens=MOST, structured_outputs=StructuredOutputsParams(json=schema))
        params._all_stop_token_ids = {self.eos}
        params.structured_outputs._backend = self.name
        request = Request(
            request_id=name,
            sampling_params=params,
            structured_output_request=StructuredOutputRequest.from_sampling_params(params),
            use_structured_output=True,
            prompt_token_ids=[1],
            num_prompt_tokens=1,
            num_output_tokens=0,
            all_token_ids=[1],
        )
        self.manager.grammar_init(request)
        # Others may need minutes for one schema.
        end = time.monotonic() + 900
        while not request.structured_output_request.is_grammar_ready:
            if time.monotonic() > end:
                raise TimeoutError(name)
            time.sleep(0.0005)
        if isinstance(request.structured_output_request.grammar, Exception):
            raise request.structured_output_request.grammar
        return request

    def step(self, requests: dict[str, Any], tokens: dict[str, int]) -> Any:
        """What a step costs the engine's loop: all masks, and all tokens."""
        masks = self.manager.grammar_bitmask(requests, list(requests), {})
        for name, token in tokens.items():
            assert self.manager.accept_tokens(requests[name], [token]), name
        return masks


def accepted(manager: Manager, asked: list[tuple[str, str]], tokens: Any) -> list[int]:
    """Which schemas compile, and accept the instance to its end."""
    found = []
    for at, (schema, text) in enumerate(asked):
        ids = tokens.encode(text, add_special_tokens=False)
        try:
            request = manager.begin(f"{at}", schema)
        except Exception:
            continue
        grammar = request.structured_output_request.grammar
        whole = [*ids, manager.eos]
        if all(grammar.accept_tokens("r", [id]) for id in whole) and grammar.is_terminated():
            found.append(at)
    return found


class Batch:
    """256 sequences side by side; one that ends is replaced by the next, without end."""

    def __init__(self, manager: Manager, asked: list[tuple[str, str]], ids: list[list[int]]) -> None:
        self.manager, self.asked, self.ids = manager, asked, ids
        self.requests: dict[str, Any] = {}
        self.places: dict[str, tuple[int, int]] = {}
        self.n_begun = self.n_ended = 0

    def steps(self, is_over: Callable[[int], bool]) -> list[tuple[float, float]]:
        """Steps until it is over after so many of them: wall-clock and CPU seconds of each."""
        times: list[tuple[float, float]] = []
        while not is_over(len(times)):
            while len(self.requests) < N_SEQUENCES:
                at, name = self.n_begun % len(self.asked), f"{self.n_begun}"
                self.requests[name] = self.manager.begin(name, self.asked[at][0])
                self.places[name] = (at, 0)
                self.n_begun += 1
            times.append(self._step())
        return times

    def is_read(self) -> bool:
        """Whether a text has to be read again for there to be enough."""
        return self.n_begun >= len(self.asked) and len(self.requests) < N_SEQUENCES

    def _step(self) -> tuple[float, float]:
        tokens = {name: self.ids[at][place] for name, (at, place) in self.places.items()}
        began, began_cpu = time.perf_counter(), time.process_time()
        masks = self.manager.step(self.requests, tokens)
        took = time.perf_counter() - began, time.process_time() - began_cpu
        for row, (name, token) in enumerate(tokens.items()):
            assert masks[row, token // 32] >> (token % 32) & 1, f"{name}: a token is not in its mask"
            at, place = self.places[name]
            self.requests[name].num_output_tokens = place + 1
            if place + 1 == len(self.ids[at]):
                del self.requests[name], self.places[name]
                self.n_ended += 1
            else:
                self.places[name] = (at, place + 1)
        return took


def quantiles(seconds: list[float]) -> dict[str, float]:
    p50, p99 = np.quantile(seconds, [0.5, 0.99]) * 1e6
    return {"p50_us": round(float(p50), 1), "p99_us": round(float(p99), 1)}


def child(options: argparse.Namespace) -> None:
    """One engine."""
    tokens = tokenizer(options.data, options.folder)
    asked = work(options.data, options.schemas)
    manager = Manager(options.wheel, options.engine, tokens)
    if options.ids is None:
        print(json.dumps(accepted(manager, asked, tokens)))
        return
    chosen = json.loads(options.ids.read_text())
    asked = [asked[at] for at in chosen]
    ids = [[*tokens.encode(text, add_special_tokens=False), manager.eos] for _, text in asked]
    report: dict[str, Any] = {"engine": options.engine, "sequences": N_SEQUENCES, "schemas": len(asked)}
    batch = Batch(manager, asked, ids)
    began = time.process_time()
    first = batch.steps(lambda _: batch.is_read())
    report["first pass, CPU s"] = round(time.process_time() - began, 1)
    batch.steps(lambda _: batch.n_ended >= len(asked))
    times = {"first pass": first, "later steps": batch.steps(lambda n: n == 400)}
    for name, steps in times.items():
        report[name] = {
            "steps": len(steps),
            "wall": quantiles([wall for wall, _ in steps]),
            "cpu": quantiles([cpu for _, cpu in steps]),
        }
    report["load"] = os.getloadavg()[0]
    service = getattr(manager.manager.backend, "service", None)
    if service is not None:
        report["stats"] = service.stats
    print(json.dumps(report))


def compile_beside(options: argparse.Namespace) -> None:
    """Masks of 64 sequences, alone and while another thread compiles."""
    tokens = tokenizer(options.data, options.folder)
    asked = work(options.data, options.schemas)
    manager = Manager(options.wheel, "anygram", tokens)
    chosen = accepted(manager, asked[:120], tokens)[:64]
    requests = {f"{at}": manager.begin(f"{at}", asked[at][0]) for at in chosen}
    service = manager.manager.backend.service
    schemas = [schema for schema, _ in asked]

    def masks() -> list[float]:
        times = []
        for _ in range(2000):
            began = time.perf_counter()
            manager.manager.grammar_bitmask(requests, list(requests), {})
            times.append(time.perf_counter() - began)
            # As between the steps of a model.
            time.sleep(0.001)
        return times

    masks()
    report: dict[str, Any] = {"sequences": len(requests), "cores": os.cpu_count()}
    stop = threading.Event()
    n_compiled = 0

    def compile() -> None:
        nonlocal n_compiled
        while not stop.is_set():
            schema = schemas[n_compiled % len(schemas)]
            try:
                # Another text each time, so that nothing is known.
                service.get("json", schema + " " * (n_compiled // len(schemas) + 1))
            except ValueError:
                pass
            n_compiled += 1

    for turn in range(3):
        alone = quantiles(masks())
        stop.clear()
        thread = threading.Thread(target=compile)
        thread.start()
        beside = quantiles(masks())
        stop.set()
        thread.join()
        report[f"turn {turn}"] = {"alone": alone, "while compiling": beside, "compiled": n_compiled}
    service.get("json", schemas[0])
    n = 20_000
    took = min(timeit.repeat(lambda: service.get("json", schemas[0]), number=n, repeat=9)) / n
    report["cached_compile_us"] = round(took * 1e6, 2)
    backend = manager.manager.backend
    kind = next(iter(requests.values())).structured_output_request.structured_output_key[0]
    took = (
        min(
            timeit.repeat(
                lambda: backend.compile_grammar(kind, schemas[chosen[0]], {manager.eos}), number=n, repeat=5
            )
        )
        / n
    )
    report["cached_request_us"] = round(took * 1e6, 2)
    print(json.dumps(report, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--schemas", type=int, default=1400)
    parser.add_argument("--compile-beside", action="store_true")
    parser.add_argument("--engine")
    parser.add_argument("--folder", type=Path, help="keeps the tokenizer, and which schemas all accept")
    parser.add_argument("--ids", type=Path)
    options = parser.parse_args()
    if options.engine is not None:
        child(options)
        return
    with tempfile.TemporaryDirectory() as name:
        options.folder = options.folder or Path(name)
        if options.compile_beside:
            compile_beside(options)
            return

        def run(engine: str, *more: str) -> Any:
            command = [sys.executable, __file__, str(options.wheel), "--data", str(options.data)]
            command += [
                "--schemas",
                str(options.schemas),
                "--folder",
                str(options.folder),
                "--engine",
                engine,
            ]
            done = subprocess.run([*command, *more], stdout=subprocess.PIPE, text=True, check=True)
            return json.loads(done.stdout.splitlines()[-1])

        ids = options.folder / f"accepted-{options.schemas}.json"
        if not ids.exists():
            common = set.intersection(*(set(run(engine)) for engine in ENGINES if "," not in engine))
            ids.write_text(json.dumps(sorted(common)))
        n_common = len(json.loads(ids.read_text()))
        print(
            json.dumps({"load": os.getloadavg()[0], "cores": os.cpu_count(), "schemas": n_common}), flush=True
        )
        for engine in ENGINES:
            print(json.dumps(run(engine, "--ids", str(ids))), flush=True)


if __name__ == "__main__":
    main()
