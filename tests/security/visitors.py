"""Everybody who comes: one of each role, and those whose credentials are good for nothing.

The one list of them: whatever is tried, is tried as each.
"""

import hashlib
import json
import secrets
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

import requests
from itsdangerous import TimestampSigner, URLSafeTimedSerializer
from pymongo.database import Database

from ingest.access.sessions import MAX_AGE_SECONDS, SALT
from ingest.access.tokens import generate
from ingest.rules.roles import Role
from ingest.storage.access.tokens import Token, Tokens
from scripts.processes.waiting import eventually
from tests.security.case import CREDENTIALS

COOKIE, TLS_COOKIE = "waymark_session", "__Host-waymark_session"
PASSWORD = "correct horse battery"
LEVEL, ELSEWHERE = "one level", "somebody-elsewhere"  # who is on another one
# By then all services refuse what was revoked, and know what is new.
REVOKED_SECONDS = 30
EXPIRES_SECONDS = 20
SESSION = "/api/v1/session"


class Visitor(NamedTuple):
    """Somebody who comes, and whom the stack must take them for."""

    name: str
    role: Role  # NOBODY: a stranger
    headers: Mapping[str, str] = {}
    query: str = ""
    proven: bool = True  # False: a cookie without the word that a write has to repeat
    level: str = ""  # the only one that they may see

    @property
    def lines(self) -> bytes | None:
        """Return what stands for CREDENTIALS in a case; None: it does not fit."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        padding = len(CREDENTIALS) - len(lines) - len("X-Nobody: ")
        if padding < 0 or self.query:
            return None
        return lines.encode("latin-1") + CREDENTIALS[: len(CREDENTIALS) - len(lines)]

    @property
    def secret(self) -> str:
        """Return what no answer may repeat."""
        text = self.headers.get("Authorization") or self.headers.get("Cookie") or self.query
        return max(text.replace("=", " ").split(), key=len, default="")


NOBODY = Visitor("nobody", Role.NOBODY)
# As whom the most is tried: one of each kind.
THOROUGH = {
    *("nobody", "admin", "ingest", "read", "keeper's cookie", "wall link"),
    *("revoked", "expired", "token: truncated"),
    *("cookie of an account that is gone", "cookie with a role of its own"),
}


class Stack(Protocol):
    """What they come to."""

    @property
    def urls(self) -> list[str]:
        """Return the addresses at which each has to be known."""

    @property
    def admin(self) -> str:
        """Return the secret that its operator has."""

    @property
    def session_key(self) -> str:
        """Return what only its operator knows."""

    @property
    def database(self) -> Database[dict[str, object]]:
        """Return what only its operator reaches."""


def everybody(stack: Stack) -> list[Visitor]:
    """Give each role its token, people their accounts; take from others what they had."""
    operator = Operator(stack)
    good = [
        bearer("admin", Role.ADMIN, stack.admin),
        bearer("ingest", Role.INGEST, operator.token(Role.INGEST)),
        bearer("read", Role.READ, operator.token(Role.READ)),
        operator.person("keeper", Role.ADMIN),
        operator.person("reader", Role.READ),
    ]
    keeper, reader = good[3:]
    wall = operator.token(Role.READ, level=LEVEL, expires_in_hours=1)
    good += [
        operator.wall("wall link", good[2].secret),
        operator.wall("wall link of a level", wall)._replace(level=LEVEL),
        bearer("token of a level", Role.READ, wall)._replace(level=LEVEL),
    ]
    cookie = {"Cookie": keeper.headers["Cookie"]}
    others = {"X-CSRF-Token": reader.headers["X-CSRF-Token"]}
    good += [
        keeper._replace(name="cookie without its word", headers=cookie, proven=False),
        keeper._replace(name="cookie, another's word", headers=cookie | others, proven=False),
        keeper._replace(
            name="cookie by its name over TLS",
            headers=dict(keeper.headers) | {"Cookie": cookie["Cookie"].replace(COOKIE, TLS_COOKIE)},
        ),
        good[2]._replace(
            name="a token counts more than a cookie",
            headers=dict(good[2].headers) | dict(keeper.headers),
        ),
    ]
    bad = [
        *operator.ended(),
        *_tokens(stack.admin),
        *_cookies(keeper, reader, stack.session_key),
        NOBODY._replace(name="says who it is", headers=_CLAIMS),
        NOBODY._replace(name="in the query", query=f"token={stack.admin}"),
        NOBODY._replace(name="in the query, as OAuth", query=f"access_token={stack.admin}"),
        bearer("made up, beside a good cookie", Role.NOBODY, generate(), keeper.headers),
    ]
    visitors = [NOBODY, *good, *bad]
    operator.wait(visitors)
    return visitors


_CLAIMS = {
    "X-Forwarded-User": "keeper",
    "Remote-User": "keeper",
    "X-Waymark-Role": "admin",
    "X-Forwarded-For": "127.0.0.1",
    "X-Original-URL": "/healthz",
    "X-HTTP-Method-Override": "GET",
}


def bearer(name: str, role: Role, secret: str, more: Mapping[str, str] | None = None) -> Visitor:
    """Return who sends a token."""
    return Visitor(name, role, {"Authorization": f"Bearer {secret}"} | dict(more or {}))


class Operator:
    """The administrator, who makes and ends what others come with."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._url = stack.urls[0]

    def ask(self, method: str, path: str, **body: object) -> requests.Response:
        headers = {"Authorization": f"Bearer {self._stack.admin}"}
        url = f"{self._url}/api/v1{path}"
        answer = requests.request(method, url, json=body, headers=headers, timeout=30)
        assert answer.ok, answer.text
        return answer

    def token(self, role: Role, **more: object) -> str:
        made = self.ask("POST", "/tokens", label=f"a {role.value}", role=role.value, **more)
        return str(made.json()["secret"])

    def wall(self, name: str, secret: str) -> Visitor:
        """Open a wall link: a session of its token."""
        return self._session(name, Role.READ, {"token": secret})

    def person(self, name: str, role: Role) -> Visitor:
        """Make an account, and log in: at any service, which may know it later."""
        self.ask("PUT", f"/accounts/{name}", role=role.value, password=PASSWORD)
        body = {"name": name, "password": PASSWORD}
        return self._session(f"{name}'s cookie", role, body)

    def _session(self, name: str, role: Role, body: Mapping[str, str]) -> Visitor:
        answer = requests.post(f"{self._url}{SESSION}", json=body, timeout=30)
        assert answer.ok, answer.text
        cookie = f"{COOKIE}={answer.cookies[COOKIE]}"
        headers = {"Cookie": cookie, "X-CSRF-Token": answer.json()["csrf_token"]}
        return Visitor(name, role, headers)

    def ended(self) -> Iterator[Visitor]:
        """Yield who had an administrator's rights."""
        made = self.ask("POST", "/tokens", label="revoked", role="admin").json()
        link = self.ask("POST", "/tokens", label="revoked link", role="read").json()
        opened = self.wall("wall link that was revoked", link["secret"])
        revoked = bearer("revoked", Role.NOBODY, made["secret"])
        now, secret = int(time.time()), generate()
        digest = hashlib.sha256(secret.encode()).hexdigest()
        ends = Token("0e0e0e0e", digest, "expires", Role.ADMIN, now, now + EXPIRES_SECONDS)
        Tokens(self._stack.database).add(ends)
        gone = self.person("gone", Role.ADMIN)
        left = self.person("left", Role.ADMIN)
        other = self.person("changed", Role.ADMIN)
        self._known([revoked, opened, gone, left, other])  # each was good
        self.ask("DELETE", f"/tokens/{made['id']}")
        self.ask("DELETE", f"/tokens/{link['id']}")
        self.ask("DELETE", "/accounts/gone")
        self.ask("PUT", "/accounts/changed", role="admin", password=PASSWORD[::-1])
        everywhere = f"{self._url}{SESSION}/everywhere"
        assert requests.post(everywhere, headers=left.headers, timeout=30).ok
        yield revoked
        yield opened._replace(role=Role.NOBODY)
        yield bearer("token of that link", Role.NOBODY, link["secret"])
        yield bearer("expired", Role.NOBODY, secret)
        yield gone._replace(name="cookie of an account that is gone", role=Role.NOBODY)
        yield left._replace(name="cookie, logged out everywhere", role=Role.NOBODY)
        yield other._replace(name="cookie before a new password", role=Role.NOBODY)

    def _known(self, visitors: list[Visitor]) -> None:
        for visitor in visitors:
            eventually(lambda asking=visitor: self._statuses(asking) == {200}, 60)  # type: ignore[misc]

    def _statuses(self, visitor: Visitor) -> set[int]:
        return {
            requests.get(f"{url}{SESSION}", headers=visitor.headers, timeout=30).status_code
            for url in self._stack.urls
        }

    def wait(self, visitors: list[Visitor]) -> None:
        """Wait until all are known, and nobody is any more who has ended: that is a promise."""
        time.sleep(REVOKED_SECONDS)
        self._known([visitor for visitor in visitors if visitor.role in (Role.READ, Role.ADMIN)])


def _tokens(admin: str) -> Iterator[Visitor]:
    """Yield what an attacker sends who saw the administrator's token, or part of it."""
    sent = {
        "made up": f"Bearer {generate()}",
        "truncated": f"Bearer {admin[:-1]}",
        "longer": f"Bearer {admin}A",
        "its digest": f"Bearer {hashlib.sha256(admin.encode()).hexdigest()}",
        "another scheme": f"Basic {admin}",
        "no scheme": admin,
        "two": f"Bearer {admin}, Bearer {admin}",
        "an operator": 'Bearer {"$ne": null}',
        "other case": f"Bearer {admin.swapcase()}",
        "latin": "Bearer \xff\xfe",
        "no secret": "Bearer ",
        "long": "Bearer " + "x" * 7000,
    }
    for name, value in sent.items():
        yield Visitor(f"token: {name}", Role.NOBODY, {"Authorization": value})


class _Past(TimestampSigner):
    """Signs as the services did long ago."""

    def get_timestamp(self) -> int:
        return super().get_timestamp() - MAX_AGE_SECONDS - 60


class _PastSerializer(URLSafeTimedSerializer):
    default_signer = _Past


def _cookies(keeper: Visitor, reader: Visitor, key: str) -> Iterator[Visitor]:
    """Yield forged cookies: made from two good ones, and with what is public of the signature."""
    signing = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
    good, smaller = (person.headers["Cookie"].partition("=")[2] for person in (keeper, reader))
    session = URLSafeTimedSerializer(key, SALT, signer_kwargs=signing).loads(good)
    name, _, epoch, csrf = session
    payload, when, signature = good.rsplit(".", 2)
    other_payload, other_when, other_signature = smaller.rsplit(".", 2)
    admins = URLSafeTimedSerializer("x", SALT).dump_payload([reader.name, "admin", epoch, csrf])

    def signed(with_key: str, salt: str = SALT, **kwargs: object) -> str:
        signer = URLSafeTimedSerializer(with_key, salt, signer_kwargs=signing | kwargs)
        return str(signer.dumps(session))

    forged = {
        "truncated": good[:-1],
        "without its signature": f"{payload}.{when}",
        "with an empty signature": f"{payload}.{when}.",
        "with another's signature": f"{payload}.{when}.{other_signature}",
        "with another's payload": f"{other_payload}.{when}.{signature}",
        "with a role of its own": f"{admins.decode()}.{other_when}.{other_signature}",
        "of another time": f"{payload}.{other_when}x.{signature}",
        "signed with no key": signed("."),
        "signed with the salt": signed(SALT),
        "signed with the name": signed(name),
        "signed for something else": signed(key, "waymark"),
        "signed with SHA-1": signed(key, digest_method=hashlib.sha1),
        "signed with another derivation": signed(key, key_derivation="concat"),
        "expired": str(_PastSerializer(key, SALT, signer_kwargs=signing).dumps(session)),
        "unsigned JSON": json.dumps(session).replace('"', ""),
        "of a JSON web token": "eyJhbGciOiJub25lIn0.eyJyb2xlIjoiYWRtaW4ifQ.",
        "an operator": '{"$ne":null}',
        "bytes": "\xff\x80" * 8,
        "deflated": "." + "A" * 60,
        "fixed": secrets.token_urlsafe(60),  # what somebody put there before a log-in
        "the administrator's digest": hashlib.sha256(key.encode()).hexdigest(),
    }
    more = {"X-CSRF-Token": csrf}
    for name, text in forged.items():
        yield Visitor(f"cookie {name}", Role.NOBODY, more | {"Cookie": f"{COOKIE}={text}"})
    twice = f"{COOKIE}={good[:-1]}; {COOKIE}={good}"
    yield Visitor("cookie behind a forged one", Role.NOBODY, more | {"Cookie": twice})
