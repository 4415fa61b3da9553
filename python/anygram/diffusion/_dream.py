"""The hooks of `diffusion_generate`, as Dream and DiffuCoder have them."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal

import numpy as np

from anygram._errors import AnygramError, BufferError
from anygram._native import Canvas, Constraint, Decoded, Decoder, Session
from anygram.diffusion._loop import text_of
from anygram.diffusion._models import mask_of, rows_of


class DreamHooks:
    """Lets Dream and DiffuCoder generate only what a constraint allows, by the two hooks of their own loop.

        hooks = anygram.diffusion.DreamHooks(constraint, mask=model.config.mask_token_id)
        model.diffusion_generate(
            input_ids, max_new_tokens=256, steps=256, alg="entropy", temperature=0.2, top_p=0.95,
            generation_tokens_hook_func=hooks.tokens, generation_logits_hook_func=hooks.logits,
        )
        hooks.texts

    The loop, its sampler and its pace stay the model's. What a step of it wrote is proposed to the strategy,
    the likeliest token first; in place of those that are refused, the surest others are, by the model's
    probabilities. What the strategy does not keep becomes a mask again, and what it fills of itself (behind
    an EOS, after a recovery) is written. The last step goes on until all slots are filled, or the strategy
    is stuck: then masks stay.

    Rows of a batch have one strategy each. Prompts are padded on the left; the answer begins at the first
    mask. One object serves one call after the other, and what it found out stays known.

    Args:
        constraint: what answers have to be.
        mask: the mask token; by default that of the vocabulary.
        strategy: one of `Decoder.STRATEGIES`.
        order: by which further tokens are proposed.
        candidates: so many of the likeliest tokens of each slot leave the device; `None` for all.
        overlap: whether the constraint works on another thread while the model computes.
        seed: of what strategies draw; the sampler's is torch's.

    Raises:
        AnygramError: there is no such strategy, or no mask token.
    """

    def __init__(
        self,
        constraint: Constraint,
        *,
        mask: int | None = None,
        strategy: str = "exact",
        order: Literal["confidence", "entropy", "margin", "random"] = "confidence",
        candidates: int | None = None,
        refusals: int | None = None,
        overlap: bool = True,
        seed: int = 0,
    ) -> None:
        found = mask_of(mask, constraint.vocabulary.mask)
        if found is None:
            raise AnygramError(
                "no token stands in open slots: give `mask`, as model.config.mask_token_id has it"
            )
        if candidates is not None and candidates < 1:
            raise AnygramError(f"candidates is {candidates}; give a number of tokens from 1 on, or None")
        self.constraint, self.mask, self.candidates = constraint, found, candidates
        self._options: Mapping[str, Any] = {"order": order, "refusals": refusals, "seed": seed}
        self._decoders = [Decoder(constraint, strategy)]
        self._strategy = strategy
        self._sessions: list[Session] = []
        self._begin = 0
        self._pool = ThreadPoolExecutor(1, "anygram-prepare") if overlap else None
        self._prepared: list[Future[None]] = []

    def logits(self, step: int | None, x: Any, logits: Any) -> Any:
        """The hook `generation_logits_hook_func`: the mask token, and what lies beyond the vocabulary, cannot
        be drawn."""
        if not self._sessions:
            raise AnygramError("give both hooks: `tokens` as generation_tokens_hook_func, too")
        size = len(self.constraint.vocabulary)
        columns: int = logits.shape[-1]
        if columns < size:
            raise BufferError(f"{columns} logits a slot for a vocabulary of {size} tokens")
        # The loop's top-p takes the lowest finite number as well: with minus infinity it would do the same.
        logits[..., size:] = -np.inf
        if self.mask < size:
            logits[..., self.mask] = -np.inf
        return logits

    def tokens(self, step: int | None, x: Any, logits: Any) -> Any:
        """The hook `generation_tokens_hook_func`. Before the first step it begins with the canvas, after each
        it judges what the loop wrote."""
        if step is None or logits is None:
            self._start(x)
            return x
        if len(x) != len(self._sessions):
            raise AnygramError(f"{len(x)} rows, where the call began with {len(self._sessions)}")
        for prepared in self._prepared:
            prepared.result()
        written = x[:, self._begin :].tolist()
        for row, session in enumerate(self._sessions):
            self._step(session, written[row], logits[row, self._begin :])
        kept = [[self.mask if token is None else token for token in each.tokens] for each in self._sessions]
        x[:, self._begin :] = x.new_tensor(kept)
        self._prepare()
        return x

    def _start(self, x: Any) -> None:
        is_mask = (x == self.mask).any(dim=0)
        if not bool(is_mask.any()):
            raise AnygramError(
                f"no slot holds the mask token {self.mask}: it is another one, or nothing is open"
            )
        self._begin = int(is_mask.int().argmax())
        while len(self._decoders) < len(x):
            self._decoders.append(Decoder(self.constraint, self._strategy))
        self._sessions = []
        for decoder, row in zip(self._decoders, x[:, self._begin :].tolist()):
            canvas = Canvas([None if token == self.mask else token for token in row])
            session = decoder.begin(canvas, open_slots=self.mask, steps=1, block=None, **self._options)
            session.view()
            self._sessions.append(session)
        self._prepare()

    def _prepare(self) -> None:
        """The constraint's part of the next step, while the model computes."""
        if self._pool is not None:
            self._prepared = [self._pool.submit(session.prepare) for session in self._sessions]

    def _step(self, session: Session, written: list[int], logits: Any) -> None:
        view = session.view()
        if view is None:
            return
        new = [slot for slot in view.wanted if written[slot] != self.mask]
        if not new:
            return
        wanted = logits[view.wanted]
        rows = rows_of(wanted, len(self.constraint.vocabulary), self.mask, self.candidates)
        at = {slot: row for row, slot in enumerate(view.wanted)}
        tokens = [written[slot] for slot in new]
        columns: int = wanted.shape[-1]
        for slot, token in zip(new, tokens):
            if not 0 <= token < columns:
                raise AnygramError(f"slot {slot} holds the token {token}; the logits have {columns} columns")
        picked = wanted[[at[slot] for slot in new]].float().log_softmax(dim=-1)
        likely = picked.gather(-1, picked.new_tensor(tokens).long()[:, None])[:, 0].tolist()
        given = sorted(zip(new, tokens, likely), key=lambda pair: -pair[2])
        session.answer(rows, given=[(slot, token) for slot, token, _ in given])
        is_last = len(new) == len(view.wanted)
        while is_last and (view := session.view()) is not None:
            # The loop asks the model no more; what is left goes by its last answer.
            left = logits[view.wanted]
            session.answer(rows_of(left, len(self.constraint.vocabulary), self.mask, self.candidates))
        session.view()

    @property
    def decoded(self) -> list[Decoded]:
        """What happened in each row of the last call."""
        return [session.decoded() for session in self._sessions]

    @property
    def texts(self) -> list[str | None]:
        """The text of each row before its first EOS; `None` where the strategy was stuck."""
        return [text_of(session.tokens, self.constraint.vocabulary) for session in self._sessions]
