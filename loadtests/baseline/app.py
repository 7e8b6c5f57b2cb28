"""The old application: each request asks the database for all it needs, in the original's shape.

MONGODB_URI=... gunicorn --bind 127.0.0.1:5001 'loadtests.baseline.app:create_app()'

gunicorn's defaults are the source's: one sync worker.
"""

import os
import time
from pathlib import Path
from typing import Any

from flask import Flask, Response, jsonify, request
from flask_cors import CORS
from pymongo import MongoClient

PAGE = Path(__file__).with_name("page.html").read_text()
MONITORING_SECONDS = 900
UNKNOWN = {"level": "unknown", "location": "unknown"}


def create_app(*, unoptimised: bool = False, indented: bool = False) -> Flask:
    """Return the application; `unoptimised` gives it the original's first query.

    `indented` has JSON printed as the source's Flask did: that takes it five times as long.
    """
    app = Flask(__name__)
    app.json.compact = not indented  # type: ignore[attr-defined]
    CORS(app)
    client: MongoClient[dict[str, Any]] = MongoClient(os.environ["MONGODB_URI"])
    database = client["ICT3102"]
    staff, beacons = database["staff"], database["beacons"]

    @app.route("/newbeacondetect", methods=["GET", "POST"])
    def new_beacon_detect() -> str:
        values = request.values
        mac = values["beacon_address"]
        beacon = beacons.find_one({"mac": mac}) or UNKNOWN
        detection = {
            "staff_id": int(values["user_address"]),
            "mac": mac,
            "rssi": int(values["rssi"]),
            "timestamp": int(time.time()),
            "level": beacon["level"],
            "location": beacon["location"],
        }
        staff.insert_one(detection)
        return "New Beacon Detection Added"

    @app.route("/api/v1/detections", methods=["POST"])
    def fill() -> str:
        """Not of the old application: stores what a plan wants there before it measures."""
        known = {beacon["mac"]: beacon for beacon in beacons.find()}
        detections = []
        for detection in request.json["detections"]:
            named = {name: detection[name] for name in ("staff_id", "mac", "rssi", "timestamp")}
            beacon = known.get(detection["mac"], UNKNOWN)
            place = {"level": beacon["level"], "location": beacon["location"]}
            detections.append(named | place)
        staff.insert_many(detections)
        return "stored"

    @app.route("/extractbeacon", methods=["GET", "POST"])
    def extract_beacon() -> Response:
        values = request.values
        start, end = int(values["start_time"]), int(values["end_time"])
        wanted: dict[str, Any] = {"staff_id": int(values["staff_id"])}
        fields = {"_id": 0, "level": 1, "location": 1, "timestamp": 1}
        if unoptimised:
            detections = list(staff.find(wanted).sort("timestamp", -1))
            kept = [d for d in detections if start <= d["timestamp"] <= end]
            return jsonify(location=[{name: d[name] for name in list(fields)[1:]} for d in kept])
        wanted["timestamp"] = {"$gte": start, "$lte": end}
        return jsonify(location=list(staff.find(wanted, fields).sort("timestamp", -1)))

    @app.route("/retrieveformonitoring", methods=["GET", "POST"])
    def retrieve_for_monitoring() -> Response:
        wanted = {"timestamp": {"$gte": int(time.time()) - MONITORING_SECONDS}}
        return jsonify(location=list(staff.find(wanted, {"_id": 0}).sort("timestamp", -1)))

    @app.route("/")
    @app.route("/monitoring")
    def monitoring() -> str:
        return PAGE

    @app.route("/healthz")
    def healthz() -> str:
        beacons.find_one()
        return "ok"

    return app
