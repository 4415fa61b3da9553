"""DiffusionGemma's own `generate`, whose logits processors do not see the canvas."""

from __future__ import annotations

from typing import Any

from anygram._errors import AnygramError, BufferError
from anygram._likeliest import TOP_K, LikeliestCanvas, make_likeliest
from anygram._native import Constraint


class GemmaProcessor:
    """Lets DiffusionGemma generate only what a constraint allows.

        processor = anygram.diffusion.GemmaProcessor(constraint, max_new_tokens=512)
        model.generate(**inputs, logits_processor=LogitsProcessorList([processor]), max_new_tokens=512)

    Written for transformers 5.24, whose denoising loop takes the likeliest token of each slot of what the
    last processor returned. In each step the likeliest canvas is found that has a completion, and what is
    likelier is masked; so the canvas that is committed, also an early one, is a sentence, or one can still be
    reached in the canvases that are left. All slots are asked about anew, as the processor does not see the
    canvas.

    One processor is for one call of `generate`: its first call tells it the prompt.

    Args:
        constraint: what outputs have to be.
        max_new_tokens: what `generate` is given.
        candidates: so many of the likeliest tokens of each slot are looked at first.

    Raises:
        AnygramError: no token ends an output, or a number is out of range.
    """

    def __init__(self, constraint: Constraint, *, max_new_tokens: int, candidates: int = TOP_K) -> None:
        if max_new_tokens < 1 or candidates < 1:
            raise AnygramError(
                f"max_new_tokens is {max_new_tokens} and candidates is {candidates}; give numbers from 1 on"
            )
        if not constraint.vocabulary.eos:
            raise AnygramError("no token ends an output: give `eos` to the vocabulary")
        self.constraint = constraint
        self.max_new_tokens, self.candidates = max_new_tokens, candidates
        self._prompt: Any = None
        self._outputs: list[LikeliestCanvas] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The logits of a step, `[batch, canvas, columns]`, changed in a copy of `float32`.

        Raises:
            BufferError: the logits have another shape.
            AnygramError: this is another call of `generate`.
            LimitError: no output is short enough.
        """
        shape = list(scores.shape)
        if len(shape) != 3 or shape[0] != input_ids.shape[0]:
            raise BufferError(
                f"logits of the shape {shape} for {input_ids.shape[0]} outputs: this processor is for "
                "DiffusionGemma, [batch, canvas, columns]; others take anygram.transformers"
            )
        size = len(self.constraint.vocabulary)
        if shape[2] < size:
            raise BufferError(f"{shape[2]} logits a slot for a vocabulary of {size} tokens")
        if self._prompt is None:
            self._prompt = input_ids.clone()
            self._outputs = [
                LikeliestCanvas(lambda: self.constraint, self.max_new_tokens) for _ in range(shape[0])
            ]
        n_prompt: int = self._prompt.shape[1]
        begun = input_ids[:, :n_prompt]
        if begun.shape != self._prompt.shape or not bool((begun == self._prompt).all()):
            raise AnygramError("other prompts than before: make a processor for each call of generate")
        masked = scores.float().clone()
        eos = set(self.constraint.vocabulary.eos)
        for row, output in enumerate(self._outputs):
            written: list[int] = input_ids[row, n_prompt:].tolist()
            if not eos.isdisjoint(written) or len(written) >= self.max_new_tokens:
                # It has ended, and waits for the others.
                continue
            if written[: len(output.committed)] != output.committed:
                # The same prompts again, in another call.
                output = self._outputs[row] = LikeliestCanvas(lambda: self.constraint, self.max_new_tokens)
            if new := written[len(output.committed) :]:
                output.commit(new)
            make_likeliest(masked[row], output.best(masked[row], self.candidates))
        return masked
