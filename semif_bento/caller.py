"""Who waits for an answer, and whether they still do; knows nothing of what was asked."""

import threading
from collections.abc import Callable

from semif_bento.errors import ClientClosed


class Caller:
    """One request's caller, who may leave or run out of time while work is done for them.

    Every method may be called from any thread. Nobody comes back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._has_left = False
        self._acts: list[Callable[[], object]] = []

    def leave(self) -> None:
        """Tell whoever works for this caller that the answer is not wanted any more."""
        with self._lock:
            self._has_left, acts = True, self._acts
            self._acts = []
        for act in acts:
            act()

    def on_leaving(self, act: Callable[[], object]) -> None:
        """Have `act` called once when the caller leaves, at once if that has happened.

        It is called on the thread that tells, so it must not wait.
        """
        with self._lock:
            if not self._has_left:
                self._acts.append(act)
                return
        act()

    def require_presence(self) -> None:
        """Do nothing while the caller waits.

        Raises:
            ClientClosed: the caller has left.
        """
        if self._has_left:
            raise ClientClosed("The caller left before the answer.")
