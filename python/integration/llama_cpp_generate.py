"""llama-cpp-python with a tiny model and random weights: JSON by a schema, with and without a bias.

    python python/integration/llama_cpp_generate.py MODEL.gguf

It needs llama_cpp (with `LLAMA_CPP_LIB_PATH` where its libraries are elsewhere).
"""

import json
import sys

import llama_cpp

import anygram
import anygram.llama_cpp

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "ages": {"type": "array", "items": {"type": "integer", "minimum": 0}, "uniqueItems": True},
    },
    "required": ["name"],
    "additionalProperties": False,
}
N_TEXTS = 20
BUDGET = 60


def main(model: str) -> None:
    llm = llama_cpp.Llama(model, n_ctx=512, n_threads=1, n_threads_batch=1, verbose=False, logits_all=False)
    language = anygram.Compiler().compile(SCHEMA, "json-schema")
    constraint = anygram.Constraint(language, anygram.llama_cpp.vocabulary(llm))
    for seed in range(N_TEXTS):
        processors = anygram.llama_cpp.Processors(constraint, max_tokens=BUDGET)
        made = llm(
            "a person",
            max_tokens=BUDGET + 1,
            seed=seed,
            logits_processor=processors,
            logit_bias={300: 2.0} if seed % 2 else None,
        )
        choice = made["choices"][0]
        value = json.loads(choice["text"])
        assert choice["finish_reason"] == "stop", choice
        assert isinstance(value["name"], str) and len(value["name"]) <= 8, value
        ages = value.get("ages", [])
        assert len(ages) == len({float(age) for age in ages}), value
    print(f"llama-cpp-python {llama_cpp.__version__}: {N_TEXTS} texts are right")


if __name__ == "__main__":
    main(sys.argv[1])
