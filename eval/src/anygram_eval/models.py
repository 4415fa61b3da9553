"""Diffusion models through `transformers`, from local folders. Nothing is downloaded.

| family | open slots | logits of a slot | class |
|---|---|---|---|
| `llada` (LLaDA-8B, LLaDA-1.5) | its mask token | at the slot | `AutoModel`, code in the folder |
| `dream` (Dream-7B, DiffuCoder) | its mask token | one slot before | `AutoModel`, code in the folder |
| `masked-lm` (BERT and its like) | its mask token | at the slot | `AutoModelForMaskedLM` |
| `diffusion-gemma` | random tokens | of the decoder, at the slot | `DiffusionGemmaForBlockDiffusion` |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anygram
import anygram.diffusion

FAMILIES = ("llada", "dream", "masked-lm", "diffusion-gemma")

#: Mask tokens where neither the tokenizer nor the configuration names one.
MASKS = {"llada": 126_336, "dream": 151_666}


@dataclass
class Loaded:
    """A model with its tokenizer."""

    family: str
    model: Any
    tokenizer: Any
    mask: int | None
    eos: list[int]
    tokenizer_file: Path

    def prompt(self, text: str) -> list[int]:
        """A prompt as the model's chat template has it, or as it stands where there is none."""
        if getattr(self.tokenizer, "chat_template", None):
            messages = [{"role": "user", "content": text}]
            return list(
                self.tokenizer.apply_chat_template(
                    messages, add_generation_prompt=True, tokenize=True, return_dict=False
                )
            )
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def vocabulary(self) -> anygram.Vocabulary:
        """The vocabulary, of the file, with these EOS and mask tokens."""
        return anygram.Vocabulary.from_file(self.tokenizer_file, eos=self.eos, mask=self.mask)

    def at(self, prompt: Sequence[int], vocabulary_size: int) -> Prompted:
        """The model at a prompt, for a vocabulary of so many tokens."""
        return Prompted(self, list(prompt), vocabulary_size)


def load(family: str, folder: Path, device: str = "cpu", dtype: str = "auto") -> Loaded:
    """Loads a model from a folder. The code of `llada` and `dream` is part of the folder and is run: take
    folders that you trust."""
    import transformers

    if family not in FAMILIES:
        raise ValueError(f"no family is called {family}; known: {', '.join(FAMILIES)}")
    if not (folder / "tokenizer.json").is_file():
        raise ValueError(f"{folder} has no tokenizer.json, from which anygram takes the vocabulary")
    local = {"local_files_only": True, "trust_remote_code": family in ("llada", "dream")}
    classes = {
        "llada": "AutoModel",
        "dream": "AutoModel",
        "masked-lm": "AutoModelForMaskedLM",
        "diffusion-gemma": "DiffusionGemmaForBlockDiffusion",
    }
    kind = getattr(transformers, classes[family], None)
    if kind is None:
        raise ValueError(
            f"transformers {transformers.__version__} has no {classes[family]}: take a newer one"
        )
    model = kind.from_pretrained(folder, dtype=dtype, **local).to(device).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **local)
    return loaded(family, model, tokenizer, folder / "tokenizer.json")


def loaded(family: str, model: Any, tokenizer: Any, tokenizer_file: Path) -> Loaded:
    """The same of a model that is there already."""
    mask = None
    if family != "diffusion-gemma":
        mask = tokenizer.mask_token_id
        if mask is None:
            mask = getattr(model.config, "mask_token_id", None) or MASKS.get(family)
        if mask is None:
            raise ValueError(
                f"neither the tokenizer nor the configuration of this {family} model names a mask token"
            )
    eos = [tokenizer.eos_token_id if tokenizer.eos_token_id is not None else tokenizer.sep_token_id]
    # A model ends an answer with what its chat template ends a turn with, too.
    for name in ("<|eot_id|>", "<|im_end|>", "<end_of_turn>"):
        token = tokenizer.convert_tokens_to_ids(name)
        if isinstance(token, int) and token not in (*eos, tokenizer.unk_token_id):
            eos.append(token)
    return Loaded(family, model, tokenizer, mask, eos, tokenizer_file)


class Prompted:
    """A model at a prompt: what the loop asks. How logits and slots belong together is the package's business
    (`anygram.diffusion.Prompted`); here are log-probabilities of the vocabulary made of them."""

    def __init__(self, loaded: Loaded, prompt: list[int], vocabulary_size: int) -> None:
        import torch

        self.mask, self.vocabulary_size = loaded.mask, vocabulary_size
        self.open_slots: int | str = "noise" if loaded.mask is None else loaded.mask
        self._asked = anygram.diffusion.Prompted(
            loaded.model,
            torch.tensor(prompt, dtype=torch.long, device=loaded.model.device),
            vocabulary_size=vocabulary_size,
            family="llada" if loaded.family == "masked-lm" else loaded.family,
        )

    def __call__(self, view: anygram.View) -> Any:
        import torch

        logits = self._asked(view)[:, : self.vocabulary_size].clone()
        if self.mask is not None:
            logits[:, self.mask] = -torch.inf
        return torch.log_softmax(logits, dim=-1)
