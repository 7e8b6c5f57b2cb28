"""A stack that requires tokens, from its configuration to a token that is revoked."""

import re
import subprocess
from pathlib import Path

import pytest
import requests

from gateway.render import Config, check_exposure, render, template
from scripts.native.layout import Layout
from scripts.native.parts import listen
from scripts.processes.waiting import eventually
from tests.log_in import logged_in
from tests.metrics import samples
from tests.stack.conftest import Stack, kill_tree

pytestmark = pytest.mark.long

# A page, its data and program; what phones, HACS and the API's readers call; what tells secrets.
PATHS = [
    "/monitoring",
    "/monitoring/latest",
    "/monitoring/api/staff",
    "/monitoring/api/system",
    "/monitoring/static/screens/live.js",
    "/newbeacondetect?user_address=0&beacon_address=C2A628384B08&rssi=-20",
    "/extractbeacon?staff_id=0&start_time=0&end_time=4102444800",
    "/retrieveformonitoring",
    "/api/v1/staff",
    "/api/v1/openapi.json",
    "/docs",
    "/monitoring/metrics",
]
COUNTED, STORED = "waymark_gateway_requests_total", "waymark_stored_detections"


def configured(root: Path, file: Path, stack: Stack) -> str:
    """Run ./scripts/configure, and give the stack what it wrote; return the token that it told."""
    command = [f"{root}/scripts/configure", "--plain", "--publish", "127.0.0.1"]
    command += ["--file", str(file)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    stack.environment |= dict(line.split("=", 1) for line in file.read_text().splitlines())
    [secret] = re.findall(r"^  (wm_\S+)$", text, re.MULTILINE)
    assert secret not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    return str(secret)


@pytest.fixture
def guarded(root: Path, fresh: Stack, tmp_path: Path) -> tuple[Stack, str]:
    """Return a stack and its administrator's token."""
    admin = configured(root, tmp_path / "env", fresh)
    fresh.up("--demo")
    return fresh, admin


def test_nobody_publishes_without_tokens(fresh: Stack) -> None:
    fresh.environment["WAYMARK_PUBLISH"] = "0.0.0.0"  # it is not started
    done = fresh.script("up", "--detach", "--port", fresh.port)
    assert done.returncode == 1
    assert "(on 0.0.0.0)" in done.stderr
    assert done.stderr.strip().endswith("run ./scripts/configure")
    assert fresh.pids() == {}


def test_from_the_configuration_to_a_token_that_is_revoked(guarded: tuple[Stack, str]) -> None:
    stack, admin = guarded
    layout = Layout.saved(stack.data)
    assert layout

    def status(path: str, secret: str = "", port: int = stack.port) -> int:
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        url = f"http://127.0.0.1:{port}{path}"
        return requests.get(url, headers=headers, timeout=30).status_code

    # Whoever comes without a token gets nothing, at any port.
    of_services = [path for path in PATHS if not path.startswith("/monitoring")]
    for port in (stack.port, *layout.ingest_ports):
        for path in PATHS if port == stack.port else of_services:
            assert status(path, port=port) == 401, (path, port)
    for path in PATHS[:5]:
        assert status(path, port=layout.monitoring_port) == 401
    assert status("/_service/1/metrics") == 401
    for port in (*layout.ingest_ports, layout.monitoring_port):
        assert status("/metrics", port=port) == 401
    assert status("/healthz") == 200
    assert stack.script("status").returncode == 0  # health needs none

    # The administrator, with what `configure` told.
    assert status("/api/v1/session", admin) == 200
    assert status("/monitoring", admin) == 200

    # A phone's token.
    made = stack.script("token", "create", "--role", "ingest", "the phones")
    assert made.returncode == 0, made.stderr
    phone = made.stdout.strip()
    eventually(lambda: {status(PATHS[5], phone) for _ in range(4)} <= {200, 202}, 60)
    assert status("/api/v1/staff", phone) == 403
    listed = stack.script("token", "list").stdout
    assert "the phones" in listed
    assert phone not in listed
    assert phone not in made.stderr

    # A person, who logs in, and is nobody at once when the account is gone.
    done = stack.script("account", "create", "anna", "--role", "admin")
    assert done.returncode == 0, done.stderr
    url = f"http://127.0.0.1:{stack.port}"
    with logged_in(url, done.stdout) as anna:
        assert {anna.get(f"{url}{path}").status_code for path in PATHS[:5] * 2} == {200}
        assert anna.get(f"{url}/api/v1/accounts").json()["data"][0]["name"] == "anna"
        assert anna.put(f"{url}/api/v1/accounts/anna", json={"role": "read"}).status_code == 403
        assert stack.script("account", "remove", "anna").returncode == 1  # the last admin
        # The words of a command may come in any order.
        command = [f"{stack.root}/scripts/account", "create", "ben", "--role", "admin"]
        command += ["--data", str(stack.data)]
        subprocess.run(command, check=True, capture_output=True, env=stack.environment)
        assert stack.script("account", "remove", "anna").returncode == 0
        eventually(
            lambda: {anna.get(f"{url}/monitoring/latest").status_code for _ in "1234"} == {401}, 60
        )

    # The demo has made itself a token, and walks.
    headers = {"Authorization": f"Bearer {admin}"}

    def people() -> int:
        answer = requests.get(f"{url}/api/v1/now", headers=headers, timeout=30).json()
        return sum(len(level["staff"]) for level in answer.get("levels", []))

    eventually(lambda: people() >= 14, 60)
    assert "the demo" in stack.script("token", "list").stdout

    # All parts tell it in numbers, as Prometheus asks for them.
    def numbers(path: str) -> dict[str, float]:
        answer = requests.get(f"{url}{path}", headers=headers, timeout=30)
        return samples(answer.text) if answer.status_code == 200 else {}

    def whole() -> dict[str, float]:
        return numbers("/monitoring/metrics")

    eventually(lambda: whole().get(f'{COUNTED}{{kind="ingest",status="2xx"}}', 0) > 14, 60)
    eventually(lambda: whole().get(f'{STORED}{{shard="embedded",form="row"}}', 0) > 14, 90)
    for service in ("ingest-1", "ingest-2"):
        assert whole()[f'waymark_service_up{{service="{service}"}}'] == 1
    both = ("/_service/0/metrics", "/_service/1/metrics")
    heard = "waymark_people_heard"
    eventually(lambda: min(numbers(path).get(heard, 0) for path in both) >= 14, 60)

    # While the database is away, what was known holds.
    kill_tree(stack.pids()["mongod"])
    assert status(PATHS[5], phone) in (200, 202)
    assert status(PATHS[5]) == 401
    eventually(lambda: stack.script("status").returncode == 0, 120)

    # Revoked: at the latest 30 s later nobody takes it any more.
    token_id = re.findall(r"^(\S+)\s+ingest\s+the phones", listed, re.MULTILINE)[0]
    assert "revoked" in stack.script("token", "revoke", token_id).stdout
    eventually(lambda: {status(PATHS[5], phone) for _ in range(4)} == {401}, 60)
    assert stack.script("token", "revoke", "nobody's").returncode == 1
    assert "revoked" in stack.script("token", "list").stdout

    # Nothing that the stack wrote holds a secret, but the files of secrets themselves.
    for folder in ("log", "run", "spool"):
        for file in (stack.data / folder).rglob("*"):
            if file.is_file():
                text = file.read_bytes()
                assert admin.encode() not in text, file
                assert phone.encode() not in text, file


def test_what_configure_wrote_is_read_and_the_environment_counts_more(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text(
        "WAYMARK_ONE=1\nWAYMARK_TWO=$(id)\n# no\nPATH=/nowhere\nbad\n"
        "WAYMARK_THREE='a b'\nWAYMARK_FOUR=\"c=\n"
        "WAYMARK_FIVE= d#e  # why\r\nWAYMARK_SIX='f #g' # why\n"
        "WAYMARK_TWICE=open\nWAYMARK_TWICE=required\n"
        "WAYMARK_SEVEN="  # its last line has no end
    )
    names = (
        "$WAYMARK_ONE $WAYMARK_TWO $WAYMARK_THREE $WAYMARK_FOUR "
        "$WAYMARK_FIVE $WAYMARK_SIX $WAYMARK_TWICE ${WAYMARK_SEVEN-unset}"
    )
    script = f'. {root}/scripts/lib.sh; ROOT={tmp_path}; load_env; echo "{names}"'
    done = subprocess.run(
        ["bash", "-c", script],
        env={"PATH": "/usr/bin:/bin", "WAYMARK_ONE": "mine"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == 'mine $(id) a b "c= d#e f #g required \n'


def test_configured_again_there_is_a_new_token_and_all_else_stays(
    root: Path, fresh: Stack, tmp_path: Path
) -> None:
    file = tmp_path / "env"
    file.write_text("WAYMARK_PORT=80\nWAYMARK_LEGACY_ACCESS=open\nWAYMARK_ACCESS=open\n")
    first = configured(root, file, fresh)
    before = file.read_text()
    assert configured(root, file, fresh) != first
    lines = file.read_text().splitlines()
    assert lines[:2] == ["WAYMARK_PORT=80", "WAYMARK_LEGACY_ACCESS=open"]
    assert [line for line in lines if "=" in line] == lines
    assert len({line.split("=")[0] for line in lines}) == len(lines) == 5
    assert file.read_text() != before


def test_names_are_for_tls(root: Path, tmp_path: Path) -> None:
    def configure(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [f"{root}/scripts/configure", "--file", f"{tmp_path}/env", *arguments]
        return subprocess.run(command, check=False, capture_output=True, text=True)

    for wrong in ([], ["--plain", "a.example"], ["nodots"], ["a.example;id"], ["--tls"]):
        assert configure(*wrong).returncode == 1
        assert not (tmp_path / "env").exists()
    for names in (["a.example", "b.example"], ["c.example"]):
        assert configure(*names, "--email", "me@a.example").returncode == 0
        lines = (tmp_path / "env").read_text().splitlines()
        assert f"GATEWAY_TLS_NAMES={' '.join(names)}" in lines
        assert len(lines) == 11
    environment = dict(line.split("=", 1) for line in lines)
    front = Config.from_environment(environment)
    assert check_exposure(front) == []
    assert r"c\.example" in render(front, template(), certified=True)


@pytest.mark.parametrize(
    ("before", "words", "after"),
    [
        ("", ["a.example"], "acme"),
        ("backup", ["a.example"], "acme,backup"),
        ("acme, backup", ["--plain"], "backup"),
        ("'acme'", ["--plain"], None),
    ],
)
def test_configured_again_backups_go_on(
    root: Path, tmp_path: Path, before: str, words: list[str], after: str | None
) -> None:
    file = tmp_path / "env"
    file.write_text(f"COMPOSE_PROFILES={before}\n")
    command = [f"{root}/scripts/configure", "--file", str(file), *words]
    subprocess.run(command, check=True, capture_output=True)
    lines = dict(line.split("=", 1) for line in file.read_text().splitlines())
    assert lines.get("COMPOSE_PROFILES") == after


@pytest.mark.parametrize("address", ["2001:db8::7", "[2001:db8::7]"])
def test_an_address_of_ipv6_is_told_apart_from_its_port(
    root: Path, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [f"{root}/scripts/configure", "--file", f"{tmp_path}/env", "--publish", address]
    subprocess.run([*command, "a.example"], check=True, capture_output=True)
    lines = (tmp_path / "env").read_text().splitlines()
    assert "WAYMARK_PUBLISH=[2001:db8::7]" in lines
    assert "GATEWAY_LISTEN=[2001:db8::7]:80" in lines
    for publish in ("[2001:db8::7]", "2001:db8::7"):
        monkeypatch.setenv("WAYMARK_PUBLISH", publish)
        monkeypatch.delenv("GATEWAY_LISTEN", raising=False)
        assert listen(8080) == "127.0.0.1:8080 [2001:db8::7]:8080"
