"""Other sites, each a Waymark of its own: who is where at each of them, for one screen.

They are asked only while somebody looks, by threads of their own: a site that does not answer
keeps nobody waiting, and what it told last stays.
"""

import json
import logging
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from flask import Blueprint, Response, abort, current_app

from monitoring.gateway import Gateway, GatewayResponse, GatewayUnavailable

bp = Blueprint("sites", __name__)

MAX_SITES = 16
MAX_ASKING = 2  # sites at once: each holds an answer of at most 1 MiB for a moment
# What all of them told last: some 5,000 people. This service has 48 MiB for everything.
MAX_KEPT_BYTES = 3 * 512 * 1024
REFRESH_SECONDS = 5.0
NAMES_SECONDS = 60.0
FIRST_WAIT_SECONDS = 1.0  # of whoever looks first, for sites that were not asked before
STAFF, NAMES = "/api/v1/staff?limit=4000", "/api/v1/people"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
FIELDS = {"url", "token_file"}
REFUSALS = {
    401: "it does not know the token",
    403: "the token may not read there",
    404: "there is no Waymark at its address",
}

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
    if not isinstance(table, dict) or table.keys() != FIELDS:
        raise ValueError(f"SITES_FILE: {file}: [{name}] needs url and token_file, and nothing else")
    url, token_file = str(table["url"]), str(table["token_file"])
    parts = urlsplit(url)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    if not is_safe or not parts.hostname or parts.username or parts.path not in ("", "/"):
        raise ValueError(
            f"SITES_FILE: {file}: [{name}] url must be as https://north.example, not {url}"
        )
    path = file.parent / token_file
    if not path.is_file():
        raise ValueError(f"SITES_FILE: {file}: [{name}] token_file: there is no file {path}")
    return Site(name, url.rstrip("/"), path)


class _Known:
    """What a site told last, and what is wrong with it now."""

    def __init__(
        self, site: Site, get: Callable[..., GatewayResponse], has_room: Callable[[int], bool]
    ) -> None:
        self.site = site
        self._has_room = has_room
        self.staff: GatewayResponse | None = None
        self.names: GatewayResponse | None = None
        self.read_at: float | None = None  # by our clock; `staff` has the site's
        self.problem = ""
        self.failing_since: float | None = None
        self.asked_at = float("-inf")
        self.asking: Future[None] | None = None
        self._get = get
        self._names_at = float("-inf")

    def ask(self, clock: Callable[[], float]) -> None:
        """Read who is there, and now and then what they are called."""
        try:
            self.staff = self._read(STAFF, self.staff)
            self.read_at = clock()
            self.problem, self.failing_since = "", None
            self._read_names(clock())
        except GatewayUnavailable as error:
            self.problem = str(error)
            self.failing_since = self.failing_since or clock()
        except Exception:
            log.exception("the site %s was not asked", self.site.name)
            self.problem = "it could not be asked, and the log of this service says why"
            self.failing_since = self.failing_since or clock()
        finally:
            self.asked_at = clock()

    def _read_names(self, now: float) -> None:
        if 0 <= now - self._names_at < NAMES_SECONDS:
            return
        self._names_at = now
        try:
            self.names = self._read(NAMES, self.names)
        except GatewayUnavailable as error:  # then ids are shown, or the names of before
            log.warning("the names of the site %s cannot be read: %s", self.site.name, error)

    def _read(self, path: str, before: GatewayResponse | None) -> GatewayResponse:
        answer = self._get(path, before)
        if answer.status != 200:
            refusal = REFUSALS.get(answer.status, f"it answered {answer.status}")
            raise GatewayUnavailable("", refusal)
        if not self._has_room(len(answer.body) - (len(before.body) if before else 0)):
            raise GatewayUnavailable("", "there are too many people at all sites for one page")
        return answer

    def kept_bytes(self) -> int:
        """Return how many bytes it keeps."""
        return sum(len(answer.body) for answer in (self.staff, self.names) if answer)

    def document(self) -> dict[str, Any]:
        """Return what is known, as `GET /monitoring/api/sites` tells it.

        What the site answered is a text within: what is no JSON spoils no other site's.
        """
        return {
            "name": self.site.name,
            "url": self.site.url,
            "staff": self.staff.body.decode("utf-8", "replace") if self.staff else None,
            "people": self.names.body.decode("utf-8", "replace") if self.names else None,
            "has_more": bool(self.staff and self.staff.has_more),
            "read_at": self.read_at if self.staff else None,
            "taken_at": self.staff.taken_at if self.staff else None,
            "problem": self.problem,
            "failing_since": self.failing_since,
        }


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
        self._known = [
            _Known(site, Gateway(site.url, timeout_seconds, _token(site)).get, self._has_room)
            for site in sites
        ]
        self._pool = ThreadPoolExecutor(MAX_ASKING, "site") if sites else None
        self._changing = threading.Lock()

    def documents(self) -> list[dict[str, Any]]:
        """Return what each site told last, and have asked again who told it long ago."""
        with self._changing:
            for known in self._known:
                self._have_asked(known)
            unread = [known.asking for known in self._known if known.asked_at == float("-inf")]
        wait([asking for asking in unread if asking], FIRST_WAIT_SECONDS)
        return [known.document() for known in self._known]

    def _has_room(self, more_bytes: int) -> bool:
        return sum(known.kept_bytes() for known in self._known) + more_bytes <= MAX_KEPT_BYTES

    def _have_asked(self, known: _Known) -> None:
        is_asking = known.asking and not known.asking.done()
        is_old = not 0 <= self._clock() - known.asked_at < REFRESH_SECONDS
        if self._pool and is_old and not is_asking:
            known.asking = self._pool.submit(known.ask, self._clock)


def _token(site: Site) -> str:
    return site.token_file.read_text("utf-8").strip()


def of_application() -> Sites:
    """Return those of this application."""
    return cast(Sites, current_app.extensions["sites"])


@bp.get("/monitoring/api/sites")
def tell() -> Response:
    """Answer with what is known of each site; 404 where the screen is not set up."""
    sites = of_application()
    if not sites.all:
        abort(404)
    response = Response(_pieces(sites.documents()), mimetype="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response


def _pieces(documents: list[dict[str, Any]]) -> Iterator[str]:
    """Yield an answer's text site by site: as a whole, it would be there several times."""
    before = '{"data":['
    for document in documents:
        yield before + json.dumps(document, ensure_ascii=False)
        before = ","
    yield "]}\n"
