"""A private authority of the tests, with certificates for a broker and its clients."""

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from labharness.core.clock import wall_clock_utc

LASTS = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as files."""

    cert: Path
    key: Path

    def context(self, authority: Path) -> ssl.SSLContext:
        """Return the settings of a client with this certificate."""
        context = ssl.create_default_context(cafile=authority)
        context.load_cert_chain(self.cert, self.key)
        return context


class Authority:
    """Signs certificates.

    Args:
        folder: Of all files.
        name: Its own name.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        made = self._builder(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.file = folder / f"{name}-ca.pem"
        self.file.write_bytes(_pem(made.sign(self._key, hashes.SHA256())))

    def pair(self, name: str, *hosts: str) -> Pair:
        """Return the certificate of a client, or of a server on this machine or of these hosts."""
        key = ec.generate_private_key(ec.SECP256R1())
        here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        names = x509.SubjectAlternativeName([here, *map(x509.DNSName, hosts)])
        made = self._builder(_named(name), key).add_extension(names, critical=False)
        found = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        found.cert.write_bytes(_pem(made.sign(self._key, hashes.SHA256())))
        found.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return found

    def _builder(self, name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = wall_clock_utc()
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - LASTS)
            .not_valid_after(now + LASTS)
        )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
