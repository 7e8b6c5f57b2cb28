"""Every setting of the monitoring service: one environment variable per field, in upper case."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields

from common import settings


@dataclass(frozen=True)
class Config:
    """Settings of the monitoring service; docs/configuration.md lists them with their meaning."""

    # Where detections are read from: through the gateway, so that its circuit protects them.
    gateway_url: str = "http://127.0.0.1:8080"
    # The gateway's address for people, where that is another: for the example on the page.
    public_url: str = ""
    # `required`: whoever sees the page needs a token or has logged in; `open`: nobody does.
    waymark_access: str = "open"
    # File with the token that this service reads with.
    page_token_file: str = ""
    # Provider of OpenID Connect: with one, people may log in there.
    oidc_issuer: str = ""
    # What the log-in page calls it.
    oidc_name: str = "your organisation"
    # Where the plans lie; with it Replay offers GPX.
    plan_origin: str = ""
    # The version of Waymark, which the image and ./scripts/up tell.
    waymark_version: str = "development"
    # Longest wait for the gateway before the page shows its last snapshot.
    gateway_timeout_seconds: int = 4
    # One read serves every open page for this long.
    snapshot_seconds: int = 2
    # Time between two checks of the ingest services, which the screen "System" shows.
    observe_seconds: int = 5
    # A location that nobody visited for this long is a gap in the coverage. Each visitor of the
    # page may choose another time.
    coverage_gap_minutes: int = 30
    # Who was not heard for this long has lost contact; the same holds for it.
    lost_contact_minutes: int = 15
    # File of the sites that the screen "Sites" shows (sites.py); without it there is none.
    sites_file: str = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Config":
        """Read the settings; ValueError names a variable that is not a whole number."""
        defaults = {field.name: field.default for field in fields(cls)}
        return cls(**settings.read(defaults, environment, {"waymark_access": settings.ACCESS}))
