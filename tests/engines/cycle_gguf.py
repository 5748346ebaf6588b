"""Writes a small model for llama.cpp that counts round a cycle of tokens: cycle_gguf.py FILE.

Runs in the environment of tests/engines/install-llamacpp (needs gguf, numpy). As in cycle_model.py the layers write nothing into the
residual stream, so the last token's embedding alone reaches the output, whose row for the next token of the cycle matches it best.
"""

import sys
from pathlib import Path

import gguf
import numpy as np

WORDS, CYCLE = 1024, 16
HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD, INNER = 512, 8, 8, 2, 64, 1536
CONTEXT = 4096
BOS, EOS = 0, 1


def tensors() -> dict[str, np.ndarray]:
    """Return the tensors by llama.cpp's names."""
    chance = np.random.default_rng(7)

    def random(*shape: int) -> np.ndarray:
        return (chance.standard_normal(shape) * 0.02).astype(np.float16)

    embedding = chance.standard_normal((WORDS, HIDDEN)).astype(np.float16)
    head = np.zeros_like(embedding)
    for token in range(WORDS):
        head[token - token % CYCLE + (token + 1) % CYCLE] = embedding[token]
    found = {"token_embd.weight": embedding, "output.weight": head, "output_norm.weight": np.ones(HIDDEN, np.float32)}
    for layer in range(LAYERS):
        here = {
            "attn_q": random(HEADS * HEAD, HIDDEN),
            "attn_k": random(KV_HEADS * HEAD, HIDDEN),
            "attn_v": random(KV_HEADS * HEAD, HIDDEN),
            "attn_output": np.zeros((HIDDEN, HEADS * HEAD), np.float16),
            "ffn_gate": random(INNER, HIDDEN),
            "ffn_up": random(INNER, HIDDEN),
            "ffn_down": np.zeros((HIDDEN, INNER), np.float16),
            "attn_norm": np.ones(HIDDEN, np.float32),
            "ffn_norm": np.ones(HIDDEN, np.float32),
        }
        found |= {f"blk.{layer}.{name}.weight": tensor for name, tensor in here.items()}
    return found


def main(target: Path) -> None:
    """Write the file; every token is a word `w<number>`."""
    writer = gguf.GGUFWriter(str(target), "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(HEAD)
    writer.add_vocab_size(WORDS)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([f"w{number}" for number in range(WORDS)])
    writer.add_token_types([gguf.TokenType.CONTROL if number in (BOS, EOS) else gguf.TokenType.NORMAL for number in range(WORDS)])
    writer.add_token_merges(["w 2"])  # there must be one; prompts come as numbers
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(EOS)
    writer.add_add_bos_token(False)
    for name, tensor in tensors().items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
