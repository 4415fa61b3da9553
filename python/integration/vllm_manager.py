"""Whole requests through vLLM's own manager of structured outputs, with a fake runner of a model.

    pip download --no-deps vllm==0.33.0
    pip install torch numpy tokenizers transformers msgspec regex cachetools pydantic
    python python/integration/vllm_manager.py vllm-0.33.0-*.whl

Out of the wheel run `StructuredOutputManager`, `StructuredOutputRequest`, the abstract classes of back ends,
`SamplingParams` with its validation of requests, and the exceptions; everything else of vLLM is a stand-in.
No device is needed. Not a part of `.ci/run`, since the wheel and torch are large. Fails where a mask or an
output is wrong.
"""

from __future__ import annotations

import codecs
import json
import os
import random
import re
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anygram
import anygram.vllm
import numpy as np
from engine_stubs import Wheel

REAL = {
    "vllm.exceptions",
    "vllm.sampling_params",
    "vllm.utils.import_utils",
    "vllm.v1.engine.detokenizer",
    "vllm.v1.structured_output",
    "vllm.v1.structured_output.backend_types",
    "vllm.v1.structured_output.backend_xgrammar",
    "vllm.v1.structured_output.request",
    "vllm.v1.structured_output.utils",
}
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "tags": {"type": "array", "items": {"enum": ["a", "b", None]}, "maxItems": 3},
        "n": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["name", "tags"],
    "additionalProperties": False,
}
GBNF = 'root ::= "(" inner ")"\ninner ::= [a-c]{1,4} | root'
LARK = 'start: "SELECT " NAME ("," NAME)~0..2 ";"\nNAME: /[a-z]{1,3}/'
LETTERS = {"type": "regex", "pattern": "[a-f]{1,4}"}
TAG = json.dumps({"format": {"type": "tag", "begin": "<a>", "content": LETTERS, "end": "</a>"}})
CHOICES = ["yes", "no", 'a "third" \n🙂']
N_VOCAB = 1600
"""Rows of the output layer: more than the tokenizer has tokens."""


def config(**changes: Any) -> Any:
    """What the manager reads of vLLM's configuration."""
    outputs = SimpleNamespace(
        backend="auto",
        disable_any_whitespace=False,
        disable_additional_properties=False,
        reasoning_parser=changes.get("reasoning", ""),
        reasoning_parser_plugin="",
        enable_in_reasoning=False,
    )
    return SimpleNamespace(
        structured_outputs_config=outputs,
        parallel_config=SimpleNamespace(distributed_executor_backend="mp"),
        scheduler_config=SimpleNamespace(max_num_seqs=changes.get("max_num_seqs", 256)),
        model_config=SimpleNamespace(
            skip_tokenizer_init=False,
            get_vocab_size=lambda: N_VOCAB,
            is_diffusion=False,
            max_model_len=4096,
        ),
        speculative_config=None,
        num_speculative_tokens=changes.get("drafts", 0),
        additional_config={"anygram": {"cache_entries": 64, "avoid_stop": changes.get("avoid", False)}},
    )


class Request(SimpleNamespace):
    """What is read of a request of vLLM."""

    is_aborted = False

    @property
    def num_output_tokens(self) -> int:
        return len(self.all_token_ids) - self.num_prompt_tokens

    def is_finished(self) -> bool:
        return self.is_aborted


class Runner:
    """Requests of an engine without its scheduler, and random logits instead of a model."""

    def __init__(self, seed: int, **changes: Any) -> None:
        from vllm.v1.structured_output import StructuredOutputManager

        self.config = config(**changes)
        self.manager: Any = StructuredOutputManager(self.config)
        self.random = random.Random(seed)
        self.vocabulary = anygram.Vocabulary.builtin()
        self.requests: dict[str, Any] = {}
        self.n_masks = 0

    def add(
        self,
        name: str,
        stops: set[int] | None = None,
        most: int = 1000,
        sampling: dict[str, Any] | None = None,
        **asked: Any,
    ) -> Any:
        """A request, as the API server checks it and the engine begins it."""
        from vllm.sampling_params import SamplingParams, StructuredOutputsParams
        from vllm.v1.structured_output.request import StructuredOutputRequest

        outputs = StructuredOutputsParams(**asked)
        params: Any = SamplingParams(max_tokens=most, structured_outputs=outputs, **(sampling or {}))
        params._all_stop_token_ids = set(self.vocabulary.eos) if stops is None else stops
        params._validate_structured_outputs(
            self.config.model_config, self.config.structured_outputs_config, self.vocabulary
        )
        request = Request(
            request_id=name,
            sampling_params=params,
            structured_output_request=StructuredOutputRequest.from_sampling_params(params),
            use_structured_output=True,
            prompt_token_ids=[1, 2, 3],
            num_prompt_tokens=3,
            all_token_ids=[1, 2, 3],
            output=[],
        )
        self.manager.grammar_init(request)
        self.requests[name] = request
        return request

    def wait(self) -> dict[str, Exception]:
        """Polls as the scheduler does; takes the requests out whose grammar failed."""
        deadline = time.monotonic() + 120
        while not all(r.structured_output_request.is_grammar_ready for r in self.requests.values()):
            assert time.monotonic() < deadline, "a grammar is not ready"
            time.sleep(0.001)
        failed = {
            name: request.structured_output_request.grammar
            for name, request in self.requests.items()
            if isinstance(request.structured_output_request.grammar, Exception)
        }
        for name in failed:
            del self.requests[name]
        return failed

    def step(self, names: list[str], drafts: dict[str, list[int]]) -> dict[str, list[int]]:
        """One step of some requests: masks, sampling, and what was accepted of drafts."""
        stride = 1 + self.config.num_speculative_tokens
        masks = self.manager.grammar_bitmask(self.requests, names, drafts)
        assert masks.dtype == np.int32 and masks.shape == (len(names) * stride, N_VOCAB // 32)
        done: dict[str, list[int]] = {}
        for at, name in enumerate(names):
            new: list[int] = []
            for row, draft in enumerate([*drafts.get(name, []), None]):
                mask = masks[at * stride + row]
                if self.random.random() < 0.05:
                    self.check(name, new, mask)
                token = self.sample(mask)
                new.append(token if draft is None else draft if allows(mask, draft) else token)
                if draft is None or new[-1] != draft or new[-1] in self.stops(name):
                    break
            request = self.requests[name]
            request.all_token_ids.extend(new)
            request.output.extend(new)
            assert self.manager.accept_tokens(request, new), (name, new)
            done[name] = new
        return done

    def check(self, name: str, new: list[int], mask: Any) -> None:
        """A mask is that of an output made anew."""
        grammar = self.requests[name].structured_output_request.grammar
        fresh = grammar.output.matcher.constraint.matcher(eos=grammar.output.matcher.eos)
        fresh.advance_all(self.requests[name].output + new)
        if not fresh.has_ended:
            # The request's tokens, less those so far and one for EOS.
            most = self.requests[name].sampling_params.max_tokens
            expected = fresh.mask(budget=most - 1 - len(fresh.tokens))
            if self.config.additional_config["anygram"]["avoid_stop"]:
                self.leave_out(expected, fresh.text, self.requests[name].sampling_params.stop)
            assert (mask.view(np.uint32)[: len(expected)] == expected).all(), name
            assert not mask[len(expected) :].any(), name
        self.n_masks += 1

    def leave_out(self, mask: Any, text: bytes, stop: list[str]) -> None:
        """Takes the tokens out of a mask with which a stop string stands in the text."""
        for token in np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist():
            longer = text + self.vocabulary.decode([token])
            if any(one.encode() in longer for one in stop):
                mask[token // 32] &= ~np.uint32(1 << token % 32)

    def sample(self, mask: Any) -> int:
        bits = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        assert len(bits), "no token is allowed"
        # Ends are likely, so that outputs are short.
        if self.random.random() < 0.3 and set(self.vocabulary.eos) & set(bits.tolist()):
            return self.vocabulary.eos[0]
        return int(self.random.choice(bits))

    def stops(self, name: str) -> set[int]:
        return self.requests[name].sampling_params.all_stop_token_ids

    def run(self, *, n_steps: int = 400) -> dict[str, bytes]:
        """All requests until they end. Some wait for some steps, as preempted ones do."""
        active = list(self.requests)
        ended: dict[str, bytes] = {}
        drafts: dict[str, list[int]] = {}
        for _ in range(n_steps):
            if not active:
                break
            names = [name for name in active if self.random.random() < 0.9] or active
            self.step(names, {name: drafts[name] for name in names if drafts.get(name)})
            for name in names:
                drafts[name] = self.drafts(name)
                output = self.requests[name].output
                if output[-1] in self.stops(name):
                    assert self.requests[name].structured_output_request.grammar.is_terminated(), name
                    ended[name] = self.vocabulary.decode(output[:-1])
                    active.remove(name)
        return ended

    def drafts(self, name: str) -> list[int]:
        """Drafts as the scheduler prepares them: checked, and filled up."""
        n = self.config.num_speculative_tokens
        grammar = self.requests[name].structured_output_request.grammar
        if not n or grammar.is_terminated():
            return []
        # Drafts know nothing of stop strings.
        trial = grammar.output.matcher.fork()
        proposed: list[int] = []
        for _ in range(n):
            if trial.has_ended:
                break
            token = self.sample(trial.mask().view(np.int32))
            if self.random.random() < 0.2:
                token = self.random.randrange(len(self.vocabulary))
            proposed.append(token)
            if not trial.try_advance([token]):
                break
        proposed += [-1] * (n - len(proposed))
        before = grammar.output.matcher.tokens
        checked = self.manager.validate_tokens(self.requests[name], proposed)
        assert grammar.output.matcher.tokens == before
        assert checked == proposed[: len(checked)]
        # Some engines schedule the block with what fills it up.
        return checked + [-1] * (n - len(checked)) if self.random.random() < 0.5 else checked


def allows(mask: Any, token: int) -> bool:
    return token >= 0 and bool(mask[token // 32] >> (token % 32) & 1)


def is_record(text: bytes) -> bool:
    value = json.loads(text)
    return (
        list(value) in (["name", "tags"], ["name", "tags", "n"])
        and len(value["name"]) <= 8
        and set(value["tags"]) <= {"a", "b", None}
        and 0 <= value.get("n", 0) <= 99
    )


ASKED: list[tuple[dict[str, Any], Any]] = [
    ({"json": SCHEMA}, is_record),
    ({"json": json.dumps({**SCHEMA, "x-anygram": {"whitespace": "compact"}})}, is_record),
    ({"json_object": True}, lambda text: isinstance(json.loads(text), dict)),
    ({"regex": r"[a-f]{2,5}-\d+"}, lambda text: re.fullmatch(r"[a-f]{2,5}-\d+", text.decode())),
    ({"choice": CHOICES}, lambda text: text.decode() in CHOICES),
    ({"grammar": GBNF}, lambda text: re.fullmatch(rb"\(+[abc]{1,4}\)+", text)),
    ({"grammar": LARK}, lambda text: re.fullmatch(rb"SELECT [a-z]{1,3}(,[a-z]{1,3}){0,2};", text)),
    ({"structural_tag": TAG}, lambda text: re.fullmatch(rb"<a>[a-f]{1,4}</a>", text)),
]


def whole_requests(seed: int, n: int, **changes: Any) -> None:
    runner = Runner(seed, **changes)
    checks: dict[str, Any] = {}
    for at in range(n):
        asked, check = ASKED[at % len(ASKED)]
        name = f"{at} {next(iter(asked))}"
        checks[name] = check
        runner.add(name, **asked)
    assert not runner.wait()
    began = time.perf_counter()
    ended = runner.run()
    for name, text in ended.items():
        assert checks[name](text), (name, text)
    stats = runner.manager.backend.service.stats
    assert stats["compiled"] == len(ASKED), stats
    print(
        f"{len(ended)} of {n} requests ended, {changes}: outputs and {runner.n_masks} masks are right, "
        f"{time.perf_counter() - began:.1f} s, {stats}"
    )
    assert len(ended) > n * 0.8
    runner.manager.clear_backend()


def errors() -> None:
    from vllm.exceptions import VLLMClientError, VLLMValidationError

    runner = Runner(1)
    try:
        runner.add("refused", json="{")
    except VLLMClientError as error:
        assert isinstance(error, anygram.AnygramError) and not isinstance(error, VLLMValidationError)
    else:
        raise AssertionError("a schema that is no JSON")
    runner.add("good", regex="a+")
    runner.add("bad grammar", grammar="start: nothing")
    runner.add("bad schema", json={"type": "strange"})
    runner.add("bad tag", structural_tag='{"format": {}}')
    runner.add("no end", stops={N_VOCAB + 5}, regex="a+")
    failed = runner.wait()
    assert failed.keys() == {"bad grammar", "bad schema", "bad tag", "no end"}, failed
    assert all(isinstance(error, ValueError) for error in failed.values())
    assert runner.run().keys() == {"good"}
    late = runner.add("late", regex="b")
    assert not runner.wait()
    assert not runner.manager.accept_tokens(late, runner.vocabulary.encode("c"))
    print("errors are errors of one request")


def stops() -> None:
    """A stop token with bytes ends an output only where it is complete."""
    runner = Runner(2)
    newline = runner.vocabulary.encode("\n")[0]
    request = runner.add("stop", stops={newline, *runner.vocabulary.eos}, regex="a\n?b")
    assert not runner.wait()
    for text in ("a", "b"):
        mask = runner.manager.grammar_bitmask(runner.requests, ["stop"], {})[0]
        assert not allows(mask, newline)
        assert runner.manager.accept_tokens(request, runner.vocabulary.encode(text))
    mask = runner.manager.grammar_bitmask(runner.requests, ["stop"], {})[0]
    assert allows(mask, newline) and allows(mask, runner.vocabulary.eos[0])
    assert runner.manager.accept_tokens(request, [newline])
    grammar = request.structured_output_request.grammar
    assert grammar.is_terminated()
    grammar.rollback(1)
    assert not grammar.is_terminated()
    grammar.reset()
    assert grammar.output.matcher.tokens == []
    print("stop tokens with bytes")


def stop_strings() -> None:
    """vLLM cuts outputs where a stop string first stands; with `avoid_stop` there is none."""
    from vllm.v1.engine.detokenizer import BaseIncrementalDetokenizer

    vocabulary = anygram.Vocabulary.builtin()

    class Detokenizer(BaseIncrementalDetokenizer):
        def __init__(self, request: Any) -> None:
            super().__init__(request)
            self.decoder = codecs.getincrementaldecoder("utf-8")()

        def decode_next(self, next_token_id: int) -> str:
            return self.decoder.decode(vocabulary.decode([next_token_id]))

    stop = ["e", "[n", '" ']
    for seed, avoid, include, drafts in (
        (11, False, False, 0),
        (12, False, True, 0),
        (13, True, False, 0),
        (14, True, True, 3),
    ):
        runner = Runner(seed, avoid=avoid, drafts=drafts)
        for n in range(40):
            sampling = {"stop": stop, "include_stop_str_in_output": include}
            runner.add(
                f"{n}",
                sampling=sampling,
                most=200,
                json={"type": "array", "items": {"type": ["string", "null"]}},
            )
        assert not runner.wait()
        n_cut = 0
        for name, written in runner.run().items():
            request = runner.requests[name]
            detokenizer = Detokenizer(request)
            found = None
            for token in request.output:
                found = detokenizer.update([token], token in runner.stops(name))
                if found:
                    break
            text = written.decode()
            at = (
                min((text.find(one) + len(one), text.find(one)) for one in stop if one in text)
                if found
                else None
            )
            assert (found is None) == all(one not in text for one in stop), (found, text)
            expected = text if at is None else text[: at[0] if include else at[1]]
            assert detokenizer.get_next_output_text(True, False) == expected, (expected, text)
            n_cut += found is not None
            if not found:
                json.loads(expected)
        assert n_cut == 0 if avoid else n_cut > 5, n_cut
    print("outputs are cut at stop strings, or kept from them")


def reasoning() -> None:
    """Nothing is constrained before reasoning ends."""
    runner = Runner(3)
    end = 7

    class Reasoner:
        def __init__(self, tokenizer: Any) -> None:
            pass

        def is_reasoning_end(self, tokens: list[int]) -> bool:
            return end in tokens

        def is_reasoning_end_streaming(self, tokens: list[int], delta: list[int]) -> bool:
            return end in delta

    runner.manager.reasoner_cls = Reasoner
    request = runner.add("thinks", regex="ab")
    assert not runner.wait()
    for tokens in ([20, 21], [22]):
        assert (runner.manager.grammar_bitmask(runner.requests, ["thinks"], {})[0] == -1).all()
        request.all_token_ids.extend(tokens)
        assert runner.manager.accept_tokens(request, tokens)
    a, b = runner.vocabulary.encode("a")[0], runner.vocabulary.encode("b")[0]
    request.all_token_ids.extend([23, end, a])
    assert runner.manager.accept_tokens(request, [23, end, a])
    mask = runner.manager.grammar_bitmask(runner.requests, ["thinks"], {})[0]
    assert allows(mask, b) and not allows(mask, a)
    print("reasoning is not constrained")


def budgets() -> None:
    """Outputs are complete within the tokens of their requests, also with drafts and after reasoning."""
    rows = {"type": "array", "items": {"enum": [None, True, 12]}}
    for drafts in (0, 3):
        runner = Runner(8 + drafts, drafts=drafts, reasoning="")
        # EOS is likely in the other tests; here outputs grow until they have to end.
        runner.sample = longest(runner)  # type: ignore[method-assign]
        for n in range(30):
            runner.add(f"{n}", most=4 + n, json=rows)
        assert not runner.wait()
        ended = runner.run()
        assert len(ended) == 30
        for n, text in ended.items():
            assert isinstance(json.loads(text), list)
            assert len(runner.requests[n].output) <= 4 + int(n), (n, text)
        longest_outputs = sum(len(runner.requests[n].output) >= int(n) for n in ended)
        assert longest_outputs > 5, [len(runner.requests[n].output) for n in ended]
    runner = Runner(9)
    runner.add("short", most=2, regex="abcdefgh")
    assert isinstance(runner.wait()["short"], anygram.LimitError)
    print("outputs are complete within max_tokens")


def longest(runner: Runner) -> Any:
    ends = {*runner.vocabulary.eos, *runner.vocabulary.encode("]")}

    def sample(mask: Any) -> int:
        bits = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()
        assert bits, "no token is allowed"
        return int(runner.random.choice([bit for bit in bits if bit not in ends] or bits))

    return sample


def aborted() -> None:
    """An aborted request stops its compilation, and the executor takes the next."""
    runner = Runner(10)
    runner.add("first", regex="a")
    assert not runner.wait()
    request = runner.add("aborted", json={"enum": [f"{n}" * 20 for n in range(30_000)]})
    time.sleep(0.05)
    request.is_aborted = True
    runner.add("next", regex="b")
    failed = runner.wait()
    assert isinstance(failed["aborted"], anygram.Cancelled), failed
    assert runner.run().keys() == {"first", "next"}
    print("an aborted request stops its compilation")


def main() -> None:
    wheel = Wheel(Path(sys.argv[1]), "vllm", REAL)
    wheel.install()
    import vllm.envs
    import vllm.utils.mistral

    vllm.envs.VLLM_MAX_N_SEQUENCES = 100
    vllm.envs.VLLM_BATCH_INVARIANT = False
    vllm.utils.mistral.is_mistral_tokenizer = lambda tokenizer: False
    import vllm.v1.structured_output as manager

    before = manager.XgrammarBackend
    anygram.vllm.plugin()
    assert manager.XgrammarBackend is before, "inert unless asked for"
    os.environ["ANYGRAM_VLLM"] = "1"
    anygram.vllm.plugin()
    anygram.vllm.plugin()
    assert manager.XgrammarBackend is anygram.vllm.Backend
    # The tokenizer that the manager makes by itself.
    manager.cached_tokenizer_from_config = lambda model_config: anygram.Vocabulary.builtin()

    from vllm.v1.structured_output.backend_types import StructuredOutputBackend, StructuredOutputGrammar

    assert issubclass(anygram.vllm.Backend, StructuredOutputBackend)
    assert issubclass(anygram.vllm.Grammar, StructuredOutputGrammar)
    for base, ours in (
        (StructuredOutputBackend, anygram.vllm.Backend),
        (StructuredOutputGrammar, anygram.vllm.Grammar),
    ):
        assert all(hasattr(ours, name) for name in base.__abstractmethods__)
    errors()
    stops()
    stop_strings()
    reasoning()
    budgets()
    aborted()
    whole_requests(4, 40)
    whole_requests(5, 40, drafts=3)
    whole_requests(6, 200)
    print("stand-ins:", ", ".join(sorted(wheel.stands_in)))


if __name__ == "__main__":
    main()
