"""A release signed by whoever stands behind it: ``manifest.sig`` in its folder.

The signature covers the checksums of the manifest and of every file that the manifest does not
list, such as the report. The manifest holds those of all tables, so the whole folder is covered.
It names the release, and where it can be found: of two releases signed with one key neither can be
passed off as the other. The file carries its own checksum, like the manifest: a flipped bit is found without any key.
Forgery is found with the public key, and with nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tallytree.errors import StorageError, TallytreeError, VerificationError
from tallytree.ledger.signing import fingerprint, is_signed, sign_message
from tallytree.storage.folder import (
    MANIFEST,
    Manifest,
    read_facts,
    sha256_of,
)
from tallytree.storage.sealing import OWN_CHECKSUM, rendered, sealed
from tallytree.storage.work import BESIDE, SIGNATURE

_FORMAT_VERSION = 1
_ALGORITHM = "ed25519"


def write_signature(
    folder: str | Path,
    private_key: str | Path,
    password: bytes | None = None,
    *,
    name: str = "",
    address: str = "",
) -> Path:
    """Sign a folder as it is, in one step, under a name (its own where none is given) and the
    address where readers find it; an older signature is replaced.
    """
    from tallytree.ledger.rows import line_text  # loads SQLAlchemy

    place = Path(folder)
    said: Manifest = {
        "format_version": _FORMAT_VERSION,
        "algorithm": _ALGORITHM,
        "key_sha256": fingerprint(private_key, password, private=True),
        "name": line_text(name or place.resolve().name, "name"),
        "address": line_text(address, "address"),
        "files": _covered(place),
    }
    text = sealed({**said, "signature": sign_message(_message(said), private_key, password)})
    file = place / SIGNATURE
    # Inside the folder a half-written signature would be a file that nobody listed, so it waits
    # next to it.
    real = place.resolve()
    waiting = real.with_name(f".{real.name}.{SIGNATURE}.part")
    try:
        with waiting.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        waiting.replace(file)
    except OSError as error:
        raise StorageError(f"Cannot write {file}: {error.strerror}.") from None
    return file


def is_signed_folder(folder: str | Path) -> bool:
    """Whether a folder has a signature, whatever it is worth."""
    return os.path.lexists(Path(folder) / SIGNATURE)


def signed_as(folder: str | Path) -> tuple[str, str]:
    """The name and the address that a release was signed under; empty where that cannot be read."""
    try:
        facts = read_facts(Path(folder) / SIGNATURE, "a signature", newest=_FORMAT_VERSION)
        _signed_files(facts)
    except TallytreeError:
        return "", ""
    return facts["name"], facts["address"]


def signature_problems(
    folder: str | Path, public_key: str | Path | None = None, *, name: str | None = None
) -> list[str]:
    """What is wrong with the signature of a folder, one sentence each; without a key only whether
    it fits the folder. ``name`` is the name or the address that it must have been signed under.
    """
    place = Path(folder)
    if not is_signed_folder(place):
        return [f"There is no {SIGNATURE}: the release is not signed."]
    expected = None if public_key is None else fingerprint(public_key)
    try:
        facts = read_facts(place / SIGNATURE, "a signature", newest=_FORMAT_VERSION)
        signed = _signed_files(facts)
        there = _covered(place)
    except TallytreeError as error:
        return [str(error)]
    problems = [
        f"{name} is not the one that was signed."
        for name in signed
        if there.get(name) != signed[name]
    ]
    problems += [
        f"{name} came after the signature: sign again." for name in there if name not in signed
    ]
    if name is not None and name not in (facts["name"], facts["address"]):
        problems.append(
            f"It was signed as {facts['name']!r}, for {facts['address'] or 'no address'!r}: it is "
            f"not {name!r}."
        )
    if public_key is None:
        return problems
    if facts["key_sha256"] != expected:
        return [*problems, f"It was made with another key, of fingerprint {facts['key_sha256']}."]
    if not is_signed(_message(facts), facts["signature"], public_key):
        problems.append("It was not made by the owner of this key.")
    return problems


def _covered(place: Path) -> dict[str, str]:
    """Checksums of the manifest and of all files that it does not list, but for the signature."""
    try:
        names = [
            name for name in (MANIFEST, *BESIDE) if name != SIGNATURE and (place / name).is_file()
        ]
        return {name: sha256_of(place / name) for name in names}
    except OSError as error:
        raise StorageError(f"Cannot read {place}: {error.strerror}.") from None


def _signed_files(facts: Manifest) -> Mapping[str, str]:
    """The checksums that a signature covers; VerificationError where the file is not a signature."""
    files = facts.get("files")
    texts = [facts.get(name) for name in ("key_sha256", "signature", "name", "address")]
    if (
        facts.get("algorithm") != _ALGORITHM
        or not isinstance(files, dict)
        or not all(isinstance(t, str) for t in texts)
    ):
        raise VerificationError(
            f"{SIGNATURE} is not a signature that this version knows.", (SIGNATURE,)
        )
    if MANIFEST not in files:
        raise VerificationError(f"{SIGNATURE} does not cover {MANIFEST}.", (SIGNATURE,))
    return files


def _message(facts: Manifest) -> bytes:
    """What is signed: everything that the file says but the signature itself and its checksum."""
    said = {name: value for name, value in facts.items() if name not in ("signature", OWN_CHECKSUM)}
    return b"tallytree signature\n" + rendered(said).encode()
