"""What is kept of a person is written, and forgotten, on a stack as a person starts it."""

import io
import json
import os
import shutil
import subprocess
import time
import zipfile
from pathlib import Path

import pytest

from common.erasures import FILE_NAME
from tests.stack.conftest import Stack, started

pytestmark = pytest.mark.long

API = "/api/v1/people"


def test_a_person_is_told_and_forgotten_with_what_the_audit_says(fresh: Stack) -> None:
    fresh.up()
    began = time.time()
    assert fresh.detect("jane-7").status_code == 200
    named = fresh.session.put(f"{fresh.url}{API}/jane-7", json={"name": "Jane"}, timeout=30)
    assert named.status_code == 200, named.text
    command = [f"{fresh.root}/scripts/person", "--data", str(fresh.data), "export", "jane-7"]
    told = subprocess.run(command, env=fresh.environment, capture_output=True, check=True).stdout
    with zipfile.ZipFile(io.BytesIO(told)) as archive:
        whole = json.loads(archive.read("person.json"))
    assert whole["person"]["name"] == "Jane"
    assert len(whole["detections"]) == len(whole["audit"]) == 1
    asked = fresh.script("person", "forget", "jane-7")
    assert (asked.returncode, "--yes" in asked.stderr) == (1, True)
    done = fresh.script("person", "forget", "jane-7", "--yes")
    assert done.returncode == 0, done.stderr
    assert "1 detections are deleted\n1 entries of the audit tell of nobody now\n" in done.stdout
    assert "the oplog has writes since" in done.stdout
    audit = fresh.get("/api/v1/audit").json()["data"]
    assert [(entry["what"], entry["of"]) for entry in audit] == [
        ("person forgotten", ""),
        ("person put", "forgotten"),
    ]
    assert "jane" not in json.dumps([entry | {"id": ""} for entry in audit]).lower()
    erasures = json.loads(fresh.script("person", "list").stdout)
    assert len(erasures["times"]) == 1
    again = fresh.script("person", "again", "--since", int(began))
    assert (again.returncode, "0 people are forgotten again" in again.stdout) == (0, True)
    assert fresh.detect("jane-7").status_code == 200  # she is back
    assert len(fresh.history("jane-7")) == 1


def test_whoever_was_forgotten_since_a_backup_is_forgotten_again_by_its_restore(
    fresh: Stack, root: Path, tmp_path: Path
) -> None:
    fresh.up()
    for staff_id in ("jane-7", "john-8"):
        assert fresh.detect(staff_id).status_code == 200
        address = f"{fresh.url}{API}/{staff_id}"
        assert fresh.session.put(address, json={"name": staff_id}, timeout=30).status_code == 200
    backed_up = fresh.script("backup", tmp_path / "backups")
    assert backed_up.returncode == 0, backed_up.stderr
    assert fresh.script("person", "forget", "jane-7", "--yes").returncode == 0
    with started(Stack(root, tmp_path / "second")) as second:
        copy = fresh.data / "spool" / FILE_NAME
        shutil.copy(copy, target := second.data / "spool" / FILE_NAME)
        os.chown(target, *(getattr(target.parent.stat(), name) for name in ("st_uid", "st_gid")))
        restored = second.script("restore", tmp_path / "backups")
        assert restored.returncode == 0, restored.stderr
        assert "1 people are forgotten again\n1 entries of the audit" in restored.stdout
        assert second.history("jane-7") == []
        assert len(second.history("john-8")) == 1
        people = second.get(API).json()["data"]
        assert [person["name"] for person in people] == ["john-8"]
        audit = second.get("/api/v1/audit").json()["data"]
        assert {entry["of"] for entry in audit} == {"forgotten", "john-8"}
