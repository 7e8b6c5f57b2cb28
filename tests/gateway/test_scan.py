"""What a scanner finds on the TLS port: nothing against Mozilla's recommendation."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from sslyze.mozilla_tls_profile.tls_config_checker import (
    MozillaTlsConfiguration,
    ServerNotCompliantWithTlsConfiguration,
    TlsConfigurationEnum,
    check_server_against_tls_configuration,
)
from sslyze.plugins.session_resumption._resumption_with_id import TlsResumptionSupportEnum
from sslyze.scanner.models import ServerScanRequest
from sslyze.scanner.scanner import Scanner
from sslyze.server_setting import ServerNetworkLocation

from scripts.processes import ROOT
from scripts.processes.ports import free_port
from tests.gateway.conftest import Gateway


@pytest.mark.long
@pytest.mark.filterwarnings(
    "ignore"
)  # what it reads of the world's authorities is old here and there
def test_a_scanner_finds_nothing(make_gateway: Callable[..., Gateway], tmp_path: Path) -> None:
    subprocess.run([ROOT / "scripts" / "certificate", tmp_path / "tls"], check=True)
    port = free_port()
    make_gateway(
        tls_certificate=str(tmp_path / "tls" / "certificate.pem"),
        tls_key=str(tmp_path / "tls" / "key.pem"),
        tls_listen=f"127.0.0.1:{port}",
        internal_listen=f"127.0.0.1:{free_port()}",
    ).start()
    scanner = Scanner()
    location = ServerNetworkLocation(hostname="localhost", ip_address="127.0.0.1", port=port)
    scanner.queue_scans([ServerScanRequest(server_location=location)])
    (scan,) = scanner.get_results()
    intermediate = MozillaTlsConfiguration.get(TlsConfigurationEnum.MOZILLA_INTERMEDIATE)
    with pytest.raises(ServerNotCompliantWithTlsConfiguration) as refused:
        check_server_against_tls_configuration(scan, intermediate)
    assert set(refused.value.issues) == {"certificate_path_validation"}  # signed by itself

    results = scan.scan_result
    assert results
    assert results.tls_1_3_cipher_suites.result
    assert results.tls_1_3_cipher_suites.result.is_tls_version_supported
    assert results.tls_1_3_early_data.result
    assert not results.tls_1_3_early_data.result.supports_early_data  # it could be replayed
    assert results.session_renegotiation.result
    assert not results.session_renegotiation.result.is_vulnerable_to_client_renegotiation_dos
    assert results.session_resumption.result
    resumed = results.session_resumption.result.session_id_resumption_result
    assert resumed == TlsResumptionSupportEnum.FULLY_SUPPORTED
    assert results.http_headers.result
    # Only on port 443 (test_browsers.py): a name with a port has plain ports beside it.
    assert results.http_headers.result.strict_transport_security_header is None
