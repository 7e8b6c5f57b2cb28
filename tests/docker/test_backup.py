"""The Docker stack is backed up while phones send, lost with all its volumes, and restored."""

from pathlib import Path

from scripts.processes.waiting import eventually
from tests.docker.conftest import Stack
from tests.phones import Phones, through

HEAL_SECONDS = 180.0
WHO = "backup"


def test_what_was_acknowledged_is_restored(stack: Stack, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)  # another user's writes there
    stack.docker.environment["WAYMARK_BACKUP_FOLDER"] = str(tmp_path)
    run = ("run", "--rm", "--no-TTY")

    def stored() -> int:
        return len(stack.history(WHO))

    with Phones(through(stack.url), [WHO], rest_seconds=0.05) as phones:
        phones.wait_for(200, 20, HEAL_SECONDS)
    sent = phones.acknowledged[WHO]
    eventually(lambda: stored() == sent, HEAL_SECONDS)
    with Phones(through(stack.url), [WHO], rest_seconds=0.05) as phones:
        assert "is whole" in stack.compose(*run, "backup", "--keep", "1", "0", "0")
    stack.compose("down", "--volumes")
    stack.compose("up", "--detach", "--wait")
    assert "equals it" in stack.compose(*run, "restore")
    eventually(lambda: sent <= stored() <= sent + phones.acknowledged[WHO], HEAL_SECONDS)
    again = stack.try_compose(*run, "restore", environment={})
    del stack.docker.environment["WAYMARK_BACKUP_FOLDER"]
    assert (again.returncode, "not empty" in again.stderr) == (1, True), again.stderr
    eventually(lambda: not stack.unhealthy(), HEAL_SECONDS)
