"""Settings come from the environment and say what is wrong with them."""

import pytest

from ingest.config import Config


def test_defaults_and_environment() -> None:
    assert Config.from_environment({}) == Config()
    environment = {"MONGODB_TIMEOUT_MS": "900", "MONGODB_URI": "mongodb://mongos-1/", "OTHER": "x"}
    expected = Config(mongodb_timeout_ms=900, mongodb_uri="mongodb://mongos-1/")
    assert Config.from_environment(environment) == expected


def test_a_bad_number_is_named() -> None:
    with pytest.raises(ValueError, match="MONGODB_TIMEOUT_MS must be a whole number, not '2s'"):
        Config.from_environment({"MONGODB_TIMEOUT_MS": "2s"})


def test_what_may_be_asked_for_by_name_is_not_sealed() -> None:
    assert Config.from_environment({"SEAL_HOURS": "0"}).seal_hours == 0
    assert Config.from_environment({"SEAL_HOURS": "14"}).seal_hours == 14
    with pytest.raises(ValueError, match="SEAL_HOURS must be 0, or at least 14, not 13"):
        Config.from_environment({"SEAL_HOURS": "13"})
