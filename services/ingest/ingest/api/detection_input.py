"""What POST /detections takes, as the document has it and as msgspec reads it."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from ingest.api.fields import Rssi, StaffId
from ingest.rules.parameters import EVENT_ID

MAX_ITEMS = 1000
# 2020-01-01: what is older comes from a device that lost its clock.
EARLIEST = 1_577_836_800


class DetectionInput(Struct, gc=False):
    """One detection; fields of other names are ignored."""

    staff_id: StaffId
    mac: Annotated[str, Meta(description="MAC of the beacon, any case, with or without `:` or `-`")]
    rssi: Rssi
    timestamp: Annotated[
        int | float | str | UnsetType | None,
        Meta(
            description="When it was heard, by the device's clock: unix seconds, unix"
            " milliseconds or ISO 8601 with a time zone. From 2020 to 24 h ahead of ours. Without"
            " it, the time at which the request came in."
        ),
    ] = UNSET
    event_id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=128)] | UnsetType | None,
        Meta(
            description="Any text that names this detection, a UUID say; a repeat of the whole item"
            " is then stored once. Without it, a repeat of the request is a detection of its own.",
            extra_json_schema={"pattern": f"^{EVENT_ID.pattern}$"},  # `parameters` checks it
        ),
    ] = UNSET


class BatchInput(Struct):
    """Many detections."""

    detections: Annotated[list[DetectionInput], Meta(max_length=MAX_ITEMS)]
