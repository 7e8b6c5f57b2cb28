"""The fields that several answers share, each with its meaning and bounds."""

from typing import Annotated

from msgspec import Meta, Struct

from common import beacon_id
from ingest.rules import request_parameters


class ResponseBody(Struct, forbid_unknown_fields=True, gc=False):
    """What is answered as JSON: an object with these fields, in this order, and no others."""


StaffNumber = Annotated[int, Meta(ge=0, le=request_parameters.MAX_EXACT)]
# Not as `Meta(pattern=...)`: msgspec would check it once more for each detection.
StaffText = Annotated[
    str, Meta(extra_json_schema={"pattern": f"^{request_parameters.STAFF_TEXT.pattern}$"})
]
STAFF_ID = (
    "Staff id. A canonical decimal up to 2^53-1 is a number, anything else a text: 7 and `7` in"
    " quotes are one person."
)
StaffId = Annotated[StaffNumber | StaffText, Meta(description=STAFF_ID)]
Mac = Annotated[
    str,
    Meta(
        description="Id of the beacon: a MAC as 12 upper-case hexadecimal digits, any other with"
        " its kind before it, as `ibeacon:<uuid>:<major>:<minor>`",
        pattern=f"^({beacon_id.STORED})$",
    ),
]
DetectionId = Annotated[
    str, Meta(description="The same in `/changes` and in histories", pattern="^[0-9a-f]{24}$")
]
Seconds = Annotated[int, Meta(description="Unix seconds", ge=0)]
Time = Annotated[
    str,
    Meta(description="The same time in ISO 8601, UTC", extra_json_schema={"format": "date-time"}),
]
Level = Annotated[
    str, Meta(description="Level, `unknown` for a beacon that is not in the directory")
]
Location = Annotated[
    str, Meta(description="Name of the spot, `unknown` for a beacon that is not in the directory")
]
_WEAKEST, _STRONGEST = request_parameters.RSSI_DBM
Dbm = Annotated[int, Meta(ge=_WEAKEST, le=_STRONGEST)]
Rssi = Annotated[Dbm | None, Meta(description="Signal strength in dBm, null where not known")]
# As phones send it.
GivenRssi = Annotated[
    Dbm
    | Annotated[float, Meta(extra_json_schema={"minimum": _WEAKEST, "maximum": _STRONGEST})]
    | Annotated[str, Meta(extra_json_schema={"pattern": f"^({request_parameters.RSSI_TEXT})?$"})]
    | None,
    Meta(description="Signal strength in dBm; null, 0, 127 or an empty text where not known"),
]
Metres = Annotated[float, Meta(description="Metres on the plan of the level")]
Known = Annotated[bool, Meta(description="Whether the beacon is in the directory")]
DamagedBlocks = Annotated[
    int,
    Meta(
        description="How many blocks of sealed detections cannot be read, and are left out here;"
        " `/system` names them",
        ge=0,
    ),
]
Complete = Annotated[
    bool,
    Meta(description="False while a shard does not answer: the people on it are missing here"),
]
