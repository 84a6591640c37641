"""Addresses under a key: two of them share as long a prefix as before, and without the key nobody gets them back.

**Rule** (Xu, Fan, Ammar, Moon 2002, Crypto-PAn): bit i of an address is flipped by a bit of a keyed pseudo-random
function of the i bits before it. The map is one to one, depends on the key alone, and keeps common prefixes, no longer
and no shorter; so networks and the hosts in them can still be told apart and counted.
**Departure**: the function is keyed BLAKE2b (RFC 7693) instead of AES, and IPv4 and IPv6 have functions of their own.
**Names of files** are kept, but for data sets, which hold those of many captures: there they become keyed hashes of the
folder and of the whole path, with the endings that name a format.
**What stays**: ports, times and sizes. Who knows some hosts can find others by what they did, and
prefixes of known addresses show those of their neighbours: this is no protection from people who know the network.

**Reference** Xu, Fan, Ammar, Moon: Prefix-Preserving IP Address Anonymization, IEEE ICNP 2002,
doi:10.1109/ICNP.2002.1181415.
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets

import polars as pl

from tcpfit import arguments
from tcpfit.exceptions import InvalidParameter
from tcpfit.schema import check_table

LEAST = 16
"""Bytes of a key."""

FORMATS = (
    *("pcap", "pcapng", "cap", "ntar", "dmp", "tcpdump", "erf", "snoop", "trc"),
    *("gz", "zst", "bz2", "xz", "lz4", "zip", "tar"),
)
"""Endings of names that say how a file is to be read, and nothing else."""

DIGITS = "0123456789"
"""Numbers of the parts of rotated captures: x.pcap0, x.pcap1."""

UNREADABLE = "-"
"""What stands for a text that is no address."""


def new_key() -> bytes:
    """A key that nobody has had before."""
    return secrets.token_bytes(32)


def fingerprint(key: bytes) -> str:
    """What tells one key from another and gives none away: of a key that was drawn at random nobody finds it again."""
    return hashlib.blake2b(b"fingerprint", key=Pseudonyms(key).digest, digest_size=8).hexdigest()


class Pseudonyms:
    """The addresses and names of files under one key.

    Raises InvalidParameter for a key of fewer than 16 bytes, and for one that is a text.
    """

    def __init__(self, key: bytes) -> None:
        if not isinstance(key, (bytes, bytearray, memoryview)):  # what it is instead is not shown: it may be a secret
            raise InvalidParameter(f"a key is bytes, of the class bytes, got one of the class {type(key).__name__}")
        if len(key) < LEAST:
            raise InvalidParameter(f"a key has at least {LEAST} bytes, got {len(key)}")
        self.digest = hashlib.blake2b(key, digest_size=32, person=b"tcpfit addresses").digest()
        self._known: dict[str, str] = {}

    def of(self, address: str) -> str:
        """The pseudonym of an IPv4 or IPv6 address; of a text that is none, a dash."""
        if arguments.text("an address", address) not in self._known:
            try:
                self._known[address] = str(self._mapped(ipaddress.ip_address(address.partition("%")[0])))
            except ValueError:
                self._known[address] = UNREADABLE
        return self._known[address]

    def name(self, path: str) -> str:
        """The pseudonym of a path or URL: files of one folder share its first part."""
        path = arguments.path("path", path)
        folder, _, name = path.rpartition("/")
        words = [word if word in FORMATS else word.rstrip(DIGITS) for word in name.lower().split(".")[1:]]
        ending = "".join(f".{word}" for word in words if word in FORMATS)
        return f"{self._hash('folder', folder)}/{self._hash('file', path)}{ending}"

    def _hash(self, what: str, text: str) -> str:
        message = f"{what} {text}".encode(errors="surrogateescape")
        return hashlib.blake2b(message, digest_size=6, key=self.digest).hexdigest()

    def _mapped(
        self, address: ipaddress.IPv4Address | ipaddress.IPv6Address
    ) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        bits, length = int(address), address.max_prefixlen
        flips = 0
        for position in range(length):
            prefix = bits >> (length - position)  # the bits before this one
            message = bytes((address.version, position)) + prefix.to_bytes(16, "big")
            flips = flips << 1 | hashlib.blake2b(message, digest_size=1, key=self.digest).digest()[0] >> 7
        return type(address)(bits ^ flips)

    def in_table(self, table: pl.DataFrame) -> pl.DataFrame:
        """A table with the pseudonyms in the place of the addresses in `src` and `dst`."""
        check_table("the table", table, ())
        ends = [name for name in ("src", "dst") if name in table.columns]
        addresses = sorted({address for name in ends for address in table[name].drop_nulls().unique()})
        return table.with_columns(
            pl.col(name).replace_strict(addresses, [self.of(each) for each in addresses], return_dtype=pl.String)
            for name in ends
            if addresses
        )
