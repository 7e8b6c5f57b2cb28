"""Other sites, each a Waymark of its own: who is where at each of them, for one screen.

They are asked only while somebody looks, by threads of their own: a site that does not answer
keeps nobody waiting, and what it told last stays.
"""

import json
import logging
import re
import threading
import time
import tomllib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from flask import Blueprint, Response, abort, current_app

from monitoring.gateway import Gateway, GatewayResponse, GatewayUnavailable
from monitoring.page_data import MOST_PEOPLE

bp = Blueprint("sites", __name__)

MAX_SITES = 16
MAX_ASKING = 2  # sites at once: each holds an answer of at most 1 MiB for a moment
# What all of them told last, as it is sent, to all readers at once: some 3,000 people. Slow readers
# hold what was told before as well: both are within what answers may hold (patient_worker.py).
# Each site has its equal part, and of what the others do not use.
MAX_KEPT_BYTES = 3 * 256 * 1024
REFRESH_SECONDS = 5.0
OLD_SECONDS = 2 * REFRESH_SECONDS
NAMES_SECONDS = 60.0
FIRST_WAIT_SECONDS = 1.0  # of whoever looks after a pause
STAFF, NAMES = f"/api/v1/staff?limit={MOST_PEOPLE}", "/api/v1/people"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
FIELDS = {"url", "token_file"}
REFUSALS = {
    401: "it does not know the token",
    403: "the token may not read there",
    404: "there is no Waymark at its address",
}
_URL = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+/?")
_TOKEN = re.compile(r"[!-~]{1,512}")

log = logging.getLogger(__name__)


class Site(NamedTuple):
    """A Waymark: what people call it, its address, and the file with a token of the role `read`."""

    name: str
    url: str
    token_file: Path


def load(file: Path) -> list[Site]:
    """Read the sites of a TOML file, in its order. ValueError says which of them is wrong, and why.

    Each is a table of its name, with `url` and `token_file`, whose folder is the file's.
    """
    try:
        tables = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"SITES_FILE: {file}: {error}") from error
    if not 1 <= len(tables) <= MAX_SITES:
        raise ValueError(f"SITES_FILE: {file} has {len(tables)} sites, not 1 to {MAX_SITES}")
    return [_site(file, name, table) for name, table in tables.items()]


def _site(file: Path, name: str, table: Any) -> Site:
    where = f"SITES_FILE: {file}: [{name}]"
    if not name.strip() or not name.isprintable():
        raise ValueError(f"{where} is no name to show")
    if not isinstance(table, dict) or table.keys() != FIELDS:
        raise ValueError(f"{where} needs url and token_file, and nothing else")
    url, token_file = str(table["url"]), str(table["token_file"])
    if not _URL.fullmatch(url) or not _is_safe(url):
        raise ValueError(f"{where} url must be as https://north.example, not {url!r}")
    return Site(name, url.rstrip("/"), file.parent / token_file)


def _is_safe(url: str) -> bool:
    """Tell whether a token may go there: over TLS, or within this machine."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # a port that there is not, an address that is none
        return False
    return port != 0 and (parts.scheme == "https" or parts.hostname in LOOPBACK)


class Told(NamedTuple):
    """What a site told last, as it is sent, and what is wrong with it now."""

    text: bytes = b""  # its answers and their times, the beginning of an object
    read_at: float | None = None
    problem: str = ""
    failing_since: float | None = None

    def failed(self, problem: str, now: float) -> "Told":
        """Return the same, with what is wrong since now or earlier."""
        return self._replace(problem=problem, failing_since=self.failing_since or now)


class _Known:
    """A site, asked by one thread at a time."""

    def __init__(
        self,
        site: Site,
        timeout_seconds: float,
        has_room: Callable[["_Known", int], bool],
        clock: Callable[[], float],
    ) -> None:
        self.site = site
        self.told = Told()  # replaced as a whole: who reads it meanwhile has one or the other
        self.asked_at = float("-inf")
        self.asking: Future[None] | None = None
        self._timeout_seconds = timeout_seconds
        self._has_room = has_room
        self._clock = clock
        self._names: bytes | None = None
        self._names_at = float("-inf")

    def ask(self) -> None:
        """Read who is there, and now and then what they are called."""
        try:
            gateway = Gateway(self.site.url, self._timeout_seconds, self._token())
            staff = _read(gateway, STAFF)
            read_at = self._clock()
            self._read_names(gateway)
            self.told = Told(self._fitting(staff, read_at), read_at)
        except GatewayUnavailable as error:
            self.told = self.told.failed(str(error), self._clock())
        except Exception:
            log.exception("the site %s was not asked", self.site.name)
            problem = "it could not be asked, and the log of this service says why"
            self.told = self.told.failed(problem, self._clock())
        finally:
            self.asked_at = self._clock()

    def _token(self) -> str:
        """Read its token, which may be another by now. Raises GatewayUnavailable."""
        try:
            token = self.site.token_file.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise GatewayUnavailable("", f"its token cannot be read: {error}") from error
        if not _TOKEN.fullmatch(token):
            raise GatewayUnavailable("", f"there is no token in {self.site.token_file}")
        return token

    def _read_names(self, gateway: Gateway) -> None:
        if 0 <= self._clock() - self._names_at < NAMES_SECONDS:
            return
        self._names_at = self._clock()
        try:
            self._names = _read(gateway, NAMES).body
        except GatewayUnavailable as error:  # then ids are shown, or the names of before
            log.warning("the names of the site %s cannot be read: %s", self.site.name, error)

    def _fitting(self, staff: GatewayResponse, read_at: float) -> bytes:
        """Return the text, without names where there is no room for them.

        Raises GatewayUnavailable where there is none for the people.
        """
        for names in (self._names, None):
            # What is sent is longer still: so nothing is made of what is too long already.
            if self._has_room(self, len(staff.body) + len(names or b"")):
                text = self._text(staff, names, read_at)
                if self._has_room(self, len(text)):
                    return text
            self._names = None
        raise GatewayUnavailable("", "there are too many people at all sites for one page")

    def _text(self, staff: GatewayResponse, names: bytes | None, read_at: float) -> bytes:
        """Return what it told, with its answers as texts: no JSON of one site spoils another's."""
        known = {
            "name": self.site.name,
            "url": self.site.url,
            "has_more": staff.has_more,
            "read_at": read_at,
            "taken_at": staff.taken_at,
        }
        begun = json.dumps(known).removesuffix("}").encode("ascii")
        return b"".join(
            [begun, b', "staff": ', _quoted(staff.body), b', "people": ', _quoted(names)]
        )

    def pieces(self) -> tuple[bytes, bytes]:
        """Return its object in two pieces, of which the large one is the same for all readers."""
        told = self.told
        nothing: dict[str, Any] = {
            "staff": None,
            "people": None,
            "has_more": False,
            "read_at": None,
        }
        nothing |= {"name": self.site.name, "url": self.site.url, "taken_at": None}
        now = {"problem": told.problem, "failing_since": told.failing_since}
        begun = told.text or json.dumps(nothing).removesuffix("}").encode("ascii")
        return begun, b", " + json.dumps(now).removeprefix("{").encode("ascii")


def _quoted(body: bytes | None) -> bytes:
    """Return a text as JSON; null of None."""
    return json.dumps(None if body is None else body.decode("utf-8", "replace")).encode("ascii")


def _read(gateway: Gateway, path: str) -> GatewayResponse:
    answer = gateway.get(path)
    if answer.status != 200:
        refusal = REFUSALS.get(answer.status, f"it answered {answer.status}")
        raise GatewayUnavailable("", refusal)
    if b'"data"' not in answer.body:
        raise GatewayUnavailable("", "it told something else than who is there")
    return answer


class Sites:
    """Asks the sites, and keeps what they told."""

    def __init__(
        self,
        sites: Sequence[Site],
        timeout_seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.all = list(sites)
        self._clock = clock
        self._known = [_Known(site, timeout_seconds, self._has_room, clock) for site in sites]
        self._pool = ThreadPoolExecutor(MAX_ASKING, "site")  # it has no thread yet
        self._changing = threading.Lock()

    def pieces(self) -> list[bytes]:
        """Return what each site told last, as JSON, and have asked again who told it long ago."""
        with self._changing:
            old = [known for known in self._known if self._age(known) >= OLD_SECONDS]
            for known in self._known:
                self._have_asked(known)
            asking = [known.asking for known in old if known.asking]
        wait(asking, FIRST_WAIT_SECONDS)
        pieces: list[bytes] = []
        for known in self._known:
            pieces += (b"," if pieces else b'{"data":[', *known.pieces())
        return [*pieces, b"]}\n"]

    def _age(self, known: _Known) -> float:
        age = self._clock() - known.asked_at
        return age if age >= 0 else OLD_SECONDS  # the clock was set back

    def _has_room(self, asking: _Known, size: int) -> bool:
        """Tell whether so much of one leaves the others their parts."""
        part = MAX_KEPT_BYTES // len(self._known)
        others = [max(part, len(known.told.text)) for known in self._known if known is not asking]
        return size <= part or sum(others) + size <= MAX_KEPT_BYTES

    def _have_asked(self, known: _Known) -> None:
        is_asking = known.asking and not known.asking.done()
        if self._age(known) >= REFRESH_SECONDS and not is_asking:
            known.asking = self._pool.submit(known.ask)


def of_application() -> Sites:
    """Return those of this application."""
    return cast(Sites, current_app.extensions["sites"])


@bp.get("/monitoring/api/sites")
def tell() -> Response:
    """Answer with what is known of each site; 404 where the screen is not set up."""
    sites = of_application()
    if not sites.all:
        abort(404)
    response = Response(sites.pieces(), mimetype="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response
