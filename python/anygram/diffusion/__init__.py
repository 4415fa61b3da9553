"""Diffusion models under constraints: loops for LLaDA, Dream, DiffuCoder, DiffusionGemma, and any callable.

    constraint = anygram.transformers.constraint(schema, tokenizer)
    made = anygram.diffusion.generate(model, prompt_ids, constraint, length=256, steps=128, open_slots=126336)
    made.text

| name | what |
|---|---|
| `generate` | fills the answer to a prompt: blocks, remasking, guidance, every strategy by its name |
| `completion` | the text that IG-CD draws when a run is stuck |
| `Prompted` | a model at a prompt, as `Decoder.decode` asks it |
| `DreamHooks` | the two hooks of `diffusion_generate` of Dream and DiffuCoder |
| `GemmaProcessor` | a logits processor for `generate` of DiffusionGemma |
| `infill`, `FillInTheMiddle` | several regions, filled by a model that was trained to fill in the middle |

Neither torch nor transformers is imported here: a tensor brings its library.
"""

from __future__ import annotations

from anygram.diffusion._dream import DreamHooks
from anygram.diffusion._gemma import GemmaProcessor
from anygram.diffusion._infill import FillInTheMiddle, Infilled, infill
from anygram.diffusion._loop import WITH_COMPLETION, Generated, completion, generate
from anygram.diffusion._models import FAMILIES, Prompted

__all__ = [
    "FAMILIES",
    "WITH_COMPLETION",
    "DreamHooks",
    "FillInTheMiddle",
    "GemmaProcessor",
    "Generated",
    "Infilled",
    "Prompted",
    "completion",
    "generate",
    "infill",
]
