"""Ed25519 keys, and signing and checking messages with them (RFC 8032), by the library
``cryptography``.

A signature says who stands behind a release. It adds nothing to its privacy: keys of signatures and
keys of noise have nothing to do with each other, and the first are kept while the second are
forgotten.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tallytree.errors import RequestError, StorageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

PUBLIC_SUFFIX = ".pub"


def new_key_pair(file: str | Path, password: bytes | None = None) -> Path:
    """Write a new private key, readable by its owner alone, and its public key beside it; the file
    of the latter.

    Files that are there are never replaced: a key that is lost cannot be made again.
    """
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, private = Ed25519PrivateKey.generate(), Path(file)
    locked = form.NoEncryption() if password is None else form.BestAvailableEncryption(password)
    text = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, locked)
    public = private.with_name(private.name + PUBLIC_SUFFIX)
    for there in (private, public):
        if os.path.lexists(there):
            raise StorageError(
                f"{there} already exists, and keys are not replaced. Choose another file."
            )
    _write_new(private, text, 0o600)
    _write_new(
        public,
        key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo),
        0o644,
    )
    return public


def sign_message(message: bytes, private_key: str | Path, password: bytes | None = None) -> str:
    """The signature of a message by the key in a PEM file, as hexadecimal digits."""
    return _private_key(Path(private_key), password).sign(message).hex()


def is_signed(message: bytes, signature: str, public_key: str | Path) -> bool:
    """Whether the signature is that of this message by the owner of the public key in a PEM file."""
    from cryptography.exceptions import InvalidSignature

    key = _public_key(Path(public_key))
    try:
        key.verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


def fingerprint(
    key_file: str | Path, password: bytes | None = None, *, private: bool = False
) -> str:
    """SHA-256 of the public key (of a private key: of the public key that goes with it), by which
    people compare keys.
    """
    from cryptography.hazmat.primitives import serialization as form

    file = Path(key_file)
    key = _private_key(file, password).public_key() if private else _public_key(file)
    return hashlib.sha256(key.public_bytes(form.Encoding.Raw, form.PublicFormat.Raw)).hexdigest()


def _private_key(file: Path, password: bytes | None) -> Ed25519PrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    text = _read(file)
    try:
        key = load_pem_private_key(text, password)
    except TypeError:
        need = (
            "needs no password"
            if password is not None
            else "needs a password: set TALLYTREE_KEY_PASSWORD"
        )
        raise RequestError(f"The key in {file} {need}.") from None
    except (ValueError, UnsupportedAlgorithm):
        wrong = "" if password is None else ", or its password is another one"
        raise RequestError(f"{file} holds no private key in PEM format{wrong}. {_HOW}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise RequestError(f"The key in {file} is not of Ed25519. {_HOW}")
    return key


def _public_key(file: Path) -> Ed25519PublicKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    text = _read(file)
    try:
        key = load_pem_public_key(text)
    except (ValueError, UnsupportedAlgorithm):
        raise RequestError(f"{file} holds no public key in PEM format. {_HOW}") from None
    if not isinstance(key, Ed25519PublicKey):
        raise RequestError(f"The key in {file} is not of Ed25519. {_HOW}")
    return key


_HOW = "Make a pair with: tallytree sign --new-key FILE."


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise StorageError(f"Cannot read {file}: {error.strerror}.") from None
    except ValueError:
        raise StorageError(f"{str(file)!r} is not the name of a file.") from None


def _write_new(file: Path, text: bytes, rights: int) -> None:
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, rights), "wb") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise StorageError(f"Cannot write {file}: {error.strerror}.") from None
