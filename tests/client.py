"""A client of the endpoints that phones and HACS call, at one address."""

from typing import Any

import requests

from scripts.processes.waiting import eventually


class Client:
    """Calls the legacy endpoints."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session = requests.Session()
        self.session.trust_env = False

    def get(self, path: str, **parameters: object) -> requests.Response:
        return self.session.get(f"{self.url}{path}", params=parameters, timeout=30)  # type: ignore[arg-type]

    def detect(self, staff_id: object, **more: object) -> requests.Response:
        body = {"user_address": staff_id, "beacon_address": "C2A628384B08", "rssi": -20}
        url = f"{self.url}/newbeacondetect"
        return self.session.post(url, json=body | more, timeout=30)

    def read(self, path: str, seconds: float = 120, **parameters: object) -> requests.Response:
        """Return a 200. A 503 is repeated for so long, as clients repeat it on a busy machine."""
        answer = self.get(path, **parameters)

        def available() -> bool:
            nonlocal answer
            if answer.status_code == 503:
                answer = self.get(path, **parameters)
            return answer.status_code != 503

        eventually(available, seconds)
        assert answer.status_code == 200, answer.text
        return answer

    def history(self, staff_id: object) -> list[dict[str, Any]]:
        answer = self.read("/extractbeacon", staff_id=staff_id, start_time=0, end_time=4102444800)
        rows: list[dict[str, Any]] = answer.json()["location"]
        return rows
