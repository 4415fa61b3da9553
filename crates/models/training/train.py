"""Trains one of the three small models: an hour on one core.

    python train.py MODEL DATA TOKENIZER OUT [--begin FILE] [--steps N] [--threads N] [--vectors FILE]

MODEL is `autoregressive` (next token), `masked` (LLaDA: a share t of the answer's canvas is masked, cross-entropy of the masked tokens)
or `uniform` (DiffusionGemma: a share t of the canvas is replaced by random tokens, cross-entropy of all clean tokens). DATA is the folder of
`write_data`. OUT is a safetensors file in f16; `--vectors` records logits that the Rust forward is checked against.
"""

import argparse
import json
import math
import random
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import nn

LAYERS, WIDTH, HEADS, HIDDEN = 4, 128, 4, 256
CANVAS = 48
# What a slot behind the first EOS weighs in the loss.
TAIL = 0.1
ROPE_BASE = 10_000.0
NORM_EPSILON = 1e-5
BATCH, RATE, MUON_RATE, WARM_UP = 32, 2.5e-3, 0.02, 100
STEPS = {"autoregressive": 6_000, "masked": 14_000, "uniform": 14_000}


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + NORM_EPSILON) * self.weight


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.mlp_norm = Norm(), Norm()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate_up = nn.Linear(WIDTH, 2 * HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x, cos, sin, mask):
        batch, length, _ = x.shape
        qkv = self.qkv(self.attention_norm(x)).view(batch, length, 3, HEADS, -1)
        q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, WIDTH))
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    def __init__(self, n_tokens, causal):
        super().__init__()
        self.causal = causal
        self.embedding = nn.Embedding(n_tokens, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = Norm()
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                adds = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(weight, std=0.06 if "embedding" in name else 0.04 / math.sqrt(2 * LAYERS if adds else 1))

    def forward(self, tokens, real):
        """Hidden states `[batch, length, WIDTH]`; `real` is false at padding, which stands on the left."""
        length = tokens.shape[1]
        angles = torch.arange(length)[:, None] * ROPE_BASE ** (-torch.arange(0, WIDTH // HEADS, 2) / (WIDTH // HEADS))
        mask = real[:, None, None, :].expand(-1, 1, length, -1)
        if self.causal:
            mask = mask & torch.ones(length, length, dtype=torch.bool).tril()
        # A padded row sees itself: a row that sees nothing would be NaN.
        mask = mask | torch.eye(length, dtype=torch.bool)
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, angles.cos(), angles.sin(), mask)
        return self.norm(x)

    def logits(self, hidden):
        return hidden @ self.embedding.weight.T


def rotate(x, cos, sin):
    """Rotary positions: the first half of a head's components is paired with the second."""
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Data:
    def __init__(self, path, tokenizer, first, n_examples):
        self.eos, self.pad, self.mask = (tokenizer.token_to_id(name) for name in ("<eos>", "<pad>", "<mask>"))
        lines = [json.loads(line) for line in path.read_text().splitlines()[first : first + n_examples]]
        encode = lambda part: [e.ids for e in tokenizer.encode_batch([line[part] for line in lines])]
        self.examples = list(zip(encode("prompt"), encode("answer")))
        self.tasks = sorted({line["task"] for line in lines})
        self.by_task = [[e for e, line in zip(self.examples, lines) if line["task"] == task] for task in self.tasks]
        assert max(len(answer) for _, answer in self.examples) < CANVAS

    def batch(self, step, kind):
        """Examples of one task: tokens `[BATCH, prompt + canvas]`, which of them are real, and the length of the prompts.

        EOS fills the canvas. Every second canvas is as short as the answers allow, the others have a length up to CANVAS: short ones cost
        less and teach more than rows of EOS.
        """
        examples = self.by_task[step % len(self.by_task)]
        first = step // len(self.by_task) * BATCH
        rows = [examples[i % len(examples)] for i in range(first, first + BATCH)]
        canvas = max(len(answer) for _, answer in rows) + 1
        if kind != "autoregressive" and random.random() < 0.5:
            canvas = random.randint(canvas, CANVAS)
        longest = max(len(prompt) for prompt, _ in rows)
        pads, ends = [self.pad] * longest, [self.eos] * canvas
        tokens = torch.tensor([pads[len(prompt) :] + prompt + answer + ends[len(answer) :] for prompt, answer in rows])
        return tokens, tokens != self.pad, longest


def read(hidden, prompt):
    """What each slot should hold is read at the place before it, by all models (as Dream does): so others can begin as the autoregressive one ended."""
    return hidden[:, prompt - 1 : -1]


def loss(kind, model, data, largest, tokens, real, prompt):
    canvas = tokens[:, prompt:]
    # What follows the first EOS is EOS: easily learned, and most of some canvases.
    weight = torch.where((canvas == data.eos).cumsum(1) <= 1, 1.0, TAIL)
    if kind == "autoregressive":
        wanted = weight == 1.0
        hidden = read(model(tokens, real), prompt)
        return F.cross_entropy(model.logits(hidden[wanted]), canvas[wanted])
    # One share for each row, spread evenly over the batch up to the largest.
    share = largest * ((torch.arange(BATCH) + torch.rand(BATCH)) / BATCH)[:, None]
    hit = torch.rand(canvas.shape) < share
    seen = tokens.clone()
    if kind == "masked":
        seen[:, prompt:][hit] = data.mask
        weight = weight * hit
    else:
        seen[:, prompt:][hit] = torch.randint(model.embedding.num_embeddings, (int(hit.sum()),))
    # Each row counts the same, whatever its share.
    weight = weight / (weight.sum(1, keepdim=True) + 1e-6) / BATCH
    wanted = weight > 0
    hidden = read(model(seen, real), prompt)
    each = F.cross_entropy(model.logits(hidden[wanted]), canvas[wanted], reduction="none")
    return (each * weight[wanted]).sum()


def largest_share(progress, easy):
    """Few tokens are hidden at first: what they are can be told from what stands around them, by which copying from the prompt is learned."""
    return min(1.0, 0.2 + 0.8 * progress / easy)


def rate(step, steps):
    return min(1.0, (step + 1) / WARM_UP) * (steps - step) / steps


class Muon(torch.optim.Optimizer):
    """The momentum of a matrix, made orthogonal (Jordan 2024): each step turns all directions by as much.

    As PyTorch's own, but in f32: that one computes in bfloat16, which takes a second a step where a processor has no instructions for it.
    """

    def __init__(self, weights, rate, momentum=0.95, decay=0.01):
        super().__init__(weights, {"lr": rate, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                mean = self.state[weight].setdefault("mean", torch.zeros_like(weight))
                mean.lerp_(weight.grad, 1 - group["momentum"])
                turned = orthogonal(weight.grad.lerp(mean, group["momentum"]))
                rows, columns = weight.shape
                weight.mul_(1 - group["lr"] * group["decay"])
                weight.add_(turned, alpha=-group["lr"] * math.sqrt(max(1.0, rows / columns)))


def orthogonal(x, steps=5, a=3.4445, b=-4.7750, c=2.0315):
    """About U V^T of x = U S V^T, by Newton and Schulz's iteration: singular values end between 0.5 and 1.5, which is near enough."""
    wide = x if x.shape[0] <= x.shape[1] else x.T
    wide = wide / wide.norm().clamp(min=1e-7)
    for _ in range(steps):
        gram = wide @ wide.T
        wide = a * wide + (b * gram + c * gram @ gram) @ wide
    return wide if x.shape[0] <= x.shape[1] else wide.T


def optimizers(model):
    """Muon for the matrices of the layers, AdamW for embeddings and norms."""
    is_matrix = lambda name, weight: weight.dim() == 2 and name.startswith("layers")
    matrices = [weight for name, weight in model.named_parameters() if is_matrix(name, weight)]
    others = [weight for name, weight in model.named_parameters() if not is_matrix(name, weight)]
    return [
        Muon(matrices, MUON_RATE),
        torch.optim.AdamW(others, lr=RATE, betas=(0.9, 0.98), weight_decay=0.01, fused=True),
    ]


def tensors(model):
    return {name: weight.detach().half().contiguous() for name, weight in model.state_dict().items()}


def record(kind, model, data, path, n_vectors=2):
    """What the model answers, with the weights as they were written (f16): rows of logits of a prompt and a canvas."""
    vectors = []
    for prompt, answer in data.examples[3 : 3 + n_vectors]:
        canvas = answer if kind == "autoregressive" else (answer + [data.eos] * CANVAS)[:CANVAS]
        if kind == "masked":
            canvas = [data.mask if at % 3 else token for at, token in enumerate(canvas)]
        if kind == "uniform":
            canvas = [(token * 7 + at * 31) % model.embedding.num_embeddings if at % 3 else token for at, token in enumerate(canvas)]
        tokens = torch.tensor([prompt + canvas])
        with torch.no_grad():
            logits = model.logits(model(tokens, torch.ones_like(tokens, dtype=torch.bool)))[0]
        first = len(prompt) - 1
        rows = [0, 1, len(canvas) // 2, len(canvas) - 1]
        vectors.append(
            {
                "prompt": prompt,
                "canvas": canvas,
                "slots": rows,
                "logits": [[round(float(x), 4) for x in logits[first + row]] for row in rows],
            }
        )
    path.write_text(json.dumps(vectors) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=STEPS)
    parser.add_argument("data", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--begin", type=Path, help="the weights to begin with")
    parser.add_argument("--easy", type=float, default=0.2, help="the part of the steps in which the share of hidden tokens grows")
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    random.seed(arguments.seed)
    steps = arguments.steps or STEPS[arguments.model]
    tokenizer = Tokenizer.from_file(str(arguments.tokenizer))
    # Another seed, other examples.
    n_examples = steps * BATCH
    data = Data(arguments.data / "train.jsonl", tokenizer, (arguments.seed - 1) * n_examples, n_examples)
    model = Model(tokenizer.get_vocab_size(), causal=arguments.model == "autoregressive")
    print(f"{sum(weight.numel() for weight in model.parameters())} parameters", flush=True)
    if arguments.begin:
        model.load_state_dict({name: weight.float() for name, weight in load_file(arguments.begin).items()})
    both = optimizers(model)
    schedules = [torch.optim.lr_scheduler.LambdaLR(each, lambda step: rate(step, steps)) for each in both]
    began, cpu, shown = time.time(), time.process_time(), {task: [] for task in data.tasks}
    for step in range(steps):
        model.zero_grad()
        value = loss(arguments.model, model, data, largest_share(step / steps, arguments.easy), *data.batch(step, arguments.model))
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for each in both + schedules:
            each.step()
        shown[data.tasks[step % len(data.tasks)]].append(value.item())
        if (step + 1) % 300 == 0:
            losses = ", ".join(f"{task} {sum(values) / len(values):.3f}" for task, values in shown.items())
            print(f"step {step + 1}: {losses}; {time.process_time() - cpu:.0f} CPU s, {time.time() - began:.0f} s", flush=True)
            shown = {task: [] for task in data.tasks}
        if (step + 1) % 500 == 0 or step + 1 == steps:
            save_file(tensors(model), arguments.out, metadata={"kind": arguments.model, "canvas": str(CANVAS)})
    if arguments.vectors:
        model.load_state_dict({name: weight.float() for name, weight in tensors(model).items()})
        record(arguments.model, model, data, arguments.vectors)


if __name__ == "__main__":
    main()
