"""The monitoring service in this process."""

import pytest
from flask.testing import FlaskClient

from monitoring import create_app
from monitoring.config import Config
from scripts.processes.ports import free_port


@pytest.fixture
def client() -> FlaskClient:
    """Return a client of a service whose gateway is gone."""
    return create_app(Config(gateway_url=f"http://127.0.0.1:{free_port()}")).test_client()
