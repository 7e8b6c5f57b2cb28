"""A real Prometheus asks a real stack: each panel and each rule finds the series that it names."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from common import metrics
from scripts.processes import ROOT
from scripts.processes.ports import free_port
from scripts.processes.process import Process
from scripts.processes.waiting import eventually
from tests.needs import need
from tests.stack.conftest import Stack
from tests.stack.test_access import configured

pytestmark = pytest.mark.long

FOLDER = ROOT / "deploy" / "observability"
BOARD = json.loads((FOLDER / "grafana" / "dashboards" / "waymark.json").read_text())
PANELS = [(panel, target) for panel in BOARD["panels"] for target in panel["targets"]]
RULES = [
    rule
    for group in yaml.safe_load((FOLDER / "rules.yml").read_text())["groups"]
    for rule in group["rules"]
]
# This stack has no limits, one member, and no TLS.
ABSENT = {metrics.MEMORY_LIMIT.name, metrics.REPLICATION_LAG.name, metrics.CERTIFICATE.name}
SELECTOR = re.compile(r"\b(?:waymark:?\w[\w:]*|up|ALERTS)\b(?:\{[^}]*\})?")
DAY_SECONDS = 86_400
SECONDS = 150  # what the database holds is read once a minute


class Prometheus:
    """Asks that stack each second, and lets no alert wait."""

    def __init__(self, stack: Stack, token: str, folder: Path) -> None:
        self._url = f"http://127.0.0.1:{free_port()}"
        self._began = time.time()
        self._folder = folder
        for name in ("prometheus.yml", "rules.yml", "targets.yml"):
            text = (FOLDER / name).read_text().replace("waymark.example:8080", stack.url[7:])
            text = re.sub(r"(?m)^ +for: .*\n", "", text)
            (folder / name).write_text(re.sub(r"_interval: \d+s", "_interval: 1s", text))
        (folder / "token").write_text(token)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run it."""
        command = ["prometheus", f"--config.file={self._folder}/prometheus.yml"]
        command += [f"--storage.tsdb.path={self._folder}/data"]
        command += [f"--web.listen-address={self._url[7:]}"]
        with Process("prometheus", command, self._folder / "log"):
            eventually(self._ready)
            yield

    def found(self, expression: str) -> list[dict[str, Any]]:
        """Return the series that an expression has had since the start."""
        span = {"start": self._began, "end": time.time(), "step": 1}
        series: list[dict[str, Any]] = self._ask("query_range", query=expression, **span)["result"]
        return series

    def rules(self) -> list[dict[str, Any]]:
        """Return all rules, as their last evaluation went."""
        return [rule for group in self._ask("rules")["groups"] for rule in group["rules"]]

    def _ready(self) -> bool:
        try:
            return requests.get(f"{self._url}/-/ready", timeout=30).ok
        except requests.ConnectionError:
            return False

    def _ask(self, path: str, **parameters: str | float) -> dict[str, Any]:
        answer = requests.get(f"{self._url}/api/v1/{path}", parameters, timeout=30)
        body = answer.json()
        assert body["status"] == "success", (parameters, body)
        data: dict[str, Any] = body["data"]
        return data


def parts_of(expression: str) -> list[str]:
    """Return an expression as if all its comparisons held, and each series that it names."""
    widened = re.sub(r" offset \w+", "", expression).replace(" unless ", " and ")
    widened = re.sub(r" (==|>=|<=|<|>) ", r" \1 bool ", widened)
    return [widened, *SELECTOR.findall(widened)]


def names_absent(expression: str) -> bool:
    return any(name in expression for name in ABSENT)


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of a short name: a data folder's path has a bound."""
    return tmp_path_factory.mktemp("p")


@pytest.fixture
def stack(root: Path, fresh: Stack, tmp_path: Path) -> Stack:
    """Return a stack with tokens, a backup, and enough of last week to foresee its disk."""
    need("prometheus")
    admin = configured(root, tmp_path / "env", fresh)
    fresh.up()
    fresh.session.headers["Authorization"] = f"Bearer {admin}"
    start = int(time.time()) - 4 * DAY_SECONDS
    for day in range(4):
        for staff_id in range(3):
            items = [
                {
                    "staff_id": staff_id,
                    "mac": "C2A628384B08",
                    "rssi": -20,
                    "timestamp": start + day * DAY_SECONDS + minute * 60,
                }
                for minute in range(1000)
            ]
            url = f"{fresh.url}/api/v1/detections"
            answer = fresh.session.post(url, json={"detections": items}, timeout=60)
            assert answer.status_code == 200, answer.text
    assert fresh.script("backup", "--scheduled", tmp_path / "shelf").returncode == 0
    return fresh


def test_each_panel_and_each_rule_finds_its_series(stack: Stack, tmp_path: Path) -> None:
    made = stack.script("token", "create", "--role", "read", "Prometheus")
    prometheus = Prometheus(stack, made.stdout.strip(), tmp_path)
    shown = {target["expr"] for _, target in PANELS if not names_absent(target["expr"])}
    parts = {
        part
        for expression in shown | {rule["expr"] for rule in RULES}
        for part in parts_of(expression)
    }
    parts = {part for part in parts if not names_absent(part)}

    def wait_for(sought: set[str]) -> None:
        lacking = set(sought)

        def all_found() -> bool:
            stack.detect(7)
            stack.get("/extractbeacon", staff_id=7, start_time=0, end_time=4102444800)
            lacking.difference_update([part for part in lacking if prometheus.found(part)])
            return not lacking

        try:
            eventually(all_found, SECONDS, pause_seconds=1)
        except TimeoutError:
            pytest.fail("\n".join(["no series:", *sorted(lacking)]))

    with prometheus.running():
        wait_for({part for part in parts if "ALERTS" not in part})
        stack.supervisorctl("stop", "mongod")
        wait_for({'ALERTS{alertname="WaymarkDatabaseAway",alertstate="firing"}'} | parts | shown)
        for panel, target in PANELS:
            check_drawn(panel, target, prometheus.found(target["expr"]))
        assert {(rule["name"], rule.get("lastError", "")) for rule in prometheus.rules()} == {
            (rule.get("alert") or rule["record"], "") for rule in RULES
        }


def check_drawn(panel: dict[str, Any], target: dict[str, Any], series: list[Any]) -> None:
    """Check that Grafana can name each series of a panel, and has a word for each state."""
    labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
    legends = [tuple(one["metric"].get(label) for label in sorted(labels)) for one in series]
    assert all(map(all, legends)), panel["title"]
    assert len(set(legends)) == len(series), f"{panel['title']}: two of one name"
    states = {
        state
        for mapping in panel["fieldConfig"]["defaults"].get("mappings", ())
        for state in mapping["options"]
    }
    values = {value for one in series for _, value in one["values"]}
    assert not states or values <= states, panel["title"]
