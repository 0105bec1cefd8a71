"""What the engines over servers have in common while they are opened; knows no engine."""

from dataclasses import dataclass
from functools import partial

import transformers

from semif_bento.caller import Caller
from semif_bento.decisions import EngineStatus, ModelIdentity, PrefixCacheStatus
from semif_bento.engine.sources import ModelSource
from semif_bento.remote.dialect import Dialect
from semif_bento.remote.fleet import Fleet
from semif_bento.remote.loop import BackgroundLoop
from semif_bento.remote.proofs import Expectation, prove_again, prove_all
from semif_bento.remote.server import Server
from semif_bento.settings import Settings

NOT_HERE = "on the engine's servers"


@dataclass(frozen=True, slots=True)
class Opening:
    """One start: its settings, and the servers by what they do.

    `causal` servers answer for a causal model, `nli` servers classify.
    """

    settings: Settings
    dialect: Dialect
    loop: BackgroundLoop
    causal: Fleet
    nli: Fleet

    @classmethod
    def of(cls, settings: Settings, dialect: Dialect) -> "Opening":
        """Return the start that settings ask for; nothing is connected yet."""
        causal, nli = settings.backend_urls, settings.backend_nli_urls
        return cls(
            settings, dialect, BackgroundLoop(), _fleet(causal, settings), _fleet(nli, settings)
        )

    def status(self) -> EngineStatus:
        """Report the servers; what this process does not have is 0 or said to be elsewhere."""
        servers = (*self.causal.status(), *self.nli.status())
        return EngineStatus(
            device_name=f"{self.settings.backend} on {_count(len(servers))}",
            allocated_gib=0.0,
            reserved_gib=0.0,
            linear_attention_kernels=NOT_HERE,
            branch_attention=NOT_HERE,
            matrix_products=NOT_HERE,
            branch_budget_mib=0.0,
            prefix_cache=PrefixCacheStatus(0, 0, 0, 0, 0),
            servers=servers,
        )

    def prove(self, fleet: Fleet, expected: Expectation) -> str:
        """Prove every server of a fleet, begin to watch them, and return the engine's version.

        Raises:
            StartupError: a proof fails.
        """
        found = self.loop.run(prove_all(fleet.servers, expected), Caller())
        prove = partial(prove_again, expected=expected, reference=found)
        self.loop.run(fleet.watch(self.settings.backend_check_s, prove), Caller())
        return found.version

    def identify(
        self, source: ModelSource, expected: Expectation, version: str, fleet: Fleet
    ) -> ModelIdentity:
        """Return what answers will name."""
        engine = f"{self.dialect.name} {version}"
        return ModelIdentity(
            source=source.name,
            revision=source.revision,
            dtype=expected.dtype,
            device=f"{engine} on {_count(len(fleet.servers))}, serving {expected.model}",
            torch_version=f"that of {engine}",
            transformers_version=transformers.__version__,
        )

    def close(self) -> None:
        """Close every connection and end the thread."""
        self.loop.run(self.causal.close(), Caller())
        self.loop.run(self.nli.close(), Caller())
        self.loop.close()


def _fleet(urls: tuple[str, ...], settings: Settings) -> Fleet:
    given = (settings.backend_key, settings.backend_concurrency, settings.backend_timeout_s)
    return Fleet([Server(url, *given) for url in urls])


def _count(servers: int) -> str:
    return "1 server" if servers == 1 else f"{servers} servers"
