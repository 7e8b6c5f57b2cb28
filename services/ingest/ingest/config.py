"""Every setting of the ingest service: one environment variable per field, in upper case."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields

from common import settings
from common.settings import ACCESS, ON, OPEN, REQUIRED, SWITCH

__all__ = ["ACCESS", "ON", "OPEN", "REQUIRED", "Config"]

_WORDS = {"waymark_access": ACCESS, "waymark_legacy_access": ACCESS, "waymark_owntracks": SWITCH}
# What is younger may be asked for by a name without a time (`detection_identity.py`), or is told by
# those who look at rows alone: who is there now, and how many came in a minute.
MIN_SEAL_HOURS = 14


@dataclass(frozen=True)
class Config:
    """Settings of one ingest service; docs/configuration.md lists them with their meaning."""

    # Where detections are stored: a mongod replica set, or this service's own mongos.
    mongodb_uri: str = "mongodb://127.0.0.1:27117/?replicaSet=embedded"
    # Who the service is there; empty for a database without authentication.
    mongodb_user: str = ""
    # File with that user's password: a file can be kept from others, an environment cannot.
    mongodb_password_file: str = ""
    # One operation with its server selection and all its retries, or all that a group of detections
    # needs. Stays below the gateway's 2.5 s read timeout: the client gets this service's answer.
    mongodb_timeout_ms: int = 2000
    # Age at which the cached directory of beacons is read again.
    directory_refresh_seconds: int = 30
    # When the latest position changes level (docs/configuration.md, "Levels"): heard so often in a
    # row, ...
    level_hits: int = 3
    # ... within this time, ...
    level_window_seconds: int = 30
    # ... or this much stronger, ...
    level_margin_db: int = 10
    # ... or the old level not heard for longer than this. LEVEL_HITS=1: at once.
    level_silence_seconds: int = 20
    # Where detections wait while the database is away; each service needs a file of its own.
    spool_file: str = "/var/lib/waymark/spool.db"
    # How many may wait there (about 300 bytes each); then phones have to keep theirs.
    spool_max_detections: int = 200_000
    # Detections that are older than so many days are told no more, and deleted; 0: all are kept.
    retention_days: int = 0
    # Detections that are older than so many hours go into blocks of some bytes each; 0: none do.
    seal_hours: int = 48
    # `required`: every address needs a token with the right role; `open`: none does.
    waymark_access: str = "open"
    # The same for the three legacy endpoints alone.
    waymark_legacy_access: str = "required"
    # `on`: iPhones with OwnTracks may post at /owntracks; `off`: there is no such address.
    waymark_owntracks: str = "off"
    # SHA-256 of the first administrator's token, in hexadecimal (scripts/configure).
    waymark_admin_token_sha256: str = ""
    # File with the token that the monitoring service reads with.
    page_token_file: str = ""
    # File with the key that signs people's sessions; empty: nobody can log in.
    session_key_file: str = ""
    # OpenID Connect: the provider's address, https or of this machine; empty: passwords alone.
    oidc_issuer: str = ""
    # What the provider calls us.
    oidc_client_id: str = ""
    # File with what proves that to it; empty: we are a public client.
    oidc_client_secret_file: str = ""
    # Whom it lets in as admins: names or `*@example.org`, separated by spaces.
    oidc_admins: str = ""
    # And who may read.
    oidc_readers: str = ""
    # The claim with people's names; of `email` only a verified one counts.
    oidc_claim: str = "email"
    # Where the plans lie: latitude and longitude of x = 0, y = 0, and the bearing of their top, in
    # degrees with blanks between; empty: no histories as GPX.
    plan_origin: str = ""
    # File in which backups tell of the last one; empty: nobody tells.
    backup_report: str = ""
    # The version of Waymark, which the image and ./scripts/up tell.
    waymark_version: str = "development"
    # What the page, the warnings and the metrics call this service; empty: after its spool, whose
    # name is alike on hosts that share none.
    ingest_name: str = ""
    # Where the service listens.
    ingest_bind: str = "127.0.0.1:5001"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Config":
        """Read the settings; ValueError names a variable that is wrong, and says why."""
        defaults = {field.name: field.default for field in fields(cls)}
        values = settings.read(defaults, environment, _WORDS)
        if 0 < (hours := values.get("seal_hours", 0)) < MIN_SEAL_HOURS:
            raise ValueError(f"SEAL_HOURS must be 0, or at least {MIN_SEAL_HOURS}, not {hours}")
        return cls(**values)
