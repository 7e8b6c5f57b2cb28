"""What of the page is for who may see one level: deny by default."""

from flask import abort, g, jsonify, request

# The views that look at the level themselves; what they may read of the API; and the screen.
VIEWS = {"static", "screens.home", "screens.show", "page_data.snapshot_of", "page_data.latest"}
PATHS = {"staff", "beacons"}
SCREEN = "live"


def level() -> str | None:
    """Return the only level that this visitor may see; None: all of them."""
    visitor = g.get("visitor")
    return visitor.level if visitor else None


def check_view() -> None:
    """Refuse to who may see one level what does not look at that."""
    check(allowed=request.endpoint in VIEWS)


def check(*, allowed: bool) -> None:
    """Refuse to who may see one level, in words, what is not for them."""
    if level() is not None and not allowed:
        response = jsonify(error=f"this link or token shows level {level()} alone")
        response.status_code = 403
        abort(response)
