"""A stack whose certificate comes by itself."""

import re
from pathlib import Path

import pytest
import requests
import urllib3

from scripts.processes.ports import free_port
from scripts.processes.waiting import eventually
from tests.gateway.authority import Authority
from tests.stack.conftest import Stack

pytestmark = pytest.mark.long


def test_a_certificate_comes_and_its_end_is_shown(fresh: Stack, tmp_path: Path) -> None:
    urllib3.disable_warnings()
    authority = Authority(tmp_path / "authority", fresh.port, life_seconds=3600)
    authority.start()
    secure = f"127.0.0.1:{free_port()}"
    fresh.environment |= {
        "GATEWAY_TLS_NAMES": "waymark.example",
        "GATEWAY_TLS_LISTEN": secure,
        "GATEWAY_INTERNAL_LISTEN": f"127.0.0.1:{free_port()}",
        "ACME_DIRECTORY": authority.directory,
        "ACME_CA_FILE": str(authority.ca_file),
        "ACME_RETRY_SECONDS": "1",
    }
    try:
        assert "acme " in fresh.up()
        shown = eventually(
            lambda: re.findall("certificate good until (.+)", fresh.script("status").stdout), 90
        )
        assert f"good until {shown[0]}\n" in (fresh.data / "log" / "acme.log").read_text()
        # The page's service has its plain way in, and the plain port leads to the other.
        address = f"{fresh.url}/monitoring/latest"
        answer = eventually(lambda: requests.get(address, verify=False, timeout=30))
        assert answer.status_code == 200
        assert answer.url == f"https://{secure}/monitoring/latest"
        assert fresh.down() == "stopped"
    finally:
        authority.stop()
