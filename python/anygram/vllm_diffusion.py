"""Structured outputs of diffusion models in vLLM: whole canvases of DiffusionGemma under a constraint.

    ANYGRAM_VLLM_DIFFUSION=1 vllm serve google/diffusiongemma-…

vLLM 0.33 refuses `response_format` and `structured_outputs` for diffusion models, before any back end. A
request asks by `extra_args` instead (`vllm_xargs` of its HTTP API): `{"anygram": "{\\"json\\": {…}}"}`, an
object with one of `json`, `regex`, `choice`, `grammar`.

At each denoising step the sampler of vLLM is shown other logits: of the likeliest canvas that a completion
has, each token is the likeliest of its row. So what vLLM commits, the argmax of the last step, is that
canvas: a sentence, or the beginning of one that the tokens of the request can still complete. Three methods
are wrapped, `DiffusionGemmaModelState.custom_sampler` and the `add_request` and `__call__` of the sampler,
and the check of requests. Written for vLLM 0.33.

vLLM is imported by `install` alone, torch by vLLM.
"""

from __future__ import annotations

import functools
import importlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from anygram._errors import AnygramError
from anygram._likeliest import TOP_K, LikeliestCanvas, make_likeliest
from anygram._serving import is_switched_on
from anygram.serving import CompileService
from anygram.vllm import service_of

__all__ = ["CanvasConstrainer", "install", "plugin"]

VARIABLE = "ANYGRAM_VLLM_DIFFUSION"
"""The variable of the environment that switches it on."""

KEY = "anygram"
"""The key of `extra_args`."""

KINDS = ("json", "regex", "choice", "grammar")
"""What a request may ask for."""

logger = logging.getLogger(__name__)


def plugin() -> None:
    """What vLLM calls in each of its processes. Does nothing unless the variable `ANYGRAM_VLLM_DIFFUSION`
    is 1.

    Raises:
        AnygramError: the variable is something else.
    """
    if is_switched_on(VARIABLE):
        install()


def install() -> None:
    """Wraps the sampler of DiffusionGemma and the check of requests in this process. A second call changes
    nothing."""
    model: Any = importlib.import_module("vllm.model_executor.models.diffusion_gemma")
    checks: Any = importlib.import_module("vllm.v1.engine.input_processor")
    sampler: Any = model.DiffusionSampler
    if hasattr(sampler, "anygram"):
        return
    sampler.anygram = True
    make, add_request, call = (
        model.DiffusionGemmaModelState.custom_sampler,
        sampler.add_request,
        sampler.__call__,
    )
    check = checks.validate_diffusion_sampling_params

    @functools.wraps(make)
    def made(self: Any, inner: Any) -> Any:
        result = make(self, inner)
        if result is not None:
            # The tokenizer is read when the first request asks for something.
            result[0]._anygram = CanvasConstrainer(functools.partial(_service, self.vllm_config))
        return result

    @functools.wraps(add_request)
    def added(self: Any, req_idx: int, sampling_params: Any) -> None:
        add_request(self, req_idx, sampling_params)
        self._anygram.add(req_idx, sampling_params)

    @functools.wraps(call)
    def called(self: Any, logits: Any, input_batch: Any, draft_logits: Any = None) -> Any:
        constrainer: CanvasConstrainer = self._anygram
        if not constrainer.slots or input_batch.num_draft_tokens == 0:
            return call(self, logits, input_batch, draft_logits)
        masked = constrainer.mask(logits, input_batch, self.diffusion_states)
        output = call(self, masked, input_batch, draft_logits)
        constrainer.commit(output, input_batch)
        return output

    @functools.wraps(check)
    def checked(params: Any, **named: Any) -> None:
        _check(params)
        check(params, **named)

    model.DiffusionGemmaModelState.custom_sampler = made
    sampler.add_request, sampler.__call__ = added, called
    checks.validate_diffusion_sampling_params = checked


class CanvasConstrainer:
    """The constrained requests of one sampler, by their slots.

    Args:
        service: makes what compiles, when the first request asks for something.
        top_k: how many tokens of each row are looked at first.
    """

    def __init__(self, service: Callable[[], CompileService], top_k: int = TOP_K) -> None:
        self._make = service
        self._service: CompileService | None = None
        self.top_k = top_k
        self.slots: dict[int, LikeliestCanvas] = {}
        self.errors: dict[int, AnygramError] = {}
        """Why the last request of a slot failed: it ended with EOS."""

    @property
    def service(self) -> CompileService:
        """What compiles."""
        if self._service is None:
            self._service = self._make()
        return self._service

    def add(self, slot: int, sampling_params: Any) -> None:
        """A request comes to a slot; the one before is gone. Its compilation begins on another thread."""
        self.slots.pop(slot, None)
        self.errors.pop(slot, None)
        asked = _asked(sampling_params)
        if asked is None:
            return
        most: Any = getattr(sampling_params, "max_tokens", None)
        extra: Mapping[str, Any] = sampling_params.extra_args
        pins = {
            int(at): int(extra["diffusion_seed_canvas"][at]) for at in extra.get("diffusion_pinned") or ()
        }
        compilation = self.service.submit(*asked)
        self.slots[slot] = LikeliestCanvas(
            lambda: compilation.result().constraint, most if type(most) is int else None, pins
        )

    def mask(self, logits: Any, input_batch: Any, states: Any) -> Any:
        """The logits of a step, those of constrained requests so that the likeliest token of each row makes
        the likeliest canvas with a completion. A copy, if there are any."""
        masked: Any = None
        lengths, ends = _rows(input_batch)
        slots: Sequence[int] = input_batch.idx_mapping_np[: input_batch.num_reqs].tolist()
        for slot, length, end in zip(slots, lengths, ends):
            request = self.slots.get(slot)
            if request is None or not length or bool(states.is_encoder_phase[slot]):
                # A request that commits emits what the step before found.
                continue
            if masked is None:
                masked = logits.float().clone()
            rows = masked[end - length : end]
            self._mask(slot, request, rows)
        return logits if masked is None else masked

    def commit(self, output: Any, input_batch: Any) -> None:
        """After a step: notes what was committed."""
        slots: Sequence[int] = input_batch.idx_mapping_np[: input_batch.num_reqs].tolist()
        counts: Sequence[int] = output.num_sampled.tolist()
        for at, (slot, count) in enumerate(zip(slots, counts)):
            request = self.slots.get(slot)
            if request is not None and count:
                request.commit(output.sampled_token_ids[at, :count].tolist())

    def _mask(self, slot: int, request: LikeliestCanvas, rows: Any) -> None:
        """Makes the rows of one request."""
        vocabulary = self.service.vocabulary
        try:
            tokens = request.best(rows, self.top_k)
        except AnygramError as error:
            # The engine has no error for one request from here: it ends with an empty rest.
            shown = self.service.error_of(error)
            if slot not in self.errors:
                logger.error("slot %d: %s", slot, shown)
            self.errors[slot] = shown
            tokens = [vocabulary.eos[0]] * len(rows)
        make_likeliest(rows, tokens)


def _rows(input_batch: Any) -> tuple[list[int], list[int]]:
    """How many rows each request of a batch has, and where they end."""
    ends = np.asarray(input_batch.cu_num_logits_np[: input_batch.num_reqs + 1])
    return np.diff(ends).tolist(), ends[1:].tolist()


def _asked(sampling_params: Any) -> tuple[str, str] | None:
    """What a request asks for.

    Raises:
        AnygramError: it is not one of the kinds.
    """
    extra: Any = getattr(sampling_params, "extra_args", None) or {}
    given: Any = extra.get(KEY)
    if given is None:
        return None
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as error:
            raise AnygramError(f"`{KEY}` of extra_args is no JSON: {error}", kind="syntax") from error
    asked = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    if len(asked) != 1 or not asked.keys() <= set(KINDS):
        raise AnygramError(f"`{KEY}` of extra_args is an object with one of {', '.join(KINDS)}")
    if extra.get("diffusion_constrained"):
        raise AnygramError(f"give either `{KEY}` or `diffusion_constrained`", kind="unsupported")
    ((kind, source),) = asked.items()
    return kind, source if isinstance(source, str) else json.dumps(source)


def _check(params: Any) -> None:
    """Refuses a request before it is queued; its grammar is compiled where the model runs."""
    try:
        _asked(params)
    except AnygramError as error:
        exceptions: Any = importlib.import_module("vllm.exceptions")
        raise exceptions.VLLMValidationError(str(error), parameter="extra_args") from error


def _service(vllm_config: Any) -> CompileService:
    """For the model of a configuration. Canvases use no masks from left to right, so none are prepared."""
    tokenizers: Any = importlib.import_module("vllm.tokenizers")
    tokenizer: Any = tokenizers.cached_tokenizer_from_config(model_config=vllm_config.model_config)
    service, _ = service_of(vllm_config, tokenizer, prepared_masks=0)
    return service
