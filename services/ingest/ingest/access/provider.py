"""The provider of OpenID Connect, as authlib speaks with it: imported only where one is set.

Importing this takes some MiB (docs/access.md), so nothing imports it at its top.
"""

import json
import ssl
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from socket import SHUT_RDWR, create_connection, socket
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from authlib.integrations.base_client import BaseApp, OAuth2Mixin, OpenIDMixin
from authlib.oauth2 import OAuth2Client

from ingest.rules.openid import is_private

MAX_ANSWER_BYTES = 256 * 1024
CONNECT_SECONDS = 2.0  # for each address that its name has
# What its owner must not have told anybody but the provider: no shared secrets, and never "none".
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
_LEEWAY_SECONDS = 60
_METADATA = (
    "issuer",
    "authorization_endpoint",
    "token_endpoint",
    "userinfo_endpoint",
    "jwks_uri",
    "authorization_response_iss_parameter_supported",
)
_DISCOVERY = "/.well-known/openid-configuration"


class ProviderAway(Exception):
    """The provider did not answer in time."""


class BadAnswer(Exception):
    """What came from the provider proves nothing."""


class Client(NamedTuple):
    """What we are to the provider."""

    issuer: str
    client_id: str
    secret: str  # empty: a public client


class Provider(OAuth2Mixin, OpenIDMixin, BaseApp):  # type: ignore[misc]  # without types
    """One exchange with the provider, which ends in so many seconds once its name is resolved."""

    def __init__(self, client: Client, seconds: float, metadata: Mapping[str, Any]) -> None:
        self._issuer = client.issuer
        self.client_cls = _Http
        super().__init__(
            framework=None,
            client_id=client.client_id,
            client_secret=client.secret or None,
            server_metadata_url=client.issuer.rstrip("/") + _DISCOVERY,
            client_kwargs={
                "until": time.monotonic() + seconds,
                "scope": "openid email profile",
                "code_challenge_method": "S256",
            },
            **metadata,
        )

    def load_server_metadata(self) -> dict[str, Any]:
        """Return what the provider says of itself, as far as it is used and believed."""
        known: dict[str, Any] = self.server_metadata
        if "issuer" in known:
            return known
        with self._get_session() as session:
            answer = session.request("GET", self._server_metadata_url, withhold_token=True)
            answer.raise_for_status()
            document = answer.json()
        if document["issuer"] != self._issuer:
            raise BadAnswer(f"it calls itself {document['issuer']!r}, OIDC_ISSUER {self._issuer!r}")
        supported = document.get("id_token_signing_alg_values_supported", ["RS256"])
        algorithms = [name for name in ALGORITHMS if name in supported]
        if not algorithms:  # joserfc would take that for no limit
            raise BadAnswer(f"it signs with none of {', '.join(ALGORITHMS)}")
        methods = document.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if self.client_secret and "client_secret_basic" not in methods:
            known["token_endpoint_auth_method"] = "client_secret_post"  # noqa: S105
        known |= {name: document[name] for name in _METADATA if name in document}
        known["id_token_signing_alg_values_supported"] = algorithms
        return known

    def claims(
        self, parameters: Mapping[str, str], expected: Mapping[str, str], wanted: Iterable[str]
    ) -> dict[str, Any]:
        """Return what the provider says of who was led back to us with a code.

        Raises ProviderAway; whatever else it raises is the provider's, or a forger's, fault.
        """
        if "code" not in parameters:
            raise BadAnswer("there is no code")
        metadata = self.load_server_metadata()
        issuer = parameters.get("iss", "")
        if issuer != self._issuer and (
            issuer or metadata.get("authorization_response_iss_parameter_supported")
        ):
            raise BadAnswer("another provider led back to us")
        token = self.fetch_access_token(
            expected["redirect_uri"],
            authorization_response=f"?{urlencode(parameters)}",
            state=expected["state"],
            code_verifier=expected["code_verifier"],
        )
        one_of = {
            "iss": {"essential": True, "value": self._issuer},
            "aud": {"essential": True, "value": self.client_id},
        }
        id_token = self.parse_id_token(
            token, expected["nonce"], claims_options=one_of, leeway=_LEEWAY_SECONDS
        )
        if id_token is None or not isinstance(id_token["sub"], str):
            raise BadAnswer("there is no ID token")
        if id_token.keys() >= set(wanted) or not metadata.get("userinfo_endpoint"):
            return dict(id_token)
        more = self.userinfo(token=token)
        if more["sub"] != id_token["sub"]:
            raise BadAnswer("the user info is of another person")
        for name in wanted:
            if more.get(name) != id_token.get(name, more.get(name)):
                raise BadAnswer(f"the user info has another {name}")
        return dict(more) | dict(id_token)


class _Answer(NamedTuple):
    status_code: int
    body: bytes

    def raise_for_status(self) -> None:
        if self.status_code >= 500:
            raise ProviderAway(f"status {self.status_code}")
        if self.status_code >= 300:  # redirects too: a provider says where its addresses are
            raise BadAnswer(f"status {self.status_code}")

    def json(self) -> Any:
        return json.loads(self.body)


class _Http(OAuth2Client):  # type: ignore[misc]  # without types
    """Authlib's client over the standard library: a quarter of the memory of `requests`."""

    def __init__(self, until: float, **settings: Any) -> None:
        super().__init__(session=self, **settings)
        self._until = until
        self.headers: dict[str, str] = {}

    def __enter__(self) -> "_Http":
        return self

    def __exit__(self, *_: object) -> None:
        del self.token_auth  # like the session it leads back to us: garbage, collected late
        self.session = None

    def post(self, url: str, **more: Any) -> _Answer:
        return self.request("POST", url, **more)

    def request(
        self,
        method: str,
        url: str,
        *,
        withhold_token: bool = False,
        auth: Any = None,
        data: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> _Answer:
        sent = self.headers | {"Accept": "application/json", "Connection": "close"}
        sent |= headers or {}
        body = urlencode(data or {})
        if auth:
            url, sent, body = auth.prepare(method, url, sent, body)
        elif not withhold_token:
            url, sent, body = self.token_auth.prepare(url, sent, body)
        return _exchange(method, url, sent, body, self._until)


def _exchange(
    method: str, url: str, headers: Mapping[str, str], body: str, until: float
) -> _Answer:
    """Ask, and hang up when time is over: what drips passes every time limit of a socket."""
    if not is_private(url):
        raise BadAnswer("it names an address that is not asked without TLS")
    parts = urlsplit(url)
    host, tls = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if tls else 80)
    try:
        connect_seconds = min(_left(until), CONNECT_SECONDS)
        with create_connection((host, port), connect_seconds) as raw, raw.dup() as same:
            raw.settimeout(_left(until))
            hang_up = threading.Timer(_left(until), _shut, [same])
            hang_up.start()
            try:
                speaking = (
                    HTTPSConnection(host, port, context=_tls())
                    if tls
                    else HTTPConnection(host, port)
                )
                speaking.sock = _tls().wrap_socket(raw, server_hostname=host) if tls else raw
                with closing(speaking):
                    target = f"{parts.path or '/'}?{parts.query}".removesuffix("?")
                    speaking.request(method, target, body or None, dict(headers))
                    answer = speaking.getresponse()
                    text = answer.read(MAX_ANSWER_BYTES + 1)
            finally:
                hang_up.cancel()
        _left(until)
    except (OSError, HTTPException) as error:
        raise ProviderAway(f"{host}: {error!r}") from error
    if len(text) > MAX_ANSWER_BYTES:
        raise BadAnswer("its answer is too long")
    return _Answer(answer.status, text)


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("the time is over")
    return left


def _shut(connection: socket) -> None:
    with suppress(OSError):
        connection.shutdown(SHUT_RDWR)


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
