"""The answers while no ingest service can answer."""

import pytest
from flask.testing import FlaskClient


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/newbeacondetect", "GET"),
        ("/newbeacondetect", "POST"),
        ("/extractbeacon", "GET"),
        ("/extractbeacon", "POST"),
        ("/retrieveformonitoring", "GET"),
        ("/retrieveformonitoring", "POST"),
        ("/owntracks", "GET"),
        ("/owntracks", "POST"),
        ("/api/v1/staff", "GET"),  # the gateway asks with GET, whatever it was asked with
    ],
)
def test_the_fallback_is_no_success(client: FlaskClient, path: str, method: str) -> None:
    answer = client.open(path, method=method)
    assert answer.status_code == 503
    assert answer.text == '{"data": "Flask servers circuit breaker open."}'
    assert answer.content_type == "application/json"
    assert answer.headers["X-Circuit-State"] == "open"
    assert answer.headers["Retry-After"] == "5"
    origins = [] if path.startswith(("/api/", "/owntracks")) else ["*"]
    assert answer.headers.getlist("Access-Control-Allow-Origin") == origins
