"""Diffusion language models from local folders, constrained by `anygram batch`, measured as `anygram eval` measures.

In reading order: `batch` (the program over a pipe), `loop` (denoising under a method), `models` (what gives log-probabilities), `benchmarks` (what is
asked for, and whether an answer is right), `records` (the lines that come out). Only `models` needs torch, and imports it when a model is loaded.
"""
