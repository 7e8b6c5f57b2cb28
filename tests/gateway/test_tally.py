"""What the gateway counts of its requests, and who may read it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from common.metrics import GATEWAY, METRICS
from common.routes import KINDS
from gateway import tally
from gateway.certificate import Certificate
from gateway.render import Config
from gateway.request_log import NAME
from gateway.tally import FILE, Tally
from scripts.processes.waiting import eventually
from tests.gateway.conftest import Gateway
from tests.gateway.test_tls import certificate
from tests.metrics import complaints, samples
from tests.needs import need

LINE = (
    '{{"time":"2026-11-28T20:00:00+00:00","client":"{client}","method":"POST","path":"{path}",'
    '"status":"{status}","upstream_status":"503","cache":"","circuit":"{circuit}",'
    '"upstream":"127.0.0.1:5001","bytes":"2","seconds":"0.020","upstream_seconds":"9.000",'
    '"request_id":"x"}}\n'
)


def line(path: str, status: int = 200, circuit: str = "", client: str = "10.0.0.1") -> str:
    return LINE.format(path=path, status=status, circuit=circuit, client=client)


class Counted:
    """A tally of a log that the test writes."""

    def __init__(self, folder: Path) -> None:
        self.log, self._file = folder / NAME, folder / FILE
        self._file.unlink(missing_ok=True)
        self._tally = Tally(folder, folder, lambda: None)

    def write(self, text: str) -> None:
        with self.log.open("a") as log:
            log.write(text)

    def requests(self, kind: str, status: str = "2xx") -> float:
        self._tally.look()
        values = samples(self._file.read_text())
        return values[f'waymark_gateway_requests_total{{kind="{kind}",status="{status}"}}']

    def close(self) -> None:
        if self._tally._open:
            self._tally._open.close()

    def refused(self) -> list[float]:
        values = samples(self._file.read_text())
        reasons = (tally.OPEN, tally.BUSY, tally.CLIENT)
        return [values[f'waymark_gateway_refused_total{{reason="{one}"}}'] for one in reasons]


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[Counted]:
    (tmp_path / NAME).write_text(line("/newbeacondetect"))
    counted = Counted(tmp_path)
    yield counted
    counted.close()


def test_each_line_is_counted_once_whatever_happens_to_the_file(
    counted: Counted, tmp_path: Path
) -> None:
    assert counted.requests("ingest") == 0  # who ran before has counted it
    whole = line("/newbeacondetect")
    counted.write(whole + whole[:100])
    assert counted.requests("ingest") == 1
    counted.write(whole[100:])
    assert counted.requests("ingest") == 2
    counted.log.rename(tmp_path / f"{NAME}.0000000001")
    assert counted.requests("ingest") == 2
    with (tmp_path / f"{NAME}.0000000001").open("a") as rotated:
        rotated.write(whole)  # NGINX writes there until it opens it anew
    counted.write(whole * 3)
    assert counted.requests("ingest") == 6
    (tmp_path / f"{NAME}.0000000001").unlink()
    counted.write(whole * 30_000)  # 8 MB, in pieces
    assert counted.requests("ingest") == 30_006


def test_requests_are_counted_by_what_they_cost(counted: Counted) -> None:
    counted.write(line("/api/v1/staff/*/detections") + line("/monitoring/api/*") + line("/"))
    counted.write(line("?", 404) + line("/retrieveformonitoring", client="unix:"))
    counted.write(line("/newbeacondetect", 499) + line("/newbeacondetect").replace("200", "000"))
    assert [counted.requests(kind) for kind in ("history", "page", "pollers")] == [1, 2, 0]
    assert counted.requests("other", "4xx") == counted.requests("ingest", "4xx") == 1


def test_a_refusal_is_told_by_its_reason(counted: Counted) -> None:
    counted.write(line("/newbeacondetect", 503, "open") + line("/newbeacondetect", 503, "busy") * 2)
    counted.write(line("/newbeacondetect", 429) * 3 + line("/newbeacondetect", 503))
    counted.write(line("/monitoring/api/*", 200, "open"))  # the page tells what it knows
    assert counted.requests("ingest", "5xx") == 4
    assert counted.refused() == [1, 2, 3]


def test_nginx_counts_and_only_the_monitoring_service_may_read(
    make_gateway: Callable[..., Gateway],
) -> None:
    need("promtool")
    gateway = make_gateway().start()
    for _ in range(3):
        assert gateway.request("POST", "/newbeacondetect").status_code == 200
    assert gateway.request("GET", "/api/v1/staff/7/detections?x=1").status_code == 200
    assert gateway.request("GET", "/nothing").status_code == 404
    for upstream in gateway.ingest:
        upstream.close()
    assert gateway.request("GET", "/api/v1/now").status_code == 503

    def told() -> dict[str, float]:
        answer = gateway.request("GET", "/_metrics")
        return samples(answer.text) if answer.status_code == 200 else {}

    last = 'waymark_gateway_requests_total{kind="short_read",status="5xx"}'
    values = eventually(lambda: [values for values in [told()] if values.get(last) == 1])[0]
    assert values['waymark_gateway_requests_total{kind="ingest",status="2xx"}'] == 3
    assert values['waymark_gateway_requests_total{kind="history",status="2xx"}'] == 1
    assert values['waymark_gateway_requests_total{kind="other",status="4xx"}'] == 1
    assert values['waymark_gateway_refused_total{reason="open"}'] == 1
    assert 0 < values['waymark_gateway_request_seconds_sum{kind="ingest"}'] < 60
    text = gateway.request("GET", "/_metrics").text
    assert complaints(text) == ""
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    ours = {metric.name for metric in METRICS if metric.part == GATEWAY}
    assert ours - names == {"waymark_certificate_expiry_timestamp_seconds"}
    assert names < ours
    assert [line for line in gateway.logged() if "_metrics" in line["path"]] == []
    assert len(samples(text)) < 30 * (len(KINDS) + 1)


@pytest.mark.parametrize("monitoring", ["127.0.0.9:4000", "[::1]:4000"])
def test_nobody_else_may_read_it(make_gateway: Callable[..., Gateway], monitoring: str) -> None:
    gateway = make_gateway(monitoring=monitoring).start()
    answer = gateway.request("GET", "/_metrics")
    assert (answer.status_code, answer.json()["error"][:11]) == (403, "not for you")


def test_until_when_the_certificate_is_valid_is_told(tmp_path: Path) -> None:
    certificate(tmp_path)
    files = sorted(tmp_path.glob("*.pem"))
    (chain,) = [file for file in files if "CERTIFICATE" in file.read_text()]
    (key,) = [file for file in files if "PRIVATE" in file.read_text()]
    config = Config(tls_certificate=str(chain), tls_key=str(key), run=str(tmp_path))
    looked_at = Certificate(config)
    assert looked_at.expires_at is None
    assert looked_at.look()
    ends = looked_at.expires_at
    assert ends is not None
    assert ends > chain.stat().st_mtime + 86_400
    Tally(tmp_path, tmp_path, lambda: looked_at.expires_at).look()
    told = samples((tmp_path / FILE).read_text())
    assert told["waymark_certificate_expiry_timestamp_seconds"] == ends
    later = Certificate(config)  # it starts with what an earlier run took
    (tmp_path / "tls.pem").write_text(looked_at.look())
    later.look()
    assert later.expires_at == ends
