"""Encode a caller's text as data: what looks like a special token is ordinary text.

Knows nothing of prompts or models.
"""

import json

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast


class PlainText:
    """A tokenizer for which `<|im_end|>` and its like mean nothing."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        spec = json.loads(tokenizer.backend_tokenizer.to_str())
        spec["added_tokens"] = []
        spec["post_processor"] = None
        spec["truncation"] = spec["padding"] = None
        self._tokenizer = Tokenizer.from_str(json.dumps(spec))

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the ids of a text, none of them special and none added.

        Raises:
            UnicodeEncodeError: the text holds a lone surrogate.
        """
        text.encode()  # tokenizers' own error for a lone surrogate names none
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)
