"""Which tests of tools may be left out: those whose tool has not changed. ./scripts/test asks here.

What counts as a change: what differs from a commit, be it committed or not. That commit is the one
that WAYMARK_BASE names (CI's last good one), else where this branch left main, else, on main, the
one LANDED commits before. Without git, or without that commit (a shallow clone), all of them run.
"""

import os
import subprocess
from collections.abc import Iterable, Iterator

from scripts.processes import ROOT

LANDED = 20
# These tests test those files and folders: whatever begins so.
TOOLS: dict[str, tuple[str, ...]] = {
    "tests/tools/loadtests": (
        "loadtests/",
        "scripts/load",
        "scripts/processes/",
        "docs/paper.md",
        "docs/playbook-run/",
    ),
    "tests/tools/mutation": ("services/", "scripts/mutate"),
    "tests/tools/test_binaries.py": ("mongo/binaries.py", "mongo/official.py"),
    "tests/tools/test_bucket.py": ("mongo/backup/", "tests/tools/versitygw/"),
    "tests/tools/test_budget.py": ("scripts/box/", "scripts/budget"),
    "tests/tools/test_control_groups.py": ("scripts/processes/",),
    "tests/tools/test_emulated.py": ("mongo/fetch-emulated",),
    "tests/tools/test_hacs.py": ("scripts/demo/", "scripts/hacs"),
    "tests/tools/test_logs.py": ("scripts/logs", "scripts/lib.sh"),
    "tests/tools/test_official.py": (
        "mongo/binaries.py",
        "mongo/official.py",
        "mongo/processor.py",
    ),
    "tests/tools/test_processes.py": ("scripts/processes/",),
    "tests/tools/test_reasons.py": (
        "scripts/native/",
        "scripts/lib.sh",
        "docs/",
        "services/",
        "mongo/",
    ),
    "tests/tools/test_sizing.py": (
        "loadtests/sizing/",
        "docs/capacity.md",
        "docs/measurements.md",
        "docs/playbook-run/",
    ),
    "tests/tools/test_update.py": ("scripts/update", "scripts/lib.sh"),
    "tests/tools/test_user_data.py": ("deploy/ec2/", "scripts/configure", "scripts/lib.sh"),
    "tests/tools/test_setup.py": ("scripts/lib.sh", "scripts/install", "scripts/configure"),
    # They need Docker's engine, whose fixtures are there.
    "tests/docker/test_mirror.py": ("Dockerfile", "docker-compose.yml"),
    "tests/docker/test_pin.py": ("scripts/pin", "scripts/lib.sh"),
}
# After a change of these, nobody knows which tools still work.
ALL = ("tests/requirements.txt", "tests/conftest.py", "tests/tools/choice.py")


def main() -> None:
    """Print the tests that are left out, one a line, and on the error output why."""
    commit = base()
    changed = None if commit is None else changes(commit)
    if changed is None:
        log("the tests of all tools run: there is no commit to compare with")
        return
    if gone := [path for tool in TOOLS.values() for path in tool if not (ROOT / path).exists()]:
        log(f"the tests of all tools run: tests/tools/choice.py names {', '.join(gone)}")
        return
    if any(name.startswith(ALL) for name in changed):
        log(f"the tests of all tools run: {' or '.join(ALL)} changed since {commit}")
        return
    for tests, why in left_out(changed):
        log(f"left out: {tests}: no change of {', '.join(why)} since {commit}")
        print(tests)


def left_out(changed: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the tests whose tool is not among what changed, each with what it tests."""
    names = tuple(changed)
    for tests, tool in TOOLS.items():
        if not any(name.startswith((tests, *tool)) for name in names):
            yield tests, tool


def base() -> str | None:
    """Return the commit with which to compare, None where there is none."""
    named = os.environ.get("WAYMARK_BASE")
    if named:
        return git("rev-parse", "--short", f"{named}^{{commit}}")
    main = git("rev-parse", "--verify", "--quiet", "origin/main") or git("rev-parse", "main")
    left = main and git("merge-base", "HEAD", main)
    if left and left != git("rev-parse", "HEAD"):
        return git("rev-parse", "--short", left)
    return git("rev-parse", "--short", f"HEAD~{LANDED}")


def changes(commit: str) -> list[str] | None:
    """Return which files differ from a commit, None where git cannot tell."""
    differ = git("diff", "--name-only", "--no-renames", commit)
    added = git("ls-files", "--others", "--exclude-standard")
    return None if differ is None or added is None else [*differ.split("\n"), *added.split("\n")]


def git(*words: str) -> str | None:
    """Return what git says, None where it fails or is not there."""
    command = ["git", "-C", str(ROOT), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def log(text: str) -> None:
    """Say it where a person reads it."""
    os.write(2, f"{text}\n".encode())


if __name__ == "__main__":
    main()
