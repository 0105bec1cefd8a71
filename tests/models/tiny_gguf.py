"""A GGUF file that converts within a moment: a random Llama with a byte tokenizer."""

from pathlib import Path

import gguf
import numpy as np

from models.byte_qwen import byte_tokenizer
from models.qwen_vocabulary import CHAT_TEMPLATE

WIDTH, LAYERS, HEADS = 32, 2, 2


def write_tiny_gguf(path: Path, seed: int = 0, without: str | None = None) -> Path:
    """Write a model in float32, without the tensor named; another seed makes another file."""
    tokenizer = byte_tokenizer(merges=[("Ġ", "t")])
    vocabulary = tokenizer.get_vocab()
    added = set(tokenizer.get_added_vocab())
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    random = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(4096)
    writer.add_block_count(LAYERS)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    kinds = (gguf.TokenType.CONTROL, gguf.TokenType.NORMAL)
    writer.add_token_types([kinds[token not in added] for token in tokens])
    writer.add_token_merges(["Ġ t"])
    writer.add_bos_token_id(vocabulary["<|endoftext|>"])
    writer.add_eos_token_id(vocabulary["<|im_end|>"])
    writer.add_chat_template(CHAT_TEMPLATE)
    for name, shape in _shapes(len(tokens)).items():
        if name != without:
            writer.add_tensor(name, random.normal(0, 0.3, shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _shapes(tokens: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (tokens, WIDTH),
        "output_norm.weight": (WIDTH,),
    }
    for layer in range(LAYERS):
        for norm in ("attn_norm", "ffn_norm"):
            shapes[f"blk.{layer}.{norm}.weight"] = (WIDTH,)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
            shapes[f"blk.{layer}.{name}.weight"] = (WIDTH, WIDTH)
    return shapes
