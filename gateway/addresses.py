"""What the files in nginx/ get from `common`, by the names that it has there."""

from common import routes
from common.browsers import ADDRESS, LOOKED_AT
from common.routes import BATCH_GROUP, HISTORY_GROUP, LONG_GROUP, POLLERS, ROUTES, Route


def values() -> dict[str, list[str]]:
    """Return the values of each name: a line for each."""
    own = (routes.HEALTHZ, routes.READYZ, routes.METRICS)
    asked = [route for route in ROUTES if route not in own]
    (batch,) = _in_group(BATCH_GROUP)
    files = [route for route in _in_group(LONG_GROUP) if route.body_bytes == routes.FILE_BODY_BYTES]
    led = [route.path for route in ROUTES if route.redirects]
    long = [route for route in _in_group(LONG_GROUP) if not route.redirects]
    history = [route for route in _in_group(HISTORY_GROUP) if route not in routes.LEGACY]
    return {
        "address": [ADDRESS],
        "looked_at": [LOOKED_AT],
        "legacy": list(routes.LEGACY_PATHS),
        "legacy_names": ["|".join(path.removeprefix("/") for path in routes.LEGACY_PATHS)],
        "detect": [routes.DETECT.path],
        "kept_on_5xx": [routes.OWNTRACKS.path],
        "extract": [routes.EXTRACT.path],
        "pollers": [route.path for route in _in_group(POLLERS)],
        "methods_at": [_key(route) for route in asked],
        "methods": [route.allowed for route in asked],
        "logged_at": [_key(route) for route in ROUTES],
        "logged_as": [route.logged_as for route in ROUTES],
        "batch": [batch.path],
        "metrics": [routes.METRICS.path],
        "file": [routes.pattern(files)],
        "docs": [routes.DOCS.path],
        "history": [routes.pattern(history)],
        "long": [routes.pattern(long)],
        "provider": [min(led, key=len)],
        "small_body": [_size(routes.SMALL_BODY_BYTES)],
        "batch_body": [_size(batch.body_bytes)],
        "file_body": [_size(routes.FILE_BODY_BYTES)],
    }


def _in_group(name: str) -> list[Route]:
    return [route for route in ROUTES if route.group == name]


def _key(route: Route) -> str:
    """Return the key of an address in a map."""
    return f'"~^{route.pattern}$"' if "<" in route.path else route.path


def _size(number: int) -> str:
    kibibytes = number // 1024
    return f"{kibibytes // 1024}m" if kibibytes % 1024 == 0 else f"{kibibytes}k"
