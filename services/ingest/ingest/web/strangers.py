"""What browsers may not ask at this port: it is the gateway's, which looks at names and origins.

A browser on this machine runs the pages of strangers (docs/configuration.md, "Names and origins").
"""

import re
from collections.abc import Mapping

from common.browsers import LOOKED_AT, OWN_HOST
from common.routes import HEALTHZ, LEGACY_PATHS, READYZ
from ingest.web.responses import of_json

OPEN_PATHS = {*LEGACY_PATHS, HEALTHZ.path, READYZ.path}
_GATEWAY = LOOKED_AT.lower().encode()
_HOST = re.compile(OWN_HOST.encode(), re.IGNORECASE)
_OUR_OWN = (b"same-origin", b"none")
REFUSAL = of_json(421, {"error": "this port is for the gateway: ask that"})


def is_refused(path: str, headers: Mapping[bytes, bytes]) -> bool:
    """Tell whether a request may come from the page of a stranger."""
    if path in OPEN_PATHS or _GATEWAY in headers:
        return False
    return (
        b"origin" in headers
        or headers.get(b"sec-fetch-site", b"none") not in _OUR_OWN
        or not _HOST.fullmatch(headers.get(b"host", b""))
    )
