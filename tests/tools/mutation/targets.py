"""What is changed, and the tests that have to notice: quick ones, without fixtures of others."""

from typing import NamedTuple

from scripts.processes import ROOT

INGEST, MONITORING = "services/ingest", "services/monitoring"


class Target(NamedTuple):
    """A module, as it is imported, and its tests."""

    folder: str  # from where it is imported; relative to the checkout, as are the tests
    module: str
    tests: tuple[str, ...]

    @property
    def source(self) -> str:
        """Return the text of the module."""
        return (ROOT / self.folder / f"{self.module.replace('.', '/')}.py").read_text()


def _rules(name: str) -> Target:
    return Target(INGEST, f"ingest.rules.{name}", (f"tests/services/ingest/rules/test_{name}.py",))


def _monitoring(name: str, *tests: str) -> Target:
    return Target(
        MONITORING, f"monitoring.{name}", tests or (f"tests/services/monitoring/test_{name}.py",)
    )


TARGETS = (
    _rules("accounts"),
    _rules("batteries"),
    _rules("detection_identity"),
    _rules("disk_use"),
    _rules("floors"),
    _rules("levels"),
    _rules("openid"),
    _rules("owntracks"),
    _rules("plan_origin"),
    _rules("positions"),
    _rules("request_parameters"),
    _rules("retention"),
    _rules("roles"),
    _rules("strict_json"),
    _rules("unique_keys"),
    _rules("where"),
    Target(INGEST, "ingest.recording.recorder", ("tests/services/ingest/test_groups.py",)),
    _monitoring("snapshot_cache"),
    _monitoring("verdict"),
)
