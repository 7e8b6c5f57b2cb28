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


def create_app(*, unoptimised: bool = False) -> Flask:
    """Return the application; `unoptimised` gives it the original's first query."""
    app = Flask(__name__)
    CORS(app)
    client: MongoClient[dict[str, Any]] = MongoClient(os.environ["MONGODB_URI"])
    database = client["ICT3102"]
    staff, beacons = database["staff"], database["beacons"]

    def located(staff_id: Any, mac: Any, rssi: Any, timestamp: Any = None) -> dict[str, Any]:
        beacon = beacons.find_one({"mac": mac}) or {"level": "unknown", "location": "unknown"}
        return {
            "staff_id": int(staff_id),
            "mac": mac,
            "rssi": int(rssi),
            "timestamp": int(timestamp or time.time()),
            "level": beacon["level"],
            "location": beacon["location"],
        }

    @app.route("/newbeacondetect", methods=["GET", "POST"])
    def new_beacon_detect() -> str:
        values = request.values
        staff.insert_one(located(values["user_address"], values["beacon_address"], values["rssi"]))
        return "New Beacon Detection Added"

    @app.route("/api/v1/detections", methods=["POST"])
    def fill() -> str:
        """Not of the old application: stores what a plan wants there before it measures."""
        names = ("staff_id", "mac", "rssi", "timestamp")
        staff.insert_many(
            [located(*map(detection.get, names)) for detection in request.json["detections"]]
        )
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

    @app.route("/monitoring")
    def monitoring() -> str:
        return PAGE

    @app.route("/healthz")
    def healthz() -> str:
        beacons.find_one()
        return "ok"

    return app
