"""Diffusion language models from local folders, constrained by the package `anygram`, measured as `anygram
eval` measures.

In reading order: `decoding` (the loop of the package, and what is told of it), `models` (what gives
log-probabilities), `benchmarks` (what is asked for, and whether an answer is right), `records` (the lines
that come out). Only `models` needs torch, and imports it when a model is loaded.
"""
