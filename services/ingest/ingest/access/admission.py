"""The one question that is asked of each request: who makes it, and may they?"""

import hmac
import logging
from pathlib import Path

from werkzeug.http import parse_cookie

from ingest import config
from ingest.access import tokens
from ingest.access.known import Known
from ingest.access.sessions import Sessions
from ingest.access.visitor import ANYBODY, Credentials, Visitor
from ingest.config import Config
from ingest.errors import Forbidden, StoreUnavailable, Unauthenticated
from ingest.rules.roles import Role

LEGACY = frozenset({"/newbeacondetect", "/extractbeacon", "/retrieveformonitoring"})
_SCHEME = "bearer "
# The first where TLS protects it: no other site of the domain can set it then.
COOKIES = (SECURE_COOKIE, COOKIE) = ("__Host-waymark_session", "waymark_session")
# What changes nothing may be asked for by anything that has the cookie.
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

log = logging.getLogger(__name__)


class Admission:
    """Tells visitors apart, without asking the database."""

    def __init__(self, settings: Config, known: Known, sessions: Sessions) -> None:
        self._known = known
        self._sessions = sessions
        self._open = settings.waymark_access == config.OPEN
        self._legacy_open = settings.waymark_legacy_access == config.OPEN
        self._page = _page_token(settings.page_token_file)
        if self._legacy_open and not self._open:
            log.warning("WAYMARK_LEGACY_ACCESS=open: whoever reaches us may post, and read all")

    @property
    def open(self) -> bool:
        """Tell whether nobody is asked."""
        return self._open

    def admit(self, needed: Role, path: str, given: Credentials) -> Visitor:
        """Return who makes a request to an address that needs a role.

        Raises Unauthenticated, Forbidden, and StoreUnavailable where no token was ever read.
        """
        if self._open or needed is Role.NOBODY or (self._legacy_open and path in LEGACY):
            return ANYBODY
        visitor = self.visitor(given)
        if visitor is None:
            raise Unauthenticated
        if not visitor.role.allows(needed):
            raise Forbidden(f"needs the role {needed.value}, this is {visitor.role.value}")
        if visitor.csrf and given.method not in _SAFE and not _same(given.csrf, visitor.csrf):
            raise Forbidden("send the header X-CSRF-Token with what GET /session tells")
        return visitor

    def stranger(self, given: Credentials) -> bool:
        """Tell whether nothing but log-in and health may be given to who makes a request."""
        try:
            return not self._open and self.visitor(given) is None
        except StoreUnavailable:
            return True

    def visitor(self, given: Credentials) -> Visitor | None:
        """Return who makes a request, None for a stranger; a token counts more than a cookie."""
        if not given.authorization:
            return self._person(given.cookie) if given.cookie else None
        scheme, secret = given.authorization[: len(_SCHEME)], given.authorization[len(_SCHEME) :]
        if scheme.lower() != _SCHEME:
            return None
        if tokens.digest(secret) == self._page:
            return Visitor("monitoring service", "token", Role.READ)
        return self._known.visitor(secret)

    def _person(self, header: str) -> Visitor | None:
        cookies = parse_cookie(header.encode("ascii", "replace").decode())  # others may hold all
        text = next((cookies[name] for name in COOKIES if name in cookies), "")
        session = self._sessions.read(text)
        return self._known.person(session) if session else None


def _page_token(file: str) -> str:
    """Return the digest of the monitoring service's token; no secret has the empty one."""
    return tokens.digest(Path(file).read_text("utf-8").strip()) if file else ""


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())
