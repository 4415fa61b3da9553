"""The back end for Outlines, with stand-ins for what it touches. python/integration/outlines_generate.py
drives Outlines' own generators, python/integration/vllm_diffusion.py vLLM's sampler of canvases."""

from __future__ import annotations

import sys
from abc import ABC
from types import ModuleType, SimpleNamespace
from typing import Any

import anygram
import anygram.outlines
import anygram.vllm_diffusion
import numpy as np
import pytest

VOCABULARY = anygram.Vocabulary.builtin()
EOS = VOCABULARY.eos[0]
NULLS = '{"type": "array", "items": {"type": "null"}, "minItems": 2, "maxItems": 2}'


class Model:
    """A model of Outlines whose tensors are numpy's."""

    tensor_library_name = "numpy"

    def __init__(self, vocabulary: Any = VOCABULARY) -> None:
        self.hf_tokenizer = vocabulary


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    class BaseBackend(ABC):  # noqa: B024
        pass

    class OutlinesLogitsProcessor:
        def __init__(self, tensor_library_name: str) -> None:
            self.library = tensor_library_name

        def __call__(self, input_ids: Any, logits: Any) -> Any:
            return self.process_logits(input_ids, logits)  # type: ignore[attr-defined]

    def get_backend(name: str, model: Any) -> Any:
        raise ValueError(f"Backend {name} not supported")

    contents: dict[str, dict[str, Any]] = {
        "outlines": {},
        "outlines.backends": {"_get_backend": get_backend, "BaseBackend": BaseBackend},
        "outlines.processors": {},
        "outlines.processors.base_logits_processor": {"OutlinesLogitsProcessor": OutlinesLogitsProcessor},
    }
    for name, content in contents.items():
        module = ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return SimpleNamespace(backends=sys.modules["outlines.backends"], processor=OutlinesLogitsProcessor)


def longest(processor: Any, n: int) -> bytes:
    """Generates two rows: of what is allowed always the last token."""
    rows = np.array([[5, 6], [7, 8]])
    for _ in range(n):
        scores = processor(rows, np.zeros((2, len(VOCABULARY)), dtype=np.float32))
        chosen = [np.flatnonzero(np.isfinite(row))[-1] for row in scores]
        if EOS in chosen:
            break
        rows = np.hstack([rows, np.array(chosen)[:, None]])
    assert (rows[0, 2:] == rows[1, 2:]).all()
    return VOCABULARY.decode(rows[0, 2:].tolist())


def test_the_name_is_added_once(engine: SimpleNamespace) -> None:
    anygram.outlines.register()
    once = engine.backends._get_backend
    anygram.outlines.register()
    assert engine.backends._get_backend is once
    made = once("anygram", Model())
    assert isinstance(made, engine.backends.BaseBackend)
    with pytest.raises(ValueError, match="not supported"):
        once("other", Model())
    del engine.backends._get_backend
    with pytest.raises(anygram.AnygramError, match=r"1\.3"):
        anygram.outlines.register()


def test_processors_of_schemas_patterns_and_grammars(engine: SimpleNamespace) -> None:
    backend = anygram.outlines.Backend(Model())
    processor = backend.get_regex_logits_processor("[ab]{3}")
    assert isinstance(processor, engine.processor)
    for _ in range(2):
        assert len(longest(processor, 9)) == 3
        processor.reset()
    assert longest(backend.get_cfg_logits_processor('start: "x" "y"~2'), 9) == b"xyy"
    assert longest(backend.get_cfg_logits_processor('root ::= "x" [y]'), 9) == b"xy"
    assert longest(backend.get_json_schema_logits_processor(NULLS, ""), 9) == b"[null,null]"
    assert backend.service is anygram.outlines.Backend(Model()).service
    with pytest.raises(anygram.GrammarError):
        backend.get_regex_logits_processor("(")
    with pytest.raises(anygram.AnygramError, match="pattern of blanks"):
        backend.get_json_schema_logits_processor("{}", r"\s*")
    with pytest.raises(anygram.AnygramError, match="vocabulary"):
        anygram.outlines.Backend(SimpleNamespace(tensor_library_name="numpy"))
    given = anygram.outlines.Backend(
        SimpleNamespace(tensor_library_name="numpy"), VOCABULARY, max_new_tokens=4
    )
    assert len(longest(given.get_regex_logits_processor("(ab)+"), 9)) <= 8


def test_what_requests_of_canvases_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = anygram.vllm_diffusion._asked

    def params(extra: Any) -> Any:
        return SimpleNamespace(extra_args=extra)

    assert asked(params(None)) is None and asked(params({"other": 1})) is None
    assert asked(params({"anygram": '{"regex": "a"}'})) == ("regex", "a")
    assert asked(params({"anygram": {"choice": ["a"]}})) == ("choice", '["a"]')
    for wrong in ("{", 1, {}, {"xml": ""}, {"regex": "a", "json": "{}"}):
        with pytest.raises(anygram.AnygramError):
            asked(params({"anygram": wrong}))
    with pytest.raises(anygram.AnygramError):
        asked(params({"anygram": {"regex": "a"}, "diffusion_constrained": 1}))
    monkeypatch.delenv("ANYGRAM_VLLM_DIFFUSION", raising=False)
    anygram.vllm_diffusion.plugin()
    assert "vllm" not in sys.modules
    monkeypatch.setenv("ANYGRAM_VLLM_DIFFUSION", "on")
    with pytest.raises(anygram.AnygramError, match="1 switches"):
        anygram.vllm_diffusion.plugin()
