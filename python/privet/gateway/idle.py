"""Sessions with workers between two jobs: the next one need not connect."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Hashable

from privet.runtime.session import Session

IDLE_SECONDS = 10.0
"""How long a session is kept for another job. Workers keep it longer, so that a client's word does
not cross theirs."""


class IdleSessions:
    """Sessions by who they are with; any thread may call any method."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: defaultdict[Hashable, list[tuple[float, Session]]] = defaultdict(list)

    def take(self, key: Hashable) -> Session | None:
        """The session under `key` that was used last, if there is one."""
        self.tidy()
        with self._lock:
            sessions = self._sessions.get(key)
            return sessions.pop()[1] if sessions else None

    def put(self, key: Hashable, session: Session) -> None:
        """Keeps a session that no job uses."""
        with self._lock:
            self._sessions[key].append((time.monotonic(), session))

    def tidy(self, seconds: float = IDLE_SECONDS) -> bool:
        """Leaves sessions that have been idle for so long; whether others are left."""
        limit = time.monotonic() - seconds
        old = []
        with self._lock:
            for key, sessions in list(self._sessions.items()):
                old += [session for since, session in sessions if since <= limit]
                sessions[:] = [(since, session) for since, session in sessions if since > limit]
                if not sessions:
                    del self._sessions[key]
            is_empty = not self._sessions
        for session in old:
            session.leave()
        return not is_empty
