"""What an NLI checkpoint says of itself; knows nothing of torch, weights or scoring."""

from pathlib import Path
from typing import Any

import transformers

from semif_bento.entailment import LABELS
from semif_bento.errors import StartupError

OVERLAY_HINT = "`semif-bento overlay` makes a directory that takes them from the base model."
PLACEHOLDERS = ("{premise}", "{hypothesis}")


def read_configuration(directory: Path) -> tuple[Any, str]:
    """Return a checkpoint's configuration and its template; no weight is read.

    Raises:
        StartupError: the tokenizer's files are missing, the configuration cannot be read, or
            `read_template` refuses what it says.
    """
    needed = ("tokenizer.json", "tokenizer_config.json")
    missing = [name for name in needed if not (directory / name).is_file()]
    if missing:
        raise StartupError(f"The NLI model lacks {' and '.join(missing)}; {OVERLAY_HINT}")
    try:
        config = transformers.AutoConfig.from_pretrained(directory, local_files_only=True)
    except (OSError, ValueError, KeyError) as exc:
        first_line = (str(exc).splitlines() or [type(exc).__name__])[0]
        raise StartupError(f"The NLI model cannot be loaded: {first_line}") from exc
    return config, read_template(config)


def read_template(config: Any) -> str:
    """Return the template of a checkpoint's configuration, once what it says of itself is right.

    Raises:
        StartupError: other labels or another order of them, a head that is no linear layer, no
            template, or one without exactly one premise and then one hypothesis.
    """
    labels = tuple(config.id2label.get(index) for index in range(len(config.id2label)))
    if labels != LABELS:
        raise StartupError(
            f"The NLI model's labels are {', '.join(map(str, labels))}; they must be "
            f"{', '.join(LABELS)} in this order."
        )
    if getattr(config, "openjev_mlp_head", None):
        raise StartupError(
            "The NLI model has an MLP head (openjev_mlp_head); a linear one is read."
        )
    template = getattr(config, "nli_template", None)
    if not isinstance(template, str):
        raise StartupError("The NLI model's configuration names no nli_template.")
    places = [template.find(placeholder) for placeholder in PLACEHOLDERS]
    if any(template.count(p) != 1 for p in PLACEHOLDERS) or places != sorted(places):
        raise StartupError("nli_template must hold {premise} once and then {hypothesis} once.")
    return template
