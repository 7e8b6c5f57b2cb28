"""A provider of OpenID Connect that lies on command; joserfc makes its tokens."""

import base64
import hmac
import json
import ssl
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID = "waymark"
SECRET = "the secret of the client, which both sides know"
Claims = dict[str, Any]


def unsigned(claims: Claims) -> str:
    """Return a token that nobody signed, which joserfc does not make."""
    return ".".join(map(_encoded, (json.dumps({"alg": "none"}), json.dumps(claims), "")))


def shared(claims: Claims, secret: bytes) -> str:
    """Return a token that is signed with what is no secret between two."""
    header = json.dumps({"alg": "HS256", "kid": "good"})
    text = f"{_encoded(header)}.{_encoded(json.dumps(claims))}"
    return f"{text}.{_encoded(hmac.digest(secret, text.encode(), 'sha256'))}"


def _encoded(part: str | bytes) -> str:
    raw = part.encode() if isinstance(part, str) else part
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


class FakeProvider:
    """Answers as a good one does, but for what a test changes."""

    def __init__(self, certificate: Path | None = None) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "good"})
        self.requests: list[tuple[str, dict[str, str], str]] = []  # path, form, Authorization
        self.nonce = ""
        self.subject = "248289761001"
        self.email = "anna@example.org"
        self.claims: Callable[[Claims], Claims] = lambda claims: claims
        self.sign: Callable[[Claims], str] = self.signed
        self.metadata: dict[str, Any] = {}
        self.userinfo: dict[str, Any] | None = None
        self.answer: Callable[[BaseHTTPRequestHandler], bool] = lambda _: False
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                fake._serve(self)

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        if certificate:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate, certificate.with_name("key.pem"))
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        scheme = "https" if certificate else "http"
        self.issuer = f"{scheme}://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.05])
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def signed(self, claims: Claims, key: RSAKey | None = None, kid: str = "good") -> str:
        return jwt.encode({"alg": "RS256", "kid": kid}, claims, key or self.key)

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        path, _, _ = handler.path.partition("?")
        length = int(handler.headers.get("Content-Length", 0))
        form = dict(parse_qsl(handler.rfile.read(length).decode()))
        self.requests.append((path, form, handler.headers.get("Authorization", "")))
        if self.answer(handler):
            return
        answers: dict[str, Callable[[], Any]] = {
            "/.well-known/openid-configuration": self._described,
            "/jwks": lambda: {"keys": [self.key.as_dict(private=False)]},
            "/token": self._token,
            "/userinfo": lambda: self.userinfo,
        }
        body = json.dumps(answers[path]()).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def _described(self) -> dict[str, Any]:
        described = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
        }
        if self.userinfo is not None:
            described["userinfo_endpoint"] = f"{self.issuer}/userinfo"
        return described | self.metadata

    def _token(self) -> dict[str, Any]:
        now = int(time.time())
        claims = self.claims(
            {
                "iss": self.issuer,
                "aud": CLIENT_ID,
                "sub": self.subject,
                "iat": now,
                "exp": now + 300,
                "nonce": self.nonce,
                "email": self.email,
                "email_verified": True,
            }
        )
        token = self.sign({name: value for name, value in claims.items() if value is not None})
        return {"access_token": "of no use", "token_type": "Bearer", "id_token": token}
