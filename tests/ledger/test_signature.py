"""A signed folder: whatever is changed is found by whoever has the public key, and forged by nobody
who lacks the other.
"""

import json
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.errors import RequestError, StorageError, VerificationError
from tallytree.ledger.signature import signature_problems
from tallytree.ledger.signing import new_key_pair
from tallytree.storage.folder import page_with_digest, sha256_of
from tallytree.storage.sealing import sealed
from tests.forging import forge

PEOPLE = pa.table({"household": [1, 1, 2, 3, 3, 3, 4], "state": ["GA"] * 3 + ["NY"] * 4})


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a signed release, ``out``, and two key pairs, ``key`` and ``other``."""
    place = tmp_path_factory.mktemp("office")
    counts = tt.read(PEOPLE, group="household", levels=["state"], public="groups")
    tt.release(counts, epsilon=1, mechanism="matching", view="naive").save(place / "out")
    new_key_pair(place / "key")
    new_key_pair(place / "other")
    tt.sign(place / "out", place / "key")
    return place


@pytest.fixture
def signed(office: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(office / "out", tmp_path / "out"))


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


def test_a_signed_release_verifies_with_and_without_the_key(office: Path, signed: Path) -> None:
    assert tt.verify(signed)
    assert tt.verify(signed, public_key=office / "key.pub")
    assert not tt.verify(signed, public_key=office / "other.pub")
    (signed / "manifest.sig").unlink()
    assert tt.verify(signed)
    (failed,) = [
        check
        for check in tt.verify(signed, public_key=office / "key.pub").checks
        if not check.passed
    ]
    assert failed.detail == "There is no manifest.sig: the release is not signed."


def test_every_flipped_bit_of_a_signature_is_found_without_a_key(signed: Path) -> None:
    file = signed / "manifest.sig"
    whole = file.read_bytes()
    for place in range(len(whole)):
        for bit in range(8):
            file.write_bytes(
                whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :]
            )
            assert len(signature_problems(signed)) == 1
    file.write_bytes(whole)
    assert not signature_problems(signed)


def values(facts: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all values of a manifest that hold no others."""
    if isinstance(facts, dict | list) and facts:
        inner = facts.items() if isinstance(facts, dict) else enumerate(facts)
        return [found for key, value in inner for found in values(value, (*way, key))]
    return [way]


def test_no_edit_of_any_value_of_the_manifest_passes(office: Path, signed: Path) -> None:
    manifest = json.loads((signed / "manifest.json").read_text())
    ways = [way for way in values(manifest) if way != ("sha256",)]
    assert len(ways) > 50
    for way in ways:
        edited = json.loads(json.dumps(manifest))
        place = edited
        for step in way[:-1]:
            place = place[step]
        old = place[way[-1]]
        place[way[-1]] = (
            (not old)
            if isinstance(old, bool)
            else old + 1
            if isinstance(old, int)
            else f"{old} edited"
        )
        forge(signed, edited)
        # Whoever edits the manifest can make its checksum fit, and that of the signature too, but
        # not the signature.
        assert signature_problems(signed) == ["manifest.json is not the one that was signed."], way
        assert signature_problems(signed, office / "key.pub"), way


def test_a_forger_with_a_key_of_his_own_is_found(office: Path, signed: Path) -> None:
    manifest = json.loads((signed / "manifest.json").read_text())
    manifest["versions"]["tallytree"] = "0"
    forge(signed, manifest)
    tt.sign(signed, office / "other")
    assert tt.verify(signed)
    assert not tt.verify(signed, public_key=office / "key.pub")
    (problem,) = signature_problems(signed, office / "key.pub")
    assert problem.startswith("It was made with another key, of fingerprint ")
    # Not even by writing the fingerprint of the true key into the file.
    facts = json.loads((signed / "manifest.sig").read_text())
    facts["key_sha256"] = json.loads((office / "out" / "manifest.sig").read_text())["key_sha256"]
    (signed / "manifest.sig").write_text(
        sealed({name: facts[name] for name in facts if name != "sha256"})
    )
    assert signature_problems(signed, office / "key.pub") == [
        "It was not made by the owner of this key."
    ]


def test_the_report_is_signed_too(office: Path, signed: Path) -> None:
    manifest = sha256_of(signed / "manifest.json")
    (signed / "report.html").write_text(
        page_with_digest("<p>It is safe to publish all.</p>", manifest)
    )
    assert signature_problems(signed) == ["report.html came after the signature: sign again."]
    tt.sign(signed, office / "key")
    assert tt.verify(signed, public_key=office / "key.pub")
    (signed / "report.html").write_text(page_with_digest("<p>Or not.</p>", manifest))
    assert not tt.verify(signed, public_key=office / "key.pub")
    (signed / "report.html").unlink()
    assert not tt.verify(signed, public_key=office / "key.pub")


def test_only_what_verifies_is_signed(office: Path, signed: Path) -> None:
    (signed / "notes.txt").write_text("mine")
    with pytest.raises(VerificationError, match="not listed"):
        tt.sign(signed, office / "key")


@pytest.mark.parametrize(
    "content", ["", "null", "{}", '{"format_version": 1}', "[" * 100_000, "\udcff"]
)
def test_what_is_no_signature_is_one_line(office: Path, signed: Path, content: str) -> None:
    (signed / "manifest.sig").write_bytes(content.encode(errors="surrogateescape"))
    (failed,) = [
        check
        for check in tt.verify(signed, public_key=office / "key.pub").checks
        if not check.passed
    ]
    assert failed.detail.count("\n") == 0


def test_keys_are_private_never_replaced_and_may_have_a_password(
    tmp_path: Path, signed: Path
) -> None:
    public = new_key_pair(tmp_path / "locked", b"open sesame")
    assert stat.S_IMODE((tmp_path / "locked").stat().st_mode) == 0o600
    with pytest.raises(StorageError, match="not replaced"):
        new_key_pair(tmp_path / "locked")
    with pytest.raises(RequestError, match="needs a password: set TALLYTREE_KEY_PASSWORD"):
        tt.sign(signed, tmp_path / "locked")
    with pytest.raises(RequestError, match="or its password is another one"):
        tt.sign(signed, tmp_path / "locked", password=b"open")
    tt.sign(signed, tmp_path / "locked", password=b"open sesame")
    assert tt.verify(signed, public_key=public)


def test_keys_of_another_kind_are_refused(office: Path, signed: Path) -> None:
    with pytest.raises(RequestError, match=r"no private key in PEM format. Make a pair with"):
        tt.sign(signed, office / "key.pub")
    with pytest.raises(RequestError, match="no public key in PEM format"):
        tt.verify(signed, public_key=office / "key")
    with pytest.raises(StorageError, match="Cannot read"):
        tt.verify(signed, public_key=office / "nothing")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs OpenSSL")
def test_keys_of_openssl_do(tmp_path: Path, signed: Path) -> None:
    make = ["openssl", "genpkey", "-algorithm", "ed25519", "-out", tmp_path / "key.pem"]
    show = ["openssl", "pkey", "-in", tmp_path / "key.pem", "-pubout", "-out", tmp_path / "key.pub"]
    for command in (make, show):
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    tt.sign(signed, tmp_path / "key.pem")
    assert tt.verify(signed, public_key=tmp_path / "key.pub")


def test_the_commands(tmp_path: Path, signed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sign", "--new-key", tmp_path / "mine", "--json") == 0
    pair = json.loads(capsys.readouterr().out)
    assert run("sign", signed, "--private-key", tmp_path / "mine", "--json") == 0
    assert json.loads(capsys.readouterr().out)["key_sha256"] == pair["key_sha256"]
    assert run("verify", signed, "--public-key", pair["public_key"]) == 0
    assert run("verify", signed, "--privacy", "--public-key", pair["public_key"]) == 0
    assert "signed with the key of" in capsys.readouterr().err
    (signed / "report.html").write_text("edited")
    assert run("verify", signed, "--public-key", pair["public_key"]) == 1
    assert run("verify", signed, "--privacy", "--public-key", pair["public_key"]) == 1
    capsys.readouterr()
    for wrong in (
        ["sign"],
        ["sign", signed],
        ["sign", signed, "--private-key", "k", "--new-key", "k"],
    ):
        assert run(*wrong) == 2
        assert capsys.readouterr().err.startswith("tallytree: Say what to sign")


def test_a_release_is_not_passed_off_as_another_of_the_same_owner(
    office: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key, address = office / "key.pub", "https://office.example/2026"
    for place in ("2025", "2026"):
        shutil.copytree(office / "out", tmp_path / place)
        tt.sign(tmp_path / place, office / "key", address=f"https://office.example/{place}")
    assert tt.verify(tmp_path / "2026", public_key=key, name=address)
    assert tt.verify(tmp_path / "2026", public_key=key, name="2026")
    shutil.rmtree(tmp_path / "2026")
    (tmp_path / "2025").rename(tmp_path / "2026")
    for name in (address, "2026"):
        assert not tt.verify(tmp_path / "2026", public_key=key, name=name)
        assert run("verify", tmp_path / "2026", "--public-key", key, "--name", name) == 1
    assert "It was signed as '2025', for 'https://office.example/2025'" in capsys.readouterr().err
    assert run("verify", tmp_path / "2026", "--public-key", key) == 0
    assert " as '2025', for 'https://office.example/2025'" in capsys.readouterr().err
    facts = json.loads((tmp_path / "2026" / "manifest.sig").read_text()) | {"name": "2026"}
    del facts["sha256"]
    (tmp_path / "2026" / "manifest.sig").write_text(sealed(facts))
    assert not tt.verify(tmp_path / "2026", public_key=key, name="2026")
