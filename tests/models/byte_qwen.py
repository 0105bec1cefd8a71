"""A Qwen3.5 small enough to be written, damaged and loaded within a moment: one token a byte."""

from collections.abc import Sequence

import torch
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from models.loaded import LoadedModel, build_tiny_qwen
from models.qwen_vocabulary import CHAT_TEMPLATE

CONTROLS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>")


def byte_tokenizer(
    *,
    merges: Sequence[tuple[str, str]] = (),
    pre_tokenizer: pre_tokenizers.PreTokenizer | None = None,
    decoder: decoders.Decoder | None = None,
    chat_template: str = CHAT_TEMPLATE,
) -> PreTrainedTokenizerFast:
    """Build a byte-level BPE over the 256 bytes with the given merges, by default none."""
    letters = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "▁"]
    pieces = [*letters, *dict.fromkeys(left + right for left, right in merges)]
    backend = Tokenizer(
        BPE(vocab={piece: i for i, piece in enumerate(pieces)}, merges=list(merges))
    )
    backend.pre_tokenizer = pre_tokenizer or pre_tokenizers.ByteLevel(
        add_prefix_space=False, use_regex=False
    )
    backend.decoder = decoder or decoders.ByteLevel()
    backend.add_tokens([AddedToken(text, normalized=False, special=True) for text in CONTROLS])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
        chat_template=chat_template,
    )


def build_byte_qwen(dtype: str = "float32") -> LoadedModel:
    """Build a fresh one; it may be changed."""
    model = build_tiny_qwen(vocab_size=320, hidden_size=64, intermediate_size=64)
    return LoadedModel(model.to(getattr(torch, dtype)), byte_tokenizer(), dtype)
