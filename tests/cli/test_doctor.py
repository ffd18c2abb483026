"""``tallytree doctor`` finds what works and says what to do about the rest."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tallytree.cli import doctor
from tallytree.cli.app import app
from tallytree.storage.work import claim


def run(*arguments: str) -> tuple[int, dict[str, dict[str, str]]]:
    result = CliRunner().invoke(app, ["doctor", "--json", *arguments])
    findings = json.loads(result.stdout)["findings"]
    return result.exit_code, {finding["what"]: finding for finding in findings}


def test_everything_needed_works_here() -> None:
    code, findings = run()
    assert code == 0
    assert {
        findings[what]["state"]
        for what in ("numpy", "engine DuckDB", "exact noise", "current folder")
    } == {"ok"}
    assert set(doctor.OPTIONAL) < set(findings)


def test_a_missing_extra_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "OPTIONAL", {"no-such-solver": ("solving", "solvers")})
    code, findings = run()
    assert code == 0
    assert findings["no-such-solver"]["state"] == "missing"
    assert "pip install 'tallytree[solvers]'" in findings["no-such-solver"]["detail"]


def test_a_missing_library_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "NEEDED", ("no-such-library",))
    code, findings = run()
    assert code == 1
    assert findings["no-such-library"]["state"] == "FAILED"


def test_a_folder_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    assert doctor._writable("folder", tmp_path).state == "ok"
    assert doctor._writable("folder", tmp_path / "not there").state == "FAILED"
    assert list(tmp_path.iterdir()) == []


def test_a_broken_engine_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no engine")

    monkeypatch.setattr(doctor, "read", broken)
    code, findings = run()
    assert (code, findings["engine DuckDB"]["detail"]) == (1, "RuntimeError: no engine")


def test_java_is_named_by_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    states = {}
    for told in ("1.8.0_392", "17.0.9", "25"):
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{told}\" 2026' >&2\n")
        program.chmod(0o755)
        states[told] = doctor._java().state
    assert states == {"1.8.0_392": "missing", "17.0.9": "ok", "25": "ok"}
    program.unlink()
    assert "does not run" in doctor._java().detail


def test_a_named_ledger_is_opened(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.db")
    assert run("--ledger", ledger)[0] == 1
    CliRunner().invoke(
        app, ["ledger", "create", "--ledger", ledger, "--dataset", "census", "--epsilon", "1"]
    )
    assert run("--ledger", ledger)[1]["ledger"]["detail"] == "1 accounts"


def test_work_that_a_run_left_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    work = claim(tmp_path / "sizes", overwrite=False)
    assert "sizes" not in {
        finding.what for finding in doctor.examine()
    }  # a run that goes on is no left-over
    work.leave()
    found = {finding.what: finding for finding in doctor.examine()}["sizes"]
    assert (found.state, found.detail) == (
        "missing",
        "left unfinished: tallytree resume sizes, or tallytree clean sizes",
    )
