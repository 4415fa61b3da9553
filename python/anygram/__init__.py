"""Constrained decoding for any grammar, left to right and on the canvases of diffusion models.

Compile once, constrain many:

>>> import anygram
>>> language = anygram.Compiler().compile('start: "(" start ")" | "x"', "lark")
>>> constraint = anygram.Constraint(language, anygram.Vocabulary.builtin())
>>> matcher = constraint.matcher()
>>> matcher.advance_text("(x")
2
>>> matcher.is_sentence
False
>>> matcher.advance_text(")")
1
>>> matcher.is_sentence
True

| class | role |
|---|---|
| `Compiler` | options; turns the text of a grammar, or a JSON schema, into a `Language` |
| `Vocabulary` | the tokens of a model |
| `Constraint` | a language and a vocabulary |
| `Matcher` | the state of one output: mask, advance, rollback, fork |
| `MaskBuffer`, `fill_masks` | masks into arrays of yours, without copies |
| `Canvas`, `Solver` | a row of slots that is filled in any order, and questions about it |
| `LogProbs`, `Weigher` | the likeliest completion of a canvas, and exact samples |
| `Methods`, `Decoder` | the published methods, and the decoding loop over a model of yours |
| `Session` | the loop, where you ask the model; `anygram.diffusion` has loops for LLaDA, Dream and others |
| `Replay` | a page that shows runs of the loop, step by step |
| `tool_tag` | tools and the choice among them as a structural tag |
| `apply_mask` | logits of tokens that are not allowed become minus infinity |
"""

from __future__ import annotations

from anygram._errors import (
    AnygramError,
    BufferError,
    Cancelled,
    GrammarError,
    LimitError,
    RefusedError,
    VocabularyError,
)
from anygram._native import (
    GAP,
    Admissible,
    Answer,
    Best,
    Cancel,
    Canvas,
    CaptureEvent,
    Captures,
    Compiler,
    Constraint,
    Decoded,
    Decoder,
    Forced,
    Gap,
    Intersected,
    Language,
    LogProbs,
    MaskBuffer,
    MaskTimes,
    Matcher,
    Methods,
    Minimum,
    Reading,
    Replay,
    Samples,
    Session,
    Solver,
    TablesBound,
    TreeNode,
    Undecided,
    View,
    Vocabulary,
    Weigher,
    __version__,
    apply_mask,
    batch_canvases,
    fill_masks,
    tool_tag,
)

__all__ = [
    "GAP",
    "Admissible",
    "Answer",
    "AnygramError",
    "Best",
    "BufferError",
    "Cancel",
    "Cancelled",
    "Canvas",
    "CaptureEvent",
    "Captures",
    "Compiler",
    "Constraint",
    "Decoded",
    "Decoder",
    "Forced",
    "Gap",
    "GrammarError",
    "Intersected",
    "Language",
    "LimitError",
    "LogProbs",
    "MaskBuffer",
    "MaskTimes",
    "Matcher",
    "Methods",
    "Minimum",
    "Reading",
    "RefusedError",
    "Replay",
    "Samples",
    "Session",
    "Solver",
    "TablesBound",
    "TreeNode",
    "Undecided",
    "View",
    "Vocabulary",
    "VocabularyError",
    "Weigher",
    "__version__",
    "apply_mask",
    "batch_canvases",
    "fill_masks",
    "tool_tag",
]
