"""The one question that is asked of each request: who makes it, and may they?"""

import hmac
import logging
from functools import lru_cache
from pathlib import Path

from werkzeug.http import parse_cookie

from common.browsers import SESSION_COOKIES
from common.routes import LEGACY_PATHS
from ingest import config
from ingest.access import tokens
from ingest.access.access_cache import AccessCache
from ingest.access.sessions import Session, Sessions
from ingest.access.visitor import ANYBODY, Credentials, Visitor
from ingest.config import Config
from ingest.errors import Forbidden, StoreUnavailable, Unauthenticated
from ingest.rules.roles import EVERYTHING, Role, Scope
from ingest.storage.access.tokens import MAX_TOKENS

_SCHEME = "bearer"
_MAX_HEADER = 128  # no token of ours makes a longer one
# What changes nothing may be asked for by anything that has the cookie.
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

log = logging.getLogger(__name__)


class Admission:
    """Tells visitors apart, without asking the database."""

    def __init__(self, settings: Config, access_cache: AccessCache, sessions: Sessions) -> None:
        self._access_cache = access_cache
        self._sessions = sessions
        self._open = settings.waymark_access == config.OPEN
        self._legacy_open = settings.waymark_legacy_access == config.OPEN
        self._built_in = _built_in(settings)
        self._built_in_ids = {visitor.token_id for visitor in self._built_in.values()}
        if self._legacy_open and not self._open:
            log.warning("WAYMARK_LEGACY_ACCESS=open: whoever reaches us may post, and read all")

    @property
    def open(self) -> bool:
        """Tell whether nobody is asked."""
        return self._open

    def admit(
        self,
        needed: Role,
        path: str,
        credentials: Credentials,
        scope: Scope = EVERYTHING,
    ) -> Visitor:
        """Return who makes a request to an address that needs a role.

        The answer tells of that scope. Raises Unauthenticated, Forbidden, and StoreUnavailable
        where no token was ever read.
        """
        if self._open or needed is Role.NOBODY or (self._legacy_open and path in LEGACY_PATHS):
            return ANYBODY
        visitor = self.visitor(credentials)
        if visitor is None:
            raise Unauthenticated
        if not visitor.role.allows(needed):
            raise Forbidden(f"needs the role {needed.value}, this is {visitor.role.value}")
        if not visitor.may_see(scope):
            raise Forbidden(f"this link or token shows {visitor.limits} alone")
        if (
            visitor.csrf
            and credentials.method not in _SAFE
            and not _same(credentials.csrf, visitor.csrf)
        ):
            raise Forbidden("send the header X-CSRF-Token with what GET /session tells")
        return visitor

    def stranger(self, credentials: Credentials) -> bool:
        """Tell whether nothing but log-in and health may be given to who makes a request."""
        try:
            return not self._open and self.visitor(credentials) is None
        except StoreUnavailable:
            return True

    def visitor(self, credentials: Credentials) -> Visitor | None:
        """Return who makes a request, None for a stranger; a token counts more than a cookie."""
        if not credentials.authorization:
            return self._logged_in(credentials) if credentials.cookie else None
        if len(credentials.authorization) > _MAX_HEADER:
            return None
        digest = _digest(credentials.authorization)
        if digest is None:
            return None
        return self._built_in.get(digest) or self._access_cache.visitor(digest)

    def _logged_in(self, credentials: Credentials) -> Visitor | None:
        header = credentials.cookie.encode("ascii", "replace").decode()  # others may hold all
        cookies = parse_cookie(header)
        names = SESSION_COOKIES[:1] if credentials.over_tls else SESSION_COOKIES
        text = next((cookies[name] for name in names if name in cookies), "")
        session = self._sessions.read(text)
        if session is None:
            return None
        if isinstance(session, Session):
            return self._access_cache.person(session)
        if session.visitor.token_id in self._built_in_ids:
            return session.visitor
        return self._access_cache.holder(session)


@lru_cache(maxsize=MAX_TOKENS)  # a phone sends the same header every time: half of the check
def _digest(authorization: str) -> str | None:
    scheme, _, secret = authorization.partition(" ")
    return tokens.digest(secret) if scheme.lower() == _SCHEME else None


def _built_in(settings: Config) -> dict[str, Visitor]:
    """Return who is known by the settings, not by the database, by the digests of their tokens."""
    visitors: dict[str, Visitor] = {}
    if settings.waymark_admin_token_sha256:
        first = Visitor("first administrator", "token", Role.ADMIN)
        visitors[settings.waymark_admin_token_sha256] = first
    if settings.page_token_file:
        secret = Path(settings.page_token_file).read_text("utf-8").strip()
        if not secret:
            raise ValueError(f"{settings.page_token_file}: holds no token")
        visitors[tokens.digest(secret)] = Visitor("monitoring service", "token", Role.READ)
    return {digest: one._replace(token_id=digest[:16]) for digest, one in visitors.items()}


def _same(text: str, expected: str) -> bool:
    return hmac.compare_digest(text.encode(), expected.encode())
