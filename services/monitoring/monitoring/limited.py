"""What of the page a visitor of one level, or one team, may see: nothing but what is named here."""

from flask import abort, g, jsonify, request

# The views that look at the limits themselves; and the screen.
VIEWS = {"static", "screens.home", "screens.show", "page_data.snapshot_of", "page_data.latest"}
SCREEN = "live"
# What they may read of the API, and by which parameters it tells of less. Places have no team.
PATHS = {"staff": ("level", "team"), "people": ("level", "team"), "beacons": ("level",)}


def limits() -> dict[str, str]:
    """Return the only level and team that this visitor may see, by the API's names; {}: all."""
    visitor = g.get("visitor")
    named = {"level": visitor.level, "team": visitor.team} if visitor else {}
    return {name: limit for name, limit in named.items() if limit is not None}


def check_view() -> None:
    """Refuse a view that does not look at the limits to visitors who have some."""
    check(allowed=request.endpoint in VIEWS)


def check(*, allowed: bool) -> None:
    """Refuse, in words, what is not for visitors who have limits."""
    known = limits()
    if known and not allowed:
        words = [f"level {known['level']}"] if "level" in known else []
        words += [f"the team {known['team']}"] if "team" in known else []
        response = jsonify(error=f"this link or token shows {' and '.join(words)} alone")
        response.status_code = 403
        abort(response)
