"""Tiny models with random weights, of classes that transformers has."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anygram
import pytest
from conftest import LISTS

from anygram_eval import models
from anygram_eval.__main__ import main
from anygram_eval.decoding import Options, decode
from anygram_eval.records import Lines, key


def test_a_folder_is_loaded_and_asked(transformers: Any, folder: Path) -> None:
    loaded = models.load("masked-lm", folder)
    assert len(loaded.vocabulary()) == 16 and loaded.eos == [0] and loaded.mask == 1
    rows = loaded.at(loaded.prompt("ab"), 18)(view([6, 1, 1], [1, 2]))
    assert rows.shape == (2, 18)
    assert rows.exp().sum(dim=-1).tolist() == pytest.approx([1, 1])
    assert rows[:, [1, 16, 17]].isinf().all()


def view(tokens: list[int], wanted: list[int]) -> Any:
    """What a model looks at."""
    return SimpleNamespace(tokens=tokens, wanted=wanted, step=0, steps=1)


def test_wrong_folders_are_refused(transformers: Any, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="tokenizer.json"):
        models.load("llada", tmp_path)
    with pytest.raises(ValueError, match="known"):
        models.load("gpt", folder)


def test_dream_reads_the_slot_before(transformers: Any, folder: Path) -> None:
    import torch

    config = transformers.LlamaConfig(
        vocab_size=16, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    loaded = models.loaded(
        "dream", transformers.LlamaForCausalLM(config).eval(), tokenizer, folder / "tokenizer.json"
    )
    prompt = [6, 7]
    rows = loaded.at(prompt, 16)(view([8, 1], [1]))
    with torch.inference_mode():
        logits = loaded.model(torch.tensor([[*prompt, 8, 1]])).logits[0, 2].float()
        logits[1] = -torch.inf
        wanted = torch.log_softmax(logits, dim=-1)
    assert rows[0].tolist() == pytest.approx(wanted.tolist(), abs=1e-5)


@pytest.mark.parametrize("family", ["masked-lm", "diffusion-gemma"])
def test_constrained_texts_are_sentences(
    transformers: Any, folder: Path, language: anygram.Language, family: str
) -> None:
    loaded = models.load("masked-lm", folder)
    if family == "diffusion-gemma":
        loaded = models.loaded(family, diffusion_gemma(transformers), loaded.tokenizer, loaded.tokenizer_file)
        assert loaded.mask is None
    constraint = anygram.Constraint(language, loaded.vocabulary())
    model = loaded.at(loaded.prompt("ab"), len(constraint.vocabulary))
    for seed in range(3):
        decoded = decode(
            constraint, model, [None] * 10, Options(method="compatible", steps=4, block=None, seed=seed)
        )
        assert not decoded.stuck
        end = decoded.canvas.index(0) if 0 in decoded.canvas else 10
        text = loaded.tokenizer.decode(decoded.canvas[:end])
        assert language.read(text).is_sentence, text


def diffusion_gemma(transformers: Any) -> Any:
    if not hasattr(transformers, "DiffusionGemmaForBlockDiffusion"):
        pytest.skip("NOT TESTED: this transformers has no DiffusionGemma")
    text = {
        "vocab_size": 16,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "global_head_dim": 8,
        "num_experts": 2,
        "top_k_experts": 1,
        "moe_intermediate_size": 16,
        "layer_types": ["sliding_attention", "full_attention"],
    }
    config = transformers.DiffusionGemmaConfig(text_config=text)
    return transformers.DiffusionGemmaForBlockDiffusion(config).eval()


def arguments(folder: Path, data: Path, grammar: Path, out: Path, *more: str) -> list[str]:
    return [
        *("--model", str(folder), "--family", "masked-lm", "--benchmark", "smiles-eval", "--data", str(data)),
        *("--grammar", str(grammar), "--methods", "none", "compatible", "--steps", "2", "--slots", "8"),
        *("--runs", "2", "--out", str(out), *more),
    ]


def lines(path: Path) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        {name: value for name, value in record.items() if name != "us"}
        for record in records
        if "task" in record
    ]


def test_the_whole_of_it_and_again_after_a_kill(
    transformers: Any, folder: Path, program: str, tmp_path: Path
) -> None:
    grammar = tmp_path / "lists.lark"
    grammar.write_text(LISTS)
    data = tmp_path / "data"
    data.mkdir()
    rows = [{"input": "ab", "output": "(a)"}, {"input": "cd", "output": "b"}]
    (data / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    whole = tmp_path / "whole.jsonl"
    assert main(arguments(folder, data, grammar, whole)) == 0
    made = lines(whole)
    assert len(made) == 2 * 2 * 2 and len({key(record) for record in made}) == 8
    assert all(record["syntactic"] for record in made if record["method"] == "compatible")
    cut = tmp_path / "cut.jsonl"
    content = whole.read_bytes().splitlines(keepends=True)
    cut.write_bytes(b"".join(content[:4]) + content[4][:20])
    assert main(arguments(folder, data, grammar, cut)) == 0
    assert lines(cut) == made
    # The Rust program reads them.
    report = subprocess.run(
        [program, "eval", "report", str(whole)], capture_output=True, text=True, check=False
    )
    assert report.returncode == 0 and "smiles-eval" in report.stdout, report.stderr


def test_lines_that_are_cut_off_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"command":"x","note":""}\n{"task":"a')
    file = Lines(path)
    file.write({"command": "y", "note": ""})
    file.close()
    assert path.read_text() == '{"command":"x","note":""}\n{"command": "y", "note": ""}\n'
