"""A tiny model of llama.cpp with random weights, to try constraints on: `python tiny_gguf.py model.gguf`.

It needs the packages gguf and numpy. Its tokens are all bytes and some pieces of JSON, C++ and English; its
weights are drawn from a seed, so what it writes without a constraint is noise.
"""

import sys

import gguf
import numpy

PIECES = (
    "▁ ▁▁ ▁▁▁▁ { } [ ] ( ) \" : , ; . ▁\" \": \", \"} {\" }, }} [] () (); );\n ▁= == ▁+ ++ -- ▁- ▁* ▁< ▁<= && || -> << >> "
    "true false null int long bool float void return if else for while const auto std:: vector <int> push_back size "
    "sum max min name age year title value items id Ada Alan Grace 0 1 2 3 10 42 100 1999 19 20 "
    "a e i o u th he in er an re on at en nd ti es or te ▁the ▁a ▁of ▁to ▁and \n \n\n \\n \\u00 \\\" e1 .5 -1"
).split(" ")
EMBEDDING, HEADS, FEED_FORWARD, CONTEXT = 64, 4, 128, 2048


def write(path: str, seed: int = 1) -> None:
    kinds = gguf.TokenType
    tokens = [(b"<unk>", kinds.UNKNOWN), (b"<s>", kinds.CONTROL), (b"</s>", kinds.CONTROL)]
    tokens += [(f"<0x{byte:02X}>".encode(), kinds.BYTE) for byte in range(256)]
    tokens += [(piece.encode(), kinds.NORMAL) for piece in dict.fromkeys(PIECES) if piece]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(EMBEDDING)
    writer.add_block_count(1)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(EMBEDDING // HEADS)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text for text, _ in tokens])
    writer.add_token_scores([-float(at) for at in range(len(tokens))])
    writer.add_token_types([int(kind) for _, kind in tokens])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    random = numpy.random.default_rng(seed)

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(name, random.normal(0, 0.3, shape).astype(numpy.float32))

    square = (EMBEDDING, EMBEDDING)
    add("token_embd.weight", len(tokens), EMBEDDING)
    add("output.weight", len(tokens), EMBEDDING)
    writer.add_tensor("output_norm.weight", numpy.ones(EMBEDDING, numpy.float32))
    for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
        add(f"blk.0.{part}.weight", *square)
    for part in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.0.{part}.weight", numpy.ones(EMBEDDING, numpy.float32))
    add("blk.0.ffn_gate.weight", FEED_FORWARD, EMBEDDING)
    add("blk.0.ffn_up.weight", FEED_FORWARD, EMBEDDING)
    add("blk.0.ffn_down.weight", EMBEDDING, FEED_FORWARD)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write(sys.argv[1])
