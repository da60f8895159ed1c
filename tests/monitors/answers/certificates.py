"""Certificates for 127.0.0.1, made by openssl when a test wants one."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path


def make_certificate(folder: Path, *, days: int) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """For the server, and for a client that trusts it."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-nodes", "-days", str(days), "-subj", "/CN=test"),
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    return server, ssl.create_default_context(cafile=certificate)
