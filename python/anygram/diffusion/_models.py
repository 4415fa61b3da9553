"""A model at a prompt: token ids in, rows of logits out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

import numpy as np

from anygram._errors import AnygramError, BufferError
from anygram._native import LogProbs, View

FAMILIES = ("llada", "dream", "diffusion-gemma")
"""How logits and slots belong together: `llada` (and BERT) at the slot, `dream` (and DiffuCoder, and
autoregressive models) one slot before, `diffusion-gemma` at the slot, the prompt in an encoder."""


class Prompted:
    """A model at a prompt: what `Decoder.decode` asks, and the loops here.

    Args:
        model: a function of token ids `[n, length]` that returns logits `[n, length, columns]`, or an object
            that has them as `logits`; so a model of transformers. `n` is 1, with guidance 2.
        prompt: the token ids before the answer. A tensor `[length]` or `[1, length]`: then the model gets
            tensors, on the same device. Anything else: it gets numpy arrays of `int64`.
        family: one of `FAMILIES`.
        guidance: the scale of classifier-free guidance; 0 is without. The model is asked with the prompt and
            with masks in its place, in one batch: `without + (1 + guidance) * (with - without)`.
        mask: the mask token, which guidance needs.
        vocabulary_size: tokens of the constraint's vocabulary. Columns beyond it are left out.
        candidates: so many of the likeliest tokens of each slot leave the device; `None` for all.

    Raises:
        AnygramError: options contradict themselves, or the prompt is not one row of token ids.
    """

    def __init__(
        self,
        model: Callable[..., Any],
        prompt: Any,
        *,
        vocabulary_size: int,
        family: Literal["llada", "dream", "diffusion-gemma"] = "llada",
        guidance: float = 0.0,
        mask: int | None = None,
        candidates: int | None = None,
    ) -> None:
        if family not in FAMILIES:
            raise AnygramError(f"no family is called {family!r}; there are {', '.join(FAMILIES)}")
        if candidates is not None and candidates < 1:
            raise AnygramError(f"candidates is {candidates}; give a number of tokens from 1 on, or None")
        if not guidance >= 0:
            raise AnygramError(f"guidance is {guidance}; give a number from 0 on")
        if guidance and mask is None:
            raise AnygramError(
                "guidance puts masks in place of the prompt: give `open_slots`, the mask token"
            )
        if guidance and family == "diffusion-gemma":
            raise AnygramError("guidance is not for diffusion-gemma, whose prompt is in an encoder")
        self.model, self.family, self.guidance = model, family, guidance
        self.mask, self.candidates, self.vocabulary_size = mask, candidates, vocabulary_size
        self._torch: Any = None
        self.prompt = self._read(prompt)
        self._input: Any = None
        self._shown: list[int] = []

    def _read(self, prompt: Any) -> Any:
        """The prompt, `[length]`, of the library that it came from."""
        if hasattr(prompt, "data_ptr"):
            self._torch = sys.modules[type(prompt).__module__.partition(".")[0]]
            kind = str(prompt.dtype)
        else:
            prompt = np.asarray(prompt if hasattr(prompt, "__array__") else list(prompt))
            if prompt.size == 0:
                prompt = prompt.astype(np.int64)
            kind = str(prompt.dtype)
        if not kind.removeprefix("torch.").startswith(("int", "uint")):
            raise BufferError(f"the prompt holds {kind}; give token ids, which are integers")
        if prompt.ndim == 2 and prompt.shape[0] == 1:
            prompt = prompt[0]
        if prompt.ndim != 1:
            raise BufferError(
                f"the prompt has the shape {list(prompt.shape)}; give one row of token ids, [length] or "
                "[1, length]"
            )
        if prompt.shape[0] and int(prompt.min()) < 0:
            raise AnygramError(f"the prompt has the token {int(prompt.min())}; token ids begin at 0")
        return prompt.long() if self._torch is not None else prompt.astype(np.int64)

    def __call__(self, view: View) -> Any:
        """The rows of the slots that are wanted: `float32` logits, or `LogProbs` of the candidates."""
        if self._torch is None:
            return self._listed(self._rows(view))
        with self._torch.inference_mode():
            return self._listed(self._rows(view))

    def _rows(self, view: View) -> Any:
        """`[wanted, columns]`, of the library of the model, on its device."""
        tokens = self._show(view.tokens)
        n_prompt = len(self.prompt)
        if self.family == "diffusion-gemma":
            answer = self.model(input_ids=self.prompt[None], decoder_input_ids=tokens)
            return self._take(self._logits(answer, tokens), 0, view.wanted)
        before = 1 if self.family == "dream" or len(view.tokens) <= view.wanted[0] else 0
        # What the slot before says is about this one; the first says it about itself.
        places = [max(n_prompt + slot - before, 0) for slot in view.wanted]
        logits = self._logits(self.model(tokens), tokens)
        rows = self._take(logits, 0, places)
        if self.guidance:
            without = self._take(logits, 1, places)
            rows = without + (1 + self.guidance) * (rows - without)
        return rows

    def _show(self, shown: Sequence[int]) -> Any:
        """What the model sees, `[n, length]`: only tokens that changed are written."""
        n_prompt = 0 if self.family == "diffusion-gemma" else len(self.prompt)
        if self._input is None or len(shown) != len(self._shown):
            self._input = self._begin(n_prompt, len(shown))
            changed = list(range(len(shown)))
        else:
            changed = [at for at, token in enumerate(shown) if self._shown[at] != token]
        if changed:
            places = [n_prompt + at for at in changed]
            tokens = [shown[at] for at in changed]
            if self._torch is not None:
                device = self._input.device
                places = self._torch.tensor(places, device=device)
                tokens = self._torch.tensor(tokens, device=device)
            self._input[:, places] = tokens
        self._shown = list(shown)
        return self._input

    def _begin(self, n_prompt: int, n_shown: int) -> Any:
        n, length = (2 if self.guidance else 1), n_prompt + n_shown
        if self._torch is not None:
            made = self._torch.zeros((n, length), dtype=self._torch.int64, device=self.prompt.device)
        else:
            made = np.zeros((n, length), dtype=np.int64)
        made[0, :n_prompt] = self.prompt[:n_prompt]
        if self.guidance and self.mask is not None:
            made[1, :n_prompt] = self.mask
        return made

    def _logits(self, answer: Any, tokens: Any) -> Any:
        """The logits of an answer.

        Raises:
            BufferError: it has none, or of another shape.
        """
        logits: Any = getattr(answer, "logits", answer)
        shape: list[int] = list(getattr(logits, "shape", ()))
        wanted = list(tokens.shape)
        if len(shape) == 2 and wanted[0] == 1:
            logits, shape = logits[None], [1, *shape]
        if len(shape) != 3 or shape[:2] != wanted:
            raise BufferError(
                f"the model returned logits of the shape {shape} for token ids {wanted}; "
                f"it has to be [{wanted[0]}, {wanted[1]}, columns]"
            )
        if self._torch is None and hasattr(logits, "data_ptr"):
            raise BufferError("the model returned a tensor: give the prompt as a tensor on its device")
        return logits

    def _take(self, logits: Any, row: int, places: Sequence[int]) -> Any:
        if self._torch is None:
            return np.asarray(logits)[row][list(places)].astype(np.float32, copy=False)
        return logits[row].index_select(0, self._torch.tensor(places, device=logits.device)).float()

    def _listed(self, rows: Any) -> Any:
        """The rows on the CPU, or the likeliest tokens of each, found where the rows are."""
        columns = rows.shape[-1]
        if columns < self.vocabulary_size:
            # Tokens that were added to a tokenizer and have no row in the output layer.
            rows = self._widened(rows, self.vocabulary_size - columns)
        return rows_of(rows, self.vocabulary_size, self.mask, self.candidates)

    def _widened(self, rows: Any, missing: int) -> Any:
        if self._torch is not None:
            return self._torch.nn.functional.pad(rows, (0, missing), value=-np.inf)
        return np.pad(rows, ((0, 0), (0, missing)), constant_values=-np.inf)


def rows_of(rows: Any, size: int, mask: int | None, candidates: int | None) -> Any:
    """Rows of logits `[wanted, columns]` as a `Session` takes them: all of `float32` on the CPU, or the
    likeliest of each of the first `size` tokens but the mask, found on the device of the rows."""
    if hasattr(rows, "data_ptr"):
        rows = rows.detach().float()
        if candidates is None:
            return rows.cpu()
        rows = rows[:, :size]
        if mask is not None and mask < size:
            rows = rows.clone()
            rows[:, mask] = -np.inf
        values, ids = rows.log_softmax(dim=-1).topk(min(candidates, size), dim=-1)
        return LogProbs.top_k(ids.cpu().numpy(), values.cpu().numpy())
    rows = np.asarray(rows)
    if candidates is None:
        return np.ascontiguousarray(rows, dtype=np.float32)
    k = min(candidates, size)
    ids = np.empty((len(rows), k), dtype=np.int64)
    values = np.empty((len(rows), k), dtype=np.float32)
    for at, row in enumerate(rows):
        # One row at a time: a copy of a row, not of all.
        row = row[:size].astype(np.float32)
        if mask is not None and mask < size:
            row[mask] = -np.inf
        chosen = np.argpartition(row, size - k)[size - k :]
        # Of equal ones in the order of their ids.
        chosen.sort()
        top = row[chosen].max()
        if np.isfinite(top):
            total = top + np.log(np.exp(row - top, dtype=np.float32).sum(dtype=np.float64))
            row = row - np.float32(total)
        ids[at], values[at] = chosen, row[chosen]
    return LogProbs.top_k(ids, values)


def mask_of(open_slots: object, mask: int | None) -> int | None:
    """The mask token of a run: what stands in open slots, if that is a token."""
    if open_slots is None:
        return mask
    return None if isinstance(open_slots, str) else int(cast("int", open_slots))
