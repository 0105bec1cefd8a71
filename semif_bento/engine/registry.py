"""The one list of engines, in the order in which they are opened and speak for a process.

To add one, write its folder beside the others and a line here (docs/architecture.md). Everything
that tells engines apart reads this list; it imports no torch.
"""

from collections.abc import Iterable

from semif_bento.engine.kind import EngineKind
from semif_bento.engine.letters.kind import LETTERS
from semif_bento.engine.likelihood.kind import LIKELIHOOD
from semif_bento.engine.nli.kind import NLI
from semif_bento.settings import Settings

KINDS: dict[str, EngineKind] = {kind.name: kind for kind in (LETTERS, LIKELIHOOD, NLI)}


def wanted_kinds(settings: Settings) -> Iterable[EngineKind]:
    """Return the kinds of engine that the settings ask for, in the list's order."""
    return [kind for kind in KINDS.values() if kind.is_wanted(settings)]
