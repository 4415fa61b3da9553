"""llama-cpp-python without it: rows and lists as it has them. `.ci/llama` drives the package itself."""

import numpy as np

import anygram
import anygram.llama_cpp


def constraint() -> anygram.Constraint:
    language = anygram.Compiler().compile('start: "(" start ")" | "x"', "lark")
    return anygram.Constraint(language, anygram.Vocabulary.from_tokens([b"(", b")", b"x", None], [3]))


def test_a_row() -> None:
    processors = anygram.llama_cpp.Processors(constraint())
    prompt = np.array([2, 2], dtype=np.intc)
    scores = np.zeros(4, dtype=np.single)
    assert np.isfinite(processors(prompt, scores)).tolist() == [True, False, True, False]
    assert np.isfinite(processors(np.append(prompt, 2), scores)).tolist() == [False, False, False, True]
    assert scores.tolist() == [0, 0, 0, 0]


def test_a_budget_closes() -> None:
    processors = anygram.llama_cpp.Processors(constraint(), max_tokens=3)
    ids, scores = np.array([2], dtype=np.intc), np.array([9, 0, 1, 0], dtype=np.single)
    for _ in range(4):
        ids = np.append(ids, np.argmax(processors(ids, scores)))
    assert ids.tolist() == [2, 0, 2, 1, 3]


def test_a_bias_leaves_the_constraint() -> None:
    """`Llama.generate` writes `processors = processors.extend(bias)`."""
    given = anygram.llama_cpp.Processors(constraint())

    def bias(_ids: object, scores: np.ndarray) -> np.ndarray:
        return scores + np.array([0, 5, 0, 0], dtype=np.single)

    both = given.extend([bias])
    assert both is given and len(both) == 2
    scores = both(np.array([2], dtype=np.intc), np.zeros(4, dtype=np.single))
    assert np.isfinite(scores).tolist() == [True, False, True, False]
