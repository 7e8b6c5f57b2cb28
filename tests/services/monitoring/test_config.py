"""The settings of the monitoring service."""

import pytest

from monitoring.config import Config


def test_without_any_variable_the_defaults_hold() -> None:
    config = Config.from_environment({"ELSE": "1"})
    assert config == Config()
    assert (config.gateway_timeout_seconds, config.snapshot_seconds) == (4, 2)
    assert (config.observe_seconds, config.coverage_gap_minutes) == (5, 30)
    assert config.lost_contact_minutes == 15


def test_each_variable_is_its_fields_name_in_upper_case() -> None:
    environment = {"GATEWAY_URL": "http://x", "WAYMARK_ACCESS": "required", "SNAPSHOT_SECONDS": "7"}
    config = Config.from_environment(environment)
    assert config == Config(gateway_url="http://x", waymark_access="required", snapshot_seconds=7)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("SNAPSHOT_SECONDS", "1.5", "must be a whole number, not '1.5'"),
        ("OBSERVE_SECONDS", "-1", "must be a whole number, not '-1'"),
        ("WAYMARK_ACCESS", "none", "must be open or required, not 'none'"),
    ],
)
def test_a_wrong_one_is_named(name: str, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} {said}$"):
        Config.from_environment({name: text})


@pytest.mark.parametrize("text", ["open", "required"])
def test_access_is_one_of_two(text: str) -> None:
    assert Config.from_environment({"WAYMARK_ACCESS": text}).waymark_access == text
