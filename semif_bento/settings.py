"""One frozen settings object, read once from the environment; knows nothing of what uses it.

Every field carries its environment name, unit and range, so `Settings.from_env` can refuse a wrong,
misspelled or out-of-range value by name, and the README's table is generated from this class.
"""

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from semif_bento.errors import StartupError

DEFAULT_MODEL = "Qwen/Qwen3.5-4B"
DEFAULT_REVISION = "851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a"
MIN_TOKEN_CHARACTERS = 32


def _integer(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
            raise ValueError(f"must be a whole number from {low} to {high}")
        if not low <= int(text) <= high:
            raise ValueError(f"must be from {low} to {high}, not {int(text)}")
        return int(text)

    return parse


def _number(low: float, high: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ValueError(f"must be a number over {low:g} and up to {high:g}") from None
        if not math.isfinite(value) or not low < value <= high:
            raise ValueError(f"must be over {low:g} and up to {high:g}, not {value:g}")
        return value

    return parse


def _one_of(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}, not {text!r}")
        return text

    return parse


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise ValueError("must be names that differ, separated by commas")
    return names


def _base_urls(text: str) -> tuple[str, ...]:
    urls = tuple(url.strip().rstrip("/") for url in text.split(","))
    if not all(map(_is_base_url, urls)) or len(set(urls)) < len(urls):
        # The text is not repeated: what is wrong with it may be a password in it.
        raise ValueError(
            "must be http or https base URLs that differ, separated by commas, without "
            "credentials, query or fragment"
        )
    return urls


def _is_base_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        # Reading the port raises ValueError where it is no number.
        is_place = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        return False
    is_plain = url.isascii() and url.isprintable() and " " not in url
    return is_place and is_plain and parts.scheme in ("http", "https") and not set("?#") & set(url)


def _file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise ValueError("must name a readable file")
    return path


def _setting(parse: Callable[[str], Any], default: Any, shape: str, help: str, **kw: Any) -> Any:
    return field(default=default, metadata={"parse": parse, "shape": shape, "help": help}, **kw)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything an operator can set; each field is `SEMIF_` + its name in capitals."""

    api_token: str = _setting(
        str,
        "",
        "text, 32 characters or more",
        "Bearer token of every closed route. This or SEMIF_API_TOKEN_FILE is required.",
        repr=False,
    )
    api_token_file: Path | None = _setting(
        _file, None, "path", "File that holds the token; surrounding white space is dropped."
    )
    model: str = _setting(
        str,
        DEFAULT_MODEL,
        "hub id, directory, `.gguf` file or `package:<distribution>/<file>`",
        "Where the weights come from. Nothing is downloaded at run time.",
    )
    revision: str | None = _setting(
        str,
        None,
        "40-hex commit for a hub id; any text otherwise",
        f"Pinned revision. Defaults to `{DEFAULT_REVISION}` for `{DEFAULT_MODEL}` and to the "
        "installed version for `package:`; required for everything else.",
    )
    device: Literal["cuda", "cpu"] = _setting(
        _one_of("cuda", "cpu"), "cuda", "`cuda` or `cpu`", "`cpu` only when set explicitly."
    )
    dtype: str = _setting(
        _one_of("bfloat16", "float16", "float32"),
        "bfloat16",
        "`bfloat16`, `float16` or `float32`",
        "Data type of weights and activations.",
    )
    vram_cap_gib: float | None = _setting(
        _number(0, 4096), None, "GiB, over 0", "Cap of this process on the card (CUDA only)."
    )
    branch_budget_mib: int = _setting(
        _integer(16, 1 << 20),
        512,
        "MiB, 16 to 1048576",
        "Memory that the branches of a shared call may use at once, where no VRAM cap gives it.",
    )
    branch_attention: Literal["auto", "cascade", "views"] = _setting(
        _one_of("auto", "cascade", "views"),
        "auto",
        "`auto`, `cascade` or `views`",
        "How branches read a shared state: `cascade` reads it in place, once for all branches; "
        "`views` joins it to each branch; `auto` takes `cascade` where model and device allow it.",
    )
    prefix_cache_mib: int = _setting(
        _integer(0, 1 << 20), 256, "MiB, 0 to 1048576", "Cap of the prefix cache; 0 turns it off."
    )
    max_tokens: int = _setting(
        _integer(64, 262144), 4096, "tokens, 64 to 262144", "Longest prompt; never truncated."
    )
    max_decisions: int = _setting(
        _integer(1, 4096), 64, "1 to 4096", "Most decisions in a shared request."
    )
    max_body_bytes: int = _setting(
        _integer(1024, 1 << 30), 1 << 20, "bytes, 1024 to 1073741824", "Largest request body."
    )
    max_waiting: int = _setting(
        _integer(0, 10000), 16, "0 to 10000", "Requests that may wait behind the running one."
    )
    timeout_s: float = _setting(
        _number(0, 3600), 60.0, "seconds, over 0 to 3600", "Longest time from arrival to answer."
    )
    model_aliases: tuple[str, ...] = _setting(
        _names,
        (),
        "names, separated by commas",
        "What else System One's clients may call the model, such as `jev-latest`. Answers name the "
        "model itself.",
    )
    calibration: Path | None = _setting(_file, None, "path", "JSON file `{workload: temperature}`.")
    cache_dir: Path = _setting(
        Path,
        Path("~/.cache/semif-bento"),
        "path",
        "Where converted GGUF weights are kept.",
    )
    backend: Literal["torch", "vllm", "sglang"] = _setting(
        _one_of("torch", "vllm", "sglang"),
        "torch",
        "`torch`, `vllm` or `sglang`",
        "What computes: torch in this process, or servers of one engine. With servers only the "
        "tokenizer of SEMIF_MODEL is loaded here, SEMIF_DTYPE tells what they were started with, "
        "and device, budget and prefix cache are theirs.",
    )
    backend_urls: tuple[str, ...] = _setting(
        _base_urls, (), "http(s) URLs, separated by commas", "The servers; every one must be ready."
    )
    backend_model: str | None = _setting(
        str, None, "text", "Name that the servers serve the model by. Defaults to SEMIF_MODEL."
    )
    backend_key: str = _setting(
        str, "", "text", "Bearer token that the servers ask for.", repr=False
    )
    backend_key_file: Path | None = _setting(
        _file, None, "path", "File that holds it; surrounding white space is dropped."
    )
    backend_concurrency: int = _setting(
        _integer(1, 256), 16, "1 to 256", "Most calls that one server is asked at once."
    )
    backend_timeout_s: float = _setting(
        _number(0, 3600), 30.0, "seconds, over 0 to 3600", "Longest time of one call to a server."
    )
    backend_check_s: float = _setting(
        _number(0, 3600), 2.0, "seconds, over 0 to 3600", "Time between two looks at a server."
    )

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> "Settings":
        """Read and check every `SEMIF_*` name of `environ`.

        An empty value counts as not set.

        Raises:
            StartupError: an unknown name, a value that cannot be read or is out of range, a
                missing or short token, or a revision that does not fit the model. The message
                names the variable and never repeats a token.
        """
        known = {variable(f): f for f in fields(cls)}
        given = {k: v.strip() for k, v in environ.items() if k.startswith("SEMIF_") and v.strip()}
        for name in given:
            if name not in known:
                raise StartupError(f"{name} is not a setting{_did_you_mean(name, list(known))}.")
        values = {known[name].name: _parse(known[name], name, text) for name, text in given.items()}
        named = frozenset(values)
        values["api_token"] = _token(values)
        values["revision"] = _revision(values)
        values["cache_dir"] = Path(values.get("cache_dir", "~/.cache/semif-bento")).expanduser()
        values["backend_key"] = _backend_key(values)
        settings = cls(**values)
        if settings.vram_cap_gib is not None and settings.device != "cuda":
            raise StartupError("SEMIF_VRAM_CAP_GIB caps a CUDA card; it needs SEMIF_DEVICE=cuda.")
        _refuse_mixed_backends(settings, named)
        return settings

    @property
    def is_remote(self) -> bool:
        """Whether servers compute, not this process."""
        return self.backend != "torch"


def variable(setting: "Field[Any]") -> str:
    """Return the environment name of a field of `Settings`."""
    return f"SEMIF_{setting.name.upper()}"


def settings_table() -> str:
    """Return the README's table of all settings in Markdown, one row a field, in order."""
    lines = ["| variable | value | default | meaning |", "|---|---|---|---|"]
    for f in fields(Settings):
        default = "–" if f.default in (None, "", ()) else f"`{f.default}`"
        lines.append(
            f"| `{variable(f)}` | {f.metadata['shape']} | {default} | {f.metadata['help']} |"
        )
    return "\n".join(lines)


def _did_you_mean(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}" if close else ""


def _parse(setting: "Field[Any]", name: str, text: str) -> Any:
    try:
        return setting.metadata["parse"](text)
    except ValueError as exc:
        raise StartupError(f"{name} {exc}.") from None


def _token(values: Mapping[str, Any]) -> str:
    token, source = _secret(values, "api_token")
    if not token:
        raise StartupError("SEMIF_API_TOKEN or SEMIF_API_TOKEN_FILE is required.")
    if len(token) < MIN_TOKEN_CHARACTERS:
        raise StartupError(f"{source} must hold at least {MIN_TOKEN_CHARACTERS} characters.")
    return token


def _backend_key(values: Mapping[str, Any]) -> str:
    key, source = _secret(values, "backend_key")
    if values.get("backend_key_file") and not key:
        raise StartupError(f"{source} is empty.")
    return key


def _secret(values: Mapping[str, Any], name: str) -> tuple[str, str]:
    """Return a secret, given directly or by a file, and the variable that gives it."""
    secret, file = values.get(name, ""), values.get(f"{name}_file")
    source = f"SEMIF_{name.upper()}"
    if secret and file:
        raise StartupError(f"Set {source} or {source}_FILE, not both.")
    if file:
        source += "_FILE"
        try:
            secret = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeError) as exc:
            raise StartupError(f"{source} cannot be read: {type(exc).__name__}.") from None
    if not secret.isascii() or any(c.isspace() or not c.isprintable() for c in secret):
        raise StartupError(f"{source} must be printable ASCII without white space.")
    return secret, source


def _refuse_mixed_backends(settings: Settings, named: Iterable[str]) -> None:
    if settings.is_remote:
        if not settings.backend_urls:
            raise StartupError(f"SEMIF_BACKEND={settings.backend} needs SEMIF_BACKEND_URLS.")
        if settings.vram_cap_gib is not None:
            raise StartupError(
                "SEMIF_VRAM_CAP_GIB caps this process, which needs no card with "
                f"SEMIF_BACKEND={settings.backend}; cap the servers themselves."
            )
        return
    for name in sorted(named):
        if name.startswith("backend_"):
            raise StartupError(
                f"SEMIF_{name.upper()} needs SEMIF_BACKEND=vllm or SEMIF_BACKEND=sglang."
            )


def _revision(values: Mapping[str, Any]) -> str | None:
    model, revision = values.get("model", DEFAULT_MODEL), values.get("revision")
    if model == DEFAULT_MODEL and revision is None:
        return DEFAULT_REVISION
    if is_hub_id(model) and not re.fullmatch(r"[0-9a-f]{40}", revision or ""):
        raise StartupError("SEMIF_REVISION must be the 40-hex commit of the hub id SEMIF_MODEL.")
    if revision is None and not model.startswith("package:"):
        raise StartupError("SEMIF_REVISION is required for a local SEMIF_MODEL; any text will do.")
    return revision


def is_hub_id(model: str) -> bool:
    """Tell whether a model source names a hub repository rather than something on this disk."""
    if model.startswith("package:") or model.endswith(".gguf") or Path(model).exists():
        return False
    return re.fullmatch(r"[\w.-]+/[\w.-]+", model) is not None
