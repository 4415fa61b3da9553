"""Masks on devices, by the operations of the tensors themselves. torch is loaded already where they come
from."""

from __future__ import annotations

import sys
from typing import Any

from anygram._errors import BufferError


def apply_mask(logits: Any, mask: Any) -> None:
    """Sets the logits of all tokens that the mask does not allow to minus infinity, on the device."""
    _check("a mask", mask, ("uint32", "int32"))
    _check("an array of logits", logits, ("float32", "float16", "bfloat16"))
    torch = sys.modules[type(logits).__module__.partition(".")[0]]
    if not hasattr(mask, "data_ptr"):
        mask = torch.from_numpy(mask.view("int32"))
    words = mask.to(logits.device, non_blocking=True)
    if words.dtype != torch.int32:
        words = words.view(torch.int32)
    if words.dim() > 1 and words.shape[0] not in (1, logits.shape[0]):
        raise BufferError(f"{words.shape[0]} masks for {logits.shape[0]} rows: give one for each, or one")
    bits = torch.arange(32, dtype=torch.int32, device=logits.device)
    allowed = ((words.unsqueeze(-1) >> bits) & 1).flatten(-2).bool()
    n = min(allowed.shape[-1], logits.shape[-1])
    logits[..., :n].masked_fill_(~allowed[..., :n], float("-inf"))
    logits[..., n:] = float("-inf")


def _check(what: str, array: Any, types: tuple[str, ...]) -> None:
    """Fails if an array or tensor holds something else."""
    dtype = getattr(array, "dtype", None)
    if dtype is None:
        raise TypeError(f"{type(array)} is no array: give a numpy array or a tensor")
    if str(dtype).rpartition(".")[2] not in types:
        raise BufferError(f"{what} holds {' or '.join(types)}, not {dtype}: convert it")
