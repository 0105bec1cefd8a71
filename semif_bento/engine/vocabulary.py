"""Load a model's tokenizer, or refuse; knows nothing of torch, weights or prompts."""

from pathlib import Path

import transformers
from transformers import PreTrainedTokenizerFast

from semif_bento.errors import EngineUnfit, StartupError


def load_tokenizer(directory: Path, *, needs_chat_template: bool = True) -> PreTrainedTokenizerFast:
    """Load the fast tokenizer of a model directory.

    Raises:
        StartupError: missing or unreadable files, no fast tokenizer, or no chat template where
            one is needed.
    """
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            directory, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError) as exc:
        first_line = (str(exc).splitlines() or [type(exc).__name__])[0]
        raise StartupError(f"The tokenizer cannot be loaded: {first_line}") from exc
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise StartupError("The model has no fast tokenizer (tokenizer.json); one is needed.")
    if needs_chat_template:
        require_chat_template(tokenizer)
    return tokenizer


def require_chat_template(tokenizer: PreTrainedTokenizerFast) -> None:
    """Refuse a tokenizer without a chat template.

    Raises:
        EngineUnfit: it has none.
    """
    if not tokenizer.chat_template:
        raise EngineUnfit("The tokenizer has no chat template; the letters' prompt needs one.")
