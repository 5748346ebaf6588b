"""Writes a small model that a real engine can serve and that counts round a cycle of tokens: cycle_model.py FOLDER [DOUBT].

Runs in the engine's environment (needs torch, safetensors, tokenizers). The layers have random weights but write nothing into the
residual stream, so the last token's embedding alone reaches the output, whose row for the next token of the cycle matches it best.
With temperature 0, n-gram speculation is therefore always right. DOUBT divides the logits, so that with 100 and temperature 1 nearly any
token may follow. The size makes a step take some milliseconds, so that clients on the
same machine keep up.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

WORDS, CYCLE = 1024, 16
HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD, INNER = 512, 8, 8, 2, 64, 1536
CONTEXT = 4096
BOS, EOS = 0, 1


def next_token(token: int) -> int:
    """Return the token that follows in the cycle."""
    start = token - token % CYCLE
    return start + (token - start + 1) % CYCLE


def weights(doubt: float) -> dict[str, torch.Tensor]:
    """Return the tensors by the names of the Llama architecture."""
    torch.manual_seed(7)
    embedding = torch.randn(WORDS, HIDDEN)
    head = torch.zeros(WORDS, HIDDEN)
    for token in range(WORDS):
        head[next_token(token)] = embedding[token] / doubt
    found = {"model.embed_tokens.weight": embedding, "lm_head.weight": head, "model.norm.weight": torch.ones(HIDDEN)}
    for layer in range(LAYERS):
        shapes = {
            "self_attn.q_proj": (HEADS * HEAD, HIDDEN),
            "self_attn.k_proj": (KV_HEADS * HEAD, HIDDEN),
            "self_attn.v_proj": (KV_HEADS * HEAD, HIDDEN),
            "mlp.gate_proj": (INNER, HIDDEN),
            "mlp.up_proj": (INNER, HIDDEN),
        }
        here = {name: torch.randn(shape) * 0.02 for name, shape in shapes.items()}
        here |= {"self_attn.o_proj": torch.zeros(HIDDEN, HEADS * HEAD), "mlp.down_proj": torch.zeros(HIDDEN, INNER)}
        here |= {"input_layernorm": torch.ones(HIDDEN), "post_attention_layernorm": torch.ones(HIDDEN)}
        found |= {f"model.layers.{layer}.{name}.weight": tensor for name, tensor in here.items()}
    return {name: tensor.to(torch.bfloat16).contiguous() for name, tensor in found.items()}


def config() -> dict[str, object]:
    """Return the model's configuration."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "bfloat16",
        "vocab_size": WORDS,
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD,
        "hidden_act": "silu",
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
    }


def main(folder: Path, doubt: float) -> None:
    """Write model and tokenizer; every token is a word `w<number>`."""
    folder.mkdir(parents=True, exist_ok=True)
    words = {f"w{number}": number for number in range(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))  # noqa: S106  # a token of text, no secret
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    told = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "w0", "eos_token": "w1", "unk_token": "w0"}
    files = {"tokenizer_config.json": told, "config.json": config()}
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=1), encoding="utf-8")
    save_file(weights(doubt), folder / "model.safetensors", {"format": "pt"})


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1.0)
