"""What POST /detections answers: what became of each item."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from ingest.api.openapi.schema_fields import Known, Level, Location, Mac, ResponseBody
from ingest.recording.outcome import Outcome
from ingest.rules.request_parameters import RIGHT_SECONDS

# A request with items that are `unavailable` is a 503.
STATUSES = [str(outcome) for outcome in Outcome if outcome is not Outcome.UNAVAILABLE]
# What a dry run says instead of `stored` and `queued`.
WOULD_STORE, WOULD_QUEUE = "would store", "would queue"


Meant = Annotated[
    dict[str, str] | UnsetType,
    Meta(description="By the name of an ignored field, the known one that is near"),
]


class ItemError(ResponseBody):
    """A field of an item that is missing or bad."""

    field: Annotated[str, Meta(description="Field")]
    reason: Annotated[str, Meta(description="Why")]


Telemetry = Annotated[
    dict[str, float] | UnsetType,
    Meta(
        description="What else `raw` tells: battery, temperature and the like. Of a beacon in the"
        " directory it is kept: `/beacons/batteries`"
    ),
]


class HeardResult(ResponseBody):
    """A beacon of a scan."""

    beacon: Mac
    level: Level | None
    location: Location | None
    known: Known
    telemetry: Telemetry = UNSET


class DetectionResult(ResponseBody, kw_only=True):
    """What became of one item."""

    index: Annotated[int, Meta(description="Its place in the request", ge=0)]
    status: Annotated[
        str,
        Meta(
            description="`stored` durably; `duplicate`: it was stored before; `queued`: on this"
            " service's disk until the database is back; `rejected`: `errors` says why, do not"
            " repeat it. A dry run says `would store` and `would queue`",
            extra_json_schema={"enum": [*STATUSES, WOULD_STORE, WOULD_QUEUE]},
        ),
    ]
    mac: Mac | UnsetType = UNSET
    level: Level | UnsetType | None = UNSET
    location: Location | UnsetType | None = UNSET
    known: Known | UnsetType = UNSET
    skew_seconds: Annotated[
        int | UnsetType | None,
        Meta(description="Our clock at the arrival less the device's; null without `timestamp`"),
    ] = UNSET
    ignored: Annotated[list[str] | UnsetType, Meta(description="Fields that mean nothing here")] = (
        UNSET
    )
    did_you_mean: Meant = UNSET
    telemetry: Telemetry = UNSET
    heard: Annotated[
        list[HeardResult] | UnsetType,
        Meta(description="Of a scan: each of its beacons; what is wrong with others, `errors` say"),
    ] = UNSET
    errors: Annotated[
        tuple[ItemError, ...],
        Meta(description="What is wrong with it; the first fault where many items are bad"),
    ]


class UnconfirmedResult(DetectionResult, kw_only=True):
    """What became of one item of a request that was stored in part."""

    status: Annotated[
        str,
        Meta(
            description="As in a 200; `unavailable`: nothing is promised of this item",
            extra_json_schema={"enum": [str(outcome) for outcome in Outcome]},
        ),
    ]


class Counts(ResponseBody):
    """How many items have each status, in a dry run how many would have it."""

    stored: Annotated[int, Meta(description="How many")]
    duplicate: Annotated[int, Meta(description="How many")]
    queued: Annotated[int, Meta(description="How many")]
    rejected: Annotated[int, Meta(description="How many")]


class DetectionResults(ResponseBody):
    """What became of a request's items."""

    results: Annotated[
        Sequence[DetectionResult], Meta(description="One for each item, in their order")
    ]
    counts: Counts
    dry_run: Annotated[bool, Meta(description="Whether nothing was stored")]
    clock: Annotated[
        str | UnsetType,
        Meta(
            description="What `sent_at` says of the device's clock: `right` up to"
            f" {RIGHT_SECONDS} s, else `ahead` or `behind`",
            extra_json_schema={"enum": ["right", "ahead", "behind"]},
        ),
    ] = UNSET
    clock_skew_seconds: Annotated[
        int | UnsetType, Meta(description="Our clock at the arrival less `sent_at`")
    ] = UNSET
    did_you_mean: Meant = UNSET
