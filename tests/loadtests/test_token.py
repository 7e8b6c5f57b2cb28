"""Load for a stack that wants tokens."""

import pytest

from loadtests.engine.client import KEEP_ALIVE, Api
from mongo.directory import parse
from scripts.demo.ambassadors import DIRECTORY, Ambassador
from tests.upstream import Upstream


@pytest.mark.parametrize(("token", "sent"), [("wm_a", "Bearer wm_a"), ("", None)])
def test_requests_have_the_token_of_the_environment(
    token: str, sent: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYMARK_TOKEN", token)
    upstream = Upstream()
    try:
        api = Api(upstream.url)
        assert api.send("/retrieveformonitoring", headers=KEEP_ALIVE).status == 200
        assert api.send("/api/v1/detections", b"{}", KEEP_ALIVE).status == 200
        api.close()
        beacons = parse(DIRECTORY.read_text("utf-8").splitlines())
        assert Ambassador(upstream.url, 1, beacons)._send({"user_address": 1})
        assert [headers.get("authorization") for _, _, headers, _ in upstream.requests] == [
            sent
        ] * 3
    finally:
        upstream.close()
