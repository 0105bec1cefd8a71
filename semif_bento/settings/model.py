"""One frozen settings object, read once from the environment; knows nothing of what uses it.

Every field carries its environment name, unit and range, so `Settings.from_env` can refuse a wrong,
misspelled or out-of-range value by name, and the README's table is generated from this class.
"""

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from semif_bento.errors import StartupError
from semif_bento.settings.backends import refuse_mixed_backends
from semif_bento.settings.pins import (
    DEFAULT_MODEL,
    DEFAULT_REVISION,
    NO_MODEL,
    read_revision,
    require_pin,
)
from semif_bento.settings.secrets import read_backend_key, read_token
from semif_bento.settings.values import (
    base_urls,
    boolean,
    did_you_mean,
    file,
    folder,
    integer,
    names,
    number,
    one_of,
)


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
        file, None, "path", "File that holds the token; surrounding white space is dropped."
    )
    model: str = _setting(
        str,
        DEFAULT_MODEL,
        "hub id, directory, `.gguf` file, `package:<distribution>/<file>` or `none`",
        "Where the weights come from. Nothing is downloaded at run time. `none` leaves out the "
        "engines that read a causal model.",
    )
    engine: Literal["letters", "nli", "likelihood"] | None = _setting(
        one_of("letters", "nli", "likelihood"),
        None,
        "`letters`, `nli` or `likelihood`",
        "Engine that answers where a request names none. Defaults to `letters`, or to `nli` where "
        "SEMIF_MODEL is `none`.",
    )
    revision: str | None = _setting(
        str,
        None,
        "40-hex commit for a hub id; any text otherwise",
        f"Pinned revision. Defaults to `{DEFAULT_REVISION}` for `{DEFAULT_MODEL}` and to the "
        "installed version for `package:`; required for everything else.",
    )
    nli_model: str | None = _setting(
        str,
        None,
        "hub id, directory or `package:<distribution>/<folder>`",
        "A checkpoint that classifies entailment; it enables `/classify` and `engine: nli`.",
    )
    nli_revision: str | None = _setting(
        str, None, "40-hex commit for a hub id; any text otherwise", "Its pinned revision."
    )
    nli_subfolder: str | None = _setting(
        folder, None, "relative path", "Folder of the checkpoint within SEMIF_NLI_MODEL."
    )
    nli_dtype: str = _setting(
        one_of("bfloat16", "float16", "float32"),
        "bfloat16",
        "`bfloat16`, `float16` or `float32`",
        "Data type of the NLI engine.",
    )
    device: Literal["cuda", "cpu"] = _setting(
        one_of("cuda", "cpu"), "cuda", "`cuda` or `cpu`", "`cpu` only when set explicitly."
    )
    dtype: str = _setting(
        one_of("bfloat16", "float16", "float32"),
        "bfloat16",
        "`bfloat16`, `float16` or `float32`",
        "Data type of weights and activations.",
    )
    vram_cap_gib: float | None = _setting(
        number(0, 4096), None, "GiB, over 0", "Cap of this process on the card (CUDA only)."
    )
    branch_budget_mib: int = _setting(
        integer(16, 1 << 20),
        512,
        "MiB, 16 to 1048576",
        "Memory that the branches of a shared call may use at once, where no VRAM cap gives it.",
    )
    branch_attention: Literal["auto", "cascade", "views"] = _setting(
        one_of("auto", "cascade", "views"),
        "auto",
        "`auto`, `cascade` or `views`",
        "How branches read a shared state: `cascade` reads it in place, once for all branches; "
        "`views` joins it to each branch; `auto` takes `cascade` where model and device allow it.",
    )
    prefix_cache_mib: int = _setting(
        integer(0, 1 << 20), 256, "MiB, 0 to 1048576", "Cap of the prefix cache; 0 turns it off."
    )
    max_tokens: int = _setting(
        integer(64, 262144), 4096, "tokens, 64 to 262144", "Longest prompt; never truncated."
    )
    max_decisions: int = _setting(
        integer(1, 4096), 64, "1 to 4096", "Most decisions in a shared request."
    )
    max_body_bytes: int = _setting(
        integer(1024, 1 << 30), 1 << 20, "bytes, 1024 to 1073741824", "Largest request body."
    )
    max_waiting: int = _setting(
        integer(0, 10000), 16, "0 to 10000", "Requests that may wait behind the running one."
    )
    timeout_s: float = _setting(
        number(0, 3600), 60.0, "seconds, over 0 to 3600", "Longest time from arrival to answer."
    )
    open_docs: bool = _setting(
        boolean,
        True,
        "`true` or `false`",
        "Whether `/docs` answers without the token. The page holds nothing and asks for it.",
    )
    model_aliases: tuple[str, ...] = _setting(
        names,
        (),
        "names, separated by commas",
        "What else System One's clients may call the model, such as `jev-latest`. Answers name the "
        "model itself.",
    )
    max_pairs: int = _setting(
        integer(1, 1 << 16),
        1024,
        "1 to 65536",
        "Most pairs that a request makes for the NLI engine.",
    )
    calibration: Path | None = _setting(file, None, "path", "JSON file `{workload: temperature}`.")
    likelihood_calibration: Path | None = _setting(
        file, None, "path", "The same for the likelihood engine; tables are never mixed."
    )
    nli_calibration: Path | None = _setting(
        file, None, "path", "The same for the NLI engine; tables are never mixed."
    )
    cache_dir: Path = _setting(
        Path, Path("~/.cache/semif-bento"), "path", "Where converted GGUF weights are kept."
    )
    backend: Literal["torch", "vllm", "sglang"] = _setting(
        one_of("torch", "vllm", "sglang"),
        "torch",
        "`torch`, `vllm` or `sglang`",
        "What computes: torch in this process, or servers of one engine. With servers only the "
        "tokenizer of SEMIF_MODEL is loaded here, SEMIF_DTYPE tells what they were started with, "
        "and device, budget and prefix cache are theirs.",
    )
    backend_urls: tuple[str, ...] = _setting(
        base_urls, (), "http(s) URLs, separated by commas", "The servers; all must be ready."
    )
    backend_model: str | None = _setting(
        str, None, "text", "Name that the servers serve the model by. Defaults to SEMIF_MODEL."
    )
    backend_nli_urls: tuple[str, ...] = _setting(
        base_urls,
        (),
        "http(s) URLs, separated by commas",
        "The servers that classify for SEMIF_NLI_MODEL; they are others than those above.",
    )
    backend_nli_model: str | None = _setting(
        str, None, "text", "Name that they serve it by. Defaults to SEMIF_NLI_MODEL."
    )
    backend_key: str = _setting(
        str, "", "text", "Bearer token that the servers ask for.", repr=False
    )
    backend_key_file: Path | None = _setting(
        file, None, "path", "File that holds it; surrounding white space is dropped."
    )
    backend_concurrency: int = _setting(
        integer(1, 256), 16, "1 to 256", "Most calls that one server is asked at once."
    )
    backend_timeout_s: float = _setting(
        number(0, 3600), 30.0, "seconds, over 0 to 3600", "Longest time of one call to a server."
    )
    backend_prime_tokens: int = _setting(
        integer(0, 1 << 20),
        0,
        "tokens, 0 to 1048576",
        "A shared state of so many tokens or more is sent alone first; 0 for never.",
    )
    backend_check_s: float = _setting(
        number(0, 3600), 2.0, "seconds, over 0 to 3600", "Time between two looks at a server."
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
                raise StartupError(f"{name} is not a setting{did_you_mean(name, list(known))}.")
        found = {known[name].name: _parse(known[name], name, text) for name, text in given.items()}
        refuse_mixed_backends(found, NO_MODEL)
        found["api_token"] = read_token(found)
        found["backend_key"] = read_backend_key(found)
        found["revision"] = read_revision(found)
        found["cache_dir"] = Path(found.get("cache_dir", "~/.cache/semif-bento")).expanduser()
        settings = cls(**found)
        settings._check_nli()
        if settings.vram_cap_gib is not None and settings.device != "cuda":
            raise StartupError("SEMIF_VRAM_CAP_GIB caps a CUDA card; it needs SEMIF_DEVICE=cuda.")
        return settings

    @property
    def nli_name(self) -> str:
        """The NLI model as answers name it: its source and folder; empty where there is none."""
        return "/".join(filter(None, (self.nli_model, self.nli_subfolder)))

    @property
    def default_engine(self) -> str:
        """The engine that answers where a request names none."""
        return self.engine or ("letters" if self.has_causal_model else "nli")

    @property
    def is_remote(self) -> bool:
        """Whether servers compute, not this process."""
        return self.backend != "torch"

    @property
    def has_causal_model(self) -> bool:
        """Whether a causal model is wanted, which letters and likelihoods are read from."""
        return self.model != NO_MODEL

    def _check_nli(self) -> None:
        if self.nli_model is None:
            if not self.has_causal_model:
                raise StartupError("SEMIF_MODEL=none leaves nothing to serve; set SEMIF_NLI_MODEL.")
            for name in ("nli_revision", "nli_subfolder", "nli_calibration"):
                if getattr(self, name) is not None:
                    raise StartupError(f"SEMIF_{name.upper()} is set, SEMIF_NLI_MODEL is not.")
        else:
            require_pin("SEMIF_NLI_MODEL", self.nli_model, self.nli_revision)
        for name in ("calibration", "likelihood_calibration"):
            if getattr(self, name) and not self.has_causal_model:
                raise StartupError(f"SEMIF_{name.upper()} is set, and SEMIF_MODEL is none.")
        if self.default_engine == "nli" and self.nli_model is None:
            raise StartupError("SEMIF_ENGINE=nli needs SEMIF_NLI_MODEL.")
        if self.default_engine != "nli" and not self.has_causal_model:
            raise StartupError(f"SEMIF_ENGINE={self.engine} needs SEMIF_MODEL.")


def variable(setting: "Field[Any]") -> str:
    """Return the environment name of a field of `Settings`."""
    return f"SEMIF_{setting.name.upper()}"


def settings_table() -> str:
    """Return the README's table of all settings in Markdown, one row a field, in order."""
    lines = ["| variable | value | default | meaning |", "|---|---|---|---|"]
    for f in fields(Settings):
        shown = str(f.default).lower() if isinstance(f.default, bool) else f.default
        default = "–" if f.default in (None, "", ()) else f"`{shown}`"
        lines.append(
            f"| `{variable(f)}` | {f.metadata['shape']} | {default} | {f.metadata['help']} |"
        )
    return "\n".join(lines)


def _parse(setting: "Field[Any]", name: str, text: str) -> Any:
    try:
        return setting.metadata["parse"](text)
    except ValueError as exc:
        raise StartupError(f"{name} {exc}.") from None
