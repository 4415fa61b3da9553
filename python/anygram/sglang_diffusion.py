"""Structured outputs of block-diffusion models in SGLang: a denoising algorithm.

    ANYGRAM_SGLANG_DIFFUSION=1 python -m sglang.launch_server --model-path inclusionAI/LLaDA2.0-mini \\
        --dllm-algorithm AnygramLowConfidence

It is SGLang's `LowConfidence` for requests that ask for nothing, and the decoding loop of `Decoder` for those
with a JSON schema, a regular expression, a grammar or a structural tag. A block ends as the beginning of an
output that the tokens of the request can still complete, the last one as a sentence. The algorithm's file of
options (`--dllm-algorithm-config`) takes, besides `threshold`:

| option | default | what |
|---|---|---|
| `strategy` | `exact` | one of `Decoder.STRATEGIES` |
| `edit_threshold`, `max_post_edit_steps` | none, 16 | edits of LLaDA 2.1, as of SGLang's `JointThreshold` |
| `candidates` | 256 | so many of the likeliest tokens of each slot leave the device |

Written for SGLang 0.5.23. SGLang is imported by `plugin` alone, torch by SGLang.
"""

from __future__ import annotations

import importlib
import logging
from collections import OrderedDict
from typing import Any, ClassVar

from anygram._errors import AnygramError
from anygram._native import Canvas, Decoder, Session
from anygram._serving import is_switched_on, vocabulary_of
from anygram.diffusion._models import rows_of
from anygram.serving import Compilation, CompileService, split_options
from anygram.sglang import asked_of, server_options

__all__ = ["Blocks", "plugin"]

VARIABLE = "ANYGRAM_SGLANG_DIFFUSION"
"""The variable of the environment that switches it on."""

NAME = "AnygramLowConfidence"
"""What `--dllm-algorithm` takes."""

KINDS = (
    ("json_schema", "json"),
    ("regex", "regex"),
    ("ebnf", "ebnf"),
    ("structural_tag", "structural_tag"),
)
"""Fields of a request's parameters, and SGLang's names of what they ask for."""

MOST_REQUESTS = 1 << 16
"""Requests that are remembered. Those that end are forgotten; SGLang does not tell which were aborted."""

logger = logging.getLogger(__name__)


def plugin() -> None:
    """What SGLang calls in each of its processes. Does nothing unless the variable `ANYGRAM_SGLANG_DIFFUSION`
    is 1; a second call changes nothing.

    Raises:
        AnygramError: the variable is something else.
    """
    if not is_switched_on(VARIABLE):
        return
    known: dict[str, Any] = importlib.import_module("sglang.srt.dllm.algorithm").algo_name_to_cls
    if NAME not in known:
        base: Any = importlib.import_module("sglang.srt.dllm.algorithm.low_confidence").LowConfidence
        known[NAME] = type(NAME, (Blocks, base), {"base": base, "requests": OrderedDict()})


class Blocks:
    """What is put above SGLang's `LowConfidence`: blocks of constrained requests."""

    base: ClassVar[Any]
    requests: ClassVar[OrderedDict[str, _Request]]
    service: ClassVar[CompileService | None] = None

    def __init__(self, config: Any) -> None:
        self.base.__init__(self, config)
        options: dict[str, Any] = config.algorithm_config
        self.block: int = config.block_size
        self.mask: int = config.mask_id
        self.strategy: str = options.get("strategy", "exact")
        if self.strategy not in Decoder.STRATEGIES:
            known = ", ".join(Decoder.STRATEGIES)
            raise AnygramError(f"no strategy `{self.strategy}`; there are {known}")
        self.candidates: int | None = options.get("candidates", 256)
        self.most_edits: int = options.get("max_post_edit_steps", 16)
        self.options: dict[str, Any] = {
            "open_slots": self.mask,
            "block": None,
            "steps": self.block,
            "pace": {"threshold": options.get("threshold", 0.95)},
        }
        above = options.get("edit_threshold")
        if above is not None:
            self.options["revision"] = {"above": above, "most": self.most_edits}

    @classmethod
    def validate_request(cls, req: Any) -> str | None:
        """Called by SGLang when a request comes: begins to compile what it asks for. What it asks is taken
        out of its parameters, so that SGLang's grammars do not compile it too."""
        error: str | None = cls.base.validate_request(req)
        cls.requests.pop(req.rid, None)
        params = req.sampling_params
        asked = [(field, kind) for field, kind in KINDS if getattr(params, field, None) is not None]
        if error is not None or not asked:
            return error
        if len(asked) > 1:
            return f"give one of {', '.join(field for field, _ in asked)}"
        ((field, kind),) = asked
        try:
            if cls.service is None:
                options, service = split_options(server_options())
                # Blocks use no masks from left to right, so none are prepared.
                service.setdefault("prepared_masks", 0)
                cls.service = CompileService(vocabulary_of(req.tokenizer), options, **service)
            name, source = asked_of((kind, getattr(params, field)))
            compilation = cls.service.submit(name, source)
        except AnygramError as raised:
            return str(raised if cls.service is None else cls.service.error_of(raised))
        setattr(params, field, None)
        cls.requests[req.rid] = _Request(compilation, params.max_new_tokens)
        if len(cls.requests) > MOST_REQUESTS:
            cls.requests.popitem(last=False)
        return None

    def max_steps(self, block_size: int) -> int:
        """The most steps of a block."""
        return self.base.max_steps(self, block_size) + self.most_edits

    def step(self, forward_batch: Any, full_logits: Any, states: list[Any]) -> list[bool]:
        """Called by SGLang with the logits of all blocks: fills slots in place, and says which are done."""
        rids: list[str] = forward_batch.rids or []
        rows = {row: self.requests[rid] for row, rid in enumerate(rids) if rid in self.requests}
        n_rows: int = forward_batch.batch_size
        ids = forward_batch.input_ids.view(n_rows, self.block)
        before = {row: ids[row].clone() for row in rows}
        done: list[bool] = list(self.base.step(self, forward_batch, full_logits, states))
        logits = full_logits.view(n_rows, self.block, -1)
        for row, request in rows.items():
            ids[row].copy_(before[row])
            prompt = forward_batch.dllm_prompt_mask
            done[row] = self._step(
                rids[row], request, ids[row], logits[row], None if prompt is None else prompt[row]
            )
        return done

    def _step(self, rid: str, request: _Request, ids: Any, logits: Any, prompt: Any) -> bool:
        try:
            return self._fill(rid, request, ids, logits, prompt)
        except AnygramError as error:
            # There is no error for one request from here: it ends with an empty rest.
            assert self.service is not None
            logger.error("request %s: %s", rid, self.service.error_of(error))
            ids[ids == self.mask] = self.service.vocabulary.eos[0]
            self.requests.pop(rid, None)
            return False

    def _fill(self, rid: str, request: _Request, ids: Any, logits: Any, prompt: Any) -> bool:
        assert self.service is not None
        vocabulary = self.service.vocabulary
        if request.session is None:
            is_open = ids == self.mask
            if prompt is not None:
                is_open = is_open & ~prompt
            if not bool(is_open.any()):
                # Tokens of the prompt, or of blocks that are read again.
                return True
            request.begin(int(is_open.int().argmax()), self.block, self.strategy, self.options)
            # What comes after the last token of the request is cut off by SGLang.
            ids[request.first + request.width :] = vocabulary.eos[0]
        session = request.session
        assert session is not None
        view = session.view()
        n_before = len(request.committed)
        if view is not None:
            places = [request.first + slot - n_before for slot in view.wanted]
            session.answer(rows_of(logits[places], len(vocabulary), self.mask, self.candidates))
        tokens = session.tokens[n_before:]
        written = ids.new_tensor([self.mask if token is None else token for token in tokens])
        block = ids[request.first : request.first + request.width]
        is_changed = bool((block != written).any())
        block.copy_(written)
        if session.view() is not None or is_changed:
            return False
        # The forward pass of this step has seen the block as it is.
        if session.decoded().is_stuck:
            raise AnygramError(f"the strategy {self.strategy} is stuck in a block", kind="undecided")
        request.commit([token for token in tokens if token is not None])
        if not set(vocabulary.eos).isdisjoint(request.committed) or request.left == 0:
            self.requests.pop(rid, None)
        return True


class _Request:
    """A constrained request: what it has committed, and the run of its block."""

    def __init__(self, compilation: Compilation, most: int | None) -> None:
        self._compilation = compilation
        self._most = most
        self._decoder: Decoder | None = None
        self.committed: list[int] = []
        self.session: Session | None = None
        self.first = 0
        """Where the block begins to be its own, behind the prompt."""
        self.width = 0

    @property
    def left(self) -> int | None:
        """Tokens that the output may still have."""
        return None if self._most is None else max(0, self._most - len(self.committed))

    def begin(self, first: int, size: int, strategy: str, options: dict[str, Any]) -> None:
        """Begins a block."""
        if self._decoder is None:
            self._decoder = Decoder(self._compilation.result().constraint, strategy)
        left, self.first = self.left, first
        self.width = size - first if left is None else min(size - first, left)
        remaining = None if left is None else left - self.width
        slots = [*self.committed, *[None] * self.width]
        canvas = Canvas(slots, "sentence") if remaining == 0 else Canvas(slots, "prefix", remaining=remaining)
        self.session = self._decoder.begin(canvas, **options)

    def commit(self, tokens: list[int]) -> None:
        """Ends a block."""
        self.committed += tokens
        self.session = None
