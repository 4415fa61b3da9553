"""The loop over a model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

from anygram._errors import AnygramError
from anygram._native import Canvas, Constraint, Decoded, Decoder, Methods, Vocabulary
from anygram.diffusion._models import Prompted, mask_of


@dataclass(frozen=True)
class Generated:
    """What a run wrote."""

    tokens: list[int | None]
    """For each slot its token; `None` where the run was stuck. If it was completed, the tokens of the text."""
    text: str | None
    """What stands before the first EOS; `None` if the run was stuck. Bytes that are no UTF-8 are replaced."""
    decoded: Decoded
    """What happened: every proposal, what each question and the constraint took, whether it was stuck. The time
    of a question counts until it is answered: the model's, and what was waited for."""
    model_seconds: float
    """What the model took, with top-k and what was copied."""
    waited_seconds: float
    """What the constraint's work beside the model took longer than the model."""
    completed: bool = False
    """Whether the run was stuck, and the text is a completion (`intersection-with-completion`)."""


#: The strategy of `generate` that ends what is stuck with a drawn text.
WITH_COMPLETION = "intersection-with-completion"


def generate(
    model: Callable[..., Any],
    prompt: Any,
    constraint: Constraint,
    *,
    length: int = 128,
    canvas: Canvas | None = None,
    strategy: str | Decoder = "exact",
    family: Literal["llada", "dream", "diffusion-gemma"] = "llada",
    open_slots: int | Literal["noise", "next"] | None = None,
    steps: int = 128,
    block: int | None = 32,
    order: Literal["confidence", "entropy", "margin", "random"] = "confidence",
    pace: Literal["even"] | int | Mapping[str, float] | None = None,
    temperature: float = 0.0,
    last_temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    guidance: float = 0.0,
    revision: Literal["stay", "renew"] | Mapping[str, float] | None = None,
    candidates: int | None = None,
    refusals: int | None = None,
    inserted: int = 256,
    overlap: bool = True,
    seed: int = 0,
) -> Generated:
    """Fills the answer to a prompt, as LLaDA's `generate` does, under a constraint.

    Args:
        model: a function of token ids `[1, length]` that returns logits `[1, length, columns]`, or an object
            that has them as `logits`: a model of transformers, or any callable.
        prompt: the token ids before the answer: a tensor on the device of the model, or an array or a list,
            and then the model gets numpy arrays.
        constraint: what the answer has to be. Its vocabulary is that of the model's tokenizer.
        length: slots of the answer.
        canvas: the answer as far as it is known, in place of `length`: tokens that stand, holes, gaps.
        strategy: a name that `Decoder` takes, or a `Decoder`, which knows what earlier runs found out. Or
            `"intersection-with-completion"`: IG-CD, where a run that is stuck ends with a text drawn from the
            intersection, whether it fits into the canvas or not.
        family: how logits and slots belong together, one of `FAMILIES`.
        open_slots: the mask token; by default that of the vocabulary. `"noise"` for models without one,
            `"next"` for autoregressive models.
        steps: how often the model is asked, shared by the blocks.
        block: slots of a block, filled one after the other; `None` for all at once.
        order: which slots come first: `"confidence"` is low-confidence remasking.
        pace: how many tokens a step keeps: as for `Decoder.decode`.
        temperature: 0 takes the likeliest token. Above, one is drawn with log-probabilities divided by it,
            which is what Gumbel noise at this temperature does.
        last_temperature, top_k, top_p: as for `Decoder.decode`.
        guidance: the scale of classifier-free guidance (LLaDA's `cfg_scale`).
        revision: whether earlier tokens change: as for `Decoder.decode`. `{"above": 0.9, "most": 16}` are the
            edits of LLaDA 2.1.
        candidates: so many of the likeliest tokens of each slot leave the device, and are proposed. `None`
            copies all, which for large vocabularies takes longer than the model.
        refusals, inserted: as for `Decoder.decode`.
        overlap: whether the constraint works on another thread while the model computes. It changes no token.
        seed: the same seed, the same tokens.

    Raises:
        BufferError: the prompt or the logits have another type or shape.
        AnygramError: options contradict themselves, or there is no mask token.
        LimitError: a limit was reached.
    """
    completes = strategy == WITH_COMPLETION
    if completes:
        strategy = "intersection"
    decoder = strategy if isinstance(strategy, Decoder) else Decoder(constraint, strategy)
    if decoder.constraint is not constraint:
        raise AnygramError("the decoder is for another constraint: give decoder.constraint")
    if canvas is None:
        if length < 0:
            raise AnygramError(f"length is {length}; give a number of slots from 0 on")
        canvas = Canvas([None] * length)
    vocabulary = constraint.vocabulary
    mask = mask_of(open_slots, vocabulary.mask)
    if open_slots is None and mask is None:
        raise AnygramError(
            "no token stands in open slots: give `open_slots`, the mask token of the model, or 'noise' if it "
            "has none"
        )
    asked = Prompted(
        model,
        prompt,
        vocabulary_size=len(vocabulary),
        family=family,
        guidance=guidance,
        mask=mask,
        candidates=candidates,
    )
    session = decoder.begin(
        canvas,
        open_slots=open_slots,
        steps=steps,
        block=block,
        order=order,
        pace=pace,
        temperature=temperature,
        last_temperature=last_temperature,
        top_k=top_k,
        top_p=top_p,
        revision=revision,
        refusals=refusals,
        inserted=inserted,
        seed=seed,
    )
    model_seconds = waited_seconds = 0.0
    with ThreadPoolExecutor(1, "anygram-prepare") as pool:
        while (view := session.view()) is not None:
            prepared = pool.submit(session.prepare) if overlap else None
            began = time.perf_counter()
            rows = asked(view)
            answered = time.perf_counter()
            if prepared is not None:
                prepared.result()
            model_seconds += answered - began
            waited_seconds += time.perf_counter() - answered
            session.answer(rows)
    decoded = session.decoded()
    tokens: list[int | None] = session.tokens
    drawn = completion(decoded, constraint, seed) if completes else None
    if drawn is not None:
        tokens = [*drawn]
    text = text_of(tokens, vocabulary)
    return Generated(tokens, text, decoded, model_seconds, waited_seconds, completed=drawn is not None)


def completion(decoded: Decoded, constraint: Constraint, seed: int) -> list[int] | None:
    """What IG-CD draws from the intersection when a run is stuck; `None` if it is not, or nothing was found."""
    if not decoded.is_stuck:
        return None
    return Methods(constraint).intersection(decoded.canvas, complete="always", seed=seed).text


def text_of(tokens: list[int | None], vocabulary: Vocabulary) -> str | None:
    """What stands before the first EOS."""
    filled = [token for token in tokens if token is not None]
    if len(filled) < len(tokens):
        return None
    end = next((at for at, token in enumerate(filled) if token in vocabulary.eos), len(filled))
    return vocabulary.decode(filled[:end]).decode("utf-8", "replace")
