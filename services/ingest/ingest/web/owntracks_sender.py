"""Who sends an OwnTracks message, by what stands beside its body."""

from urllib.parse import parse_qsl

from ingest.access.visitor import Credentials
from ingest.rules import owntracks
from ingest.rules.owntracks import Sender
from ingest.web.request import Request


def sender(request: Request) -> Sender:
    """Return user and device: by the header, the query string, and the user of Basic auth."""
    query = _query(request.query)
    log_in = owntracks.log_in(request.header(b"authorization"))
    return Sender(
        users=(request.header(b"x-limit-u"), query.get("u", ""), log_in.user),
        devices=(request.header(b"x-limit-d"), query.get("d", "")),
    )


def credentials(authorization: str, query: bytes) -> Credentials:
    """Return the token: of a header as elsewhere, the password of Basic auth, or `?token=`.

    The last two count at this address alone, and a cookie does not.
    """
    secret = owntracks.log_in(authorization).password
    if not secret and (not authorization or _is_basic(authorization)):
        secret = _query(query).get("token", "")
    return Credentials(f"Bearer {secret}" if secret else authorization)


def _is_basic(authorization: str) -> bool:
    return authorization[:6].lower() == "basic "


def _query(query: bytes) -> dict[str, str]:
    """Return the parameters of a query string; the first of a repeated name wins."""
    return dict(reversed(parse_qsl(query.decode("latin-1"), errors="replace")))
