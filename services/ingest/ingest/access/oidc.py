"""Log-ins by OpenID Connect: what is remembered on the way, and who comes back.

Nothing is kept here between the two requests of a log-in, which may come to two services: it is
signed, and the browser keeps it.
"""

import logging
import math
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ingest.access.provider import Client, Provider, ProviderAway
from ingest.access.sessions import signed, signer
from ingest.config import Config
from ingest.errors import Busy, LogInRefused
from ingest.rules.accounts import account_name
from ingest.rules.openid import MAX_AGE_SECONDS, is_private, role_of
from ingest.rules.roles import Role

# All that is asked of the provider for one request; the gateway waits for 30 s.
ASK_SECONDS = 6.0
# How many requests may wait for the provider at once: most threads of the lane (web/lanes.py) are
# for others.
WAITING = 2
# What the provider says of itself is read again when it is so old.
METADATA_SECONDS = 3600.0
# While it is away it is asked so throttle, and the log says it as throttle.
PAUSE_SECONDS = 3.0
SALT = "waymark oidc"
EMAIL = "email"

log = logging.getLogger(__name__)


class Begun(NamedTuple):
    """A log-in that was begun: where to lead the browser, and what it keeps."""

    address: str
    kept: str


class Identity(NamedTuple):
    """Somebody for whom the provider vouches, and whom the settings let in."""

    name: str
    role: Role
    provider: str
    subject: str


class Oidc:
    """Log-ins by one provider. Raises LogInRefused, and Busy."""

    def __init__(self, config: Config) -> None:
        _check(config)
        secret_file = config.oidc_client_secret_file
        secret = Path(secret_file).read_text("utf-8").strip() if secret_file else ""
        self._client = Client(config.oidc_issuer, config.oidc_client_id, secret)
        self._claim = config.oidc_claim
        self._admins = config.oidc_admins.lower().split()
        self._readers = config.oidc_readers.lower().split()
        key = Path(config.session_key_file).read_text("utf-8").strip()
        self._signer = signer(key, SALT)
        self._places = threading.BoundedSemaphore(WAITING)
        self._metadata: dict[str, Any] = {}
        self._read_at = self._failed_at = -math.inf

    def begin(self, redirect_uri: str, page: str) -> Begun:
        """Return where somebody logs in who wants to go to a page."""
        with self._asking() as provider:
            begun = provider.create_authorization_url(redirect_uri, state=secrets.token_urlsafe(24))
        kept = {name: begun[name] for name in ("state", "nonce", "code_verifier")}
        kept |= {"redirect_uri": redirect_uri, "page": page}
        return Begun(begun["url"], str(self._signer.dumps(kept)))

    def expected(self, kept: str) -> dict[str, str] | None:
        """Return what a browser kept of a log-in that was begun here or at another service."""
        payload: dict[str, str] | None = signed(self._signer, kept, max_age=MAX_AGE_SECONDS)
        return payload

    def prove(self, parameters: dict[str, str], expected: dict[str, str]) -> Identity:
        """Return who comes back from the provider with these parameters."""
        if not secrets.compare_digest(
            parameters.get("state", "").encode(), expected["state"].encode()
        ):
            raise LogInRefused("expired")
        if "error" in parameters:
            raise LogInRefused("cancelled" if parameters["error"] == "access_denied" else "failed")
        email = self._claim == EMAIL
        wanted = (EMAIL, "email_verified") if email else (self._claim,)
        with self._asking() as provider:
            claims = provider.claims(parameters, expected, wanted)
        claim = claims.get(self._claim)
        # Some letters that are not ASCII become so in lower case.
        if not isinstance(claim, str) or not claim.isascii():
            raise LogInRefused("unnamed")
        if email and claims.get("email_verified") is not True:
            raise LogInRefused("unverified")
        name = account_name(claim)
        if name is None:
            raise LogInRefused("unnamed")
        role = role_of(name, self._admins, self._readers)
        if role is None:
            raise LogInRefused("stranger", name)
        return Identity(name, role, self._client.issuer, claims["sub"])

    @contextmanager
    def _asking(self) -> Iterator[Provider]:
        now = time.monotonic()
        if now - self._failed_at < PAUSE_SECONDS:
            raise LogInRefused("away")
        if not self._places.acquire(blocking=False):
            raise Busy
        fresh = now - self._read_at < METADATA_SECONDS
        try:
            provider = Provider(self._client, ASK_SECONDS, self._metadata if fresh else {})
            provider.load_server_metadata()
            if not fresh:
                self._metadata, self._read_at = dict(provider.server_metadata), time.monotonic()
                fresh = True  # what is wrong from here on is of one log-in
            yield provider
            self._metadata = provider.server_metadata
        except ProviderAway as error:
            self._failed_at = time.monotonic()
            log.warning("the provider does not answer: %.200r", error)
            raise LogInRefused("away") from error
        except Exception as error:  # of whatever kind: authlib found it wrong, or stumbled over it
            if not fresh:  # what it says of itself, to anybody who asks
                self._failed_at = time.monotonic()
            log.warning("the provider's answer is not good: %.200r", error)
            raise LogInRefused("failed") from error
        finally:
            self._places.release()


def _check(config: Config) -> None:
    if not is_private(config.oidc_issuer):
        raise ValueError("OIDC_ISSUER must be an https address, or of this machine")
    if not config.oidc_client_id or not config.session_key_file:
        raise ValueError("OIDC_ISSUER needs OIDC_CLIENT_ID and SESSION_KEY_FILE")
    if not config.oidc_admins and not config.oidc_readers:
        raise ValueError("OIDC_ISSUER needs OIDC_ADMINS or OIDC_READERS: else it lets nobody in")
