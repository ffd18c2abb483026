"""Addresses of databases: whether one can be meant, and what of it is never shown."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlsplit

from tallytree.errors import RequestError

FILES = ("sqlite", "duckdb")
"""Schemes whose addresses are paths: they have no host, no port and no password."""

_PORT = re.compile(r"[0-9]{0,5}")


def check_address(address: str, name: str) -> None:
    """Refuse an address that says something else than what is meant; ``name`` begins the sentence.

    A password with an @ or a / that is not written as %40 or %2F moves part of it into the host,
    which is asked of name servers and quoted by drivers. So what stands before an @ must be all
    that the address reads as user and password.
    """
    scheme, _, rest = address.partition("://")
    if scheme.partition("+")[0] in FILES:
        return
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if rest.count("@") > 1 or ("@" in rest and "@" not in authority):
        raise RequestError(
            f"{name} has an address with an @ that can be read in two ways; within a user, "
            "password or option write @ as %40, "
            "/ as %2F, ? as %3F and # as %23."
        )
    host = authority.rpartition("@")[2]
    closed = re.fullmatch(
        r"(\[[^\[\]]*\]|[^\[\]]*)", host.rpartition(":")[0] if _ends_in_port(host) else host
    )
    if closed is None or "[" in authority.rpartition("@")[0]:
        raise RequestError(
            f"{name} has an address with an unfinished [ ] around its host, or a [ or ] elsewhere; "
            "write these as %5B and %5D."
        )
    port = host.rpartition(":")[2] if _ends_in_port(host) else ""
    if not _PORT.fullmatch(port) or int(port or 0) > 65_535:
        raise RequestError(
            f"{name} has an address with a port that is no number from 0 to 65535; write it as "
            f"{scheme[:20]}://user@host:port/database."
        )


def _ends_in_port(host: str) -> bool:
    """Whether a colon of the host comes before a port: not those of ``[::1]``."""
    return ":" in host.rpartition("]")[2]


def shown_path(path: str) -> str:
    """A path or the address of a remote file without user, password and options."""
    scheme, separator, rest = path.partition("://")
    if not separator:
        return path
    options = re.search(r"\?[^?]*=", rest)  # without a sign of equality, a ? stands for any letter
    return f"{scheme}://{(rest[: options.start()] if options else rest).rpartition('@')[2]}"


def secrets_of(address: str) -> set[str]:
    """The passwords of an address, each as it is written and as it is meant."""
    parts = urlsplit(address)
    written = {parts.password or ""}
    for pair in parts.query.split("&"):
        option, _, value = pair.partition("=")
        written |= {value} if "password" in option.lower() else set()
    meant = {value for option, value in parse_qsl(parts.query) if "password" in option.lower()}
    return {form for one in written | meant for form in (one, unquote(one)) if form}


def without_secrets(text: str, address: str) -> str:
    """What a driver said, in one line; nothing of it where it repeats an address or a password."""
    said = " ".join(text.split())
    return "" if "://" in said or any(secret in said for secret in secrets_of(address)) else said
