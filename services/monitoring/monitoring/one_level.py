"""What of the page a visitor of one level may see: nothing but what is named here."""

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
    """Refuse a view that does not look at the level to visitors who may see one level."""
    check(allowed=request.endpoint in VIEWS)


def check(*, allowed: bool) -> None:
    """Refuse, in words, what is not for visitors who may see one level."""
    if level() is not None and not allowed:
        response = jsonify(error=f"this link or token shows level {level()} alone")
        response.status_code = 403
        abort(response)
