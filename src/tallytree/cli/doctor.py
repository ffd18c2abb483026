"""``tallytree doctor``: what is installed, what works, and what to do about the rest."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import typer

from tallytree.cli.app import CHECK_FAILED, app, print_json, print_table, say
from tallytree.cli.commands import command
from tallytree.errors import TallytreeError
from tallytree.ingest.read import read
from tallytree.ledger.accounts import list_accounts
from tallytree.options.groups import LedgerOptions, Printing
from tallytree.privacy.noise import DiscreteLaplace, draw_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.storage.work import left_over
from tallytree.strategies.strategy_cache import cache_folder

NEEDED = (
    "numpy", "scipy", "numba", "pyarrow", "duckdb", "ibis-framework", "cryptography", "typer", "rich", "sqlalchemy",
)  # fmt: skip
OPTIONAL = {
    "highspy": ("exact optimisation mechanisms", "solvers"),
    "osqp": ("relaxed programs by a solver, for comparison", "solvers"),
    "psycopg": ("tables and ledgers in PostgreSQL", "postgres"),
    "pyspark": ("release --engine spark", "spark"),
}
OLDEST_JAVA = 17  # of Spark 4


@dataclass(frozen=True)
class Finding:
    """One thing looked at. Only ``FAILED`` keeps tallytree from working; ``missing`` is optional."""

    what: str
    state: Literal["ok", "missing", "FAILED"]
    detail: str


@command(app)
def doctor(where: LedgerOptions, how: Printing) -> None:
    """Show versions and whether engines, noise, folders, Spark, PostgreSQL and solvers work here.

    Ends with 1 if something that tallytree needs does not work; what is optional is only listed as
    missing.

    Example: tallytree doctor
    """
    findings = examine(None if where.ledger is None else str(where.ledger))
    failed = [finding for finding in findings if finding.state == "FAILED"]
    if how.json:
        print_json({"ok": not failed, "findings": [asdict(finding) for finding in findings]})
    else:
        rows = [[finding.what, finding.state, finding.detail] for finding in findings]
        print_table("tallytree doctor", ["what", "state", "detail"], rows)
        say(
            f"{len(failed)} of {len(findings)} failed."
            if failed
            else "Everything that tallytree needs works."
        )
    if failed:
        raise typer.Exit(CHECK_FAILED)


def examine(ledger: str | None = None) -> list[Finding]:
    """Look at everything; nothing is written but a file that is removed at once."""
    memory = (
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
        if hasattr(os, "sysconf")
        else 0.0
    )
    machine = f"{os.cpu_count()} processors" + (f", {memory:.0f} GiB of memory" if memory else "")
    findings = [
        _needed("tallytree"),
        Finding("Python", "ok", f"{platform.python_version()}, {machine}"),
        *(_needed(name) for name in NEEDED),
        _trial("engine DuckDB", _count_rows),
        _trial("exact noise", _draw),
        _writable("current folder", Path.cwd()),
        *(
            Finding(
                target.name,
                "missing",
                f"left unfinished: tallytree resume {target.name}, or tallytree clean {target.name}"
                + f". {standing}".rstrip(". ") * bool(standing),
            )
            for target, standing in left_over(Path.cwd()).items()
        ),
        _writable("temporary folder", Path(tempfile.gettempdir())),
        _cache(),
        *(_optional(name, *use) for name, use in OPTIONAL.items()),
        _java(),
    ]
    if ledger is not None:
        findings.append(_trial("ledger", lambda: f"{len(list_accounts(ledger))} accounts"))
    return findings


def _needed(name: str) -> Finding:
    try:
        return Finding(name, "ok", version(name))
    except PackageNotFoundError:
        if name == "tallytree":
            return Finding(name, "ok", "from a source folder, not installed")
        return Finding(name, "FAILED", f"not installed: pip install {name}")


def _optional(name: str, use: str, extra: str) -> Finding:
    try:
        return Finding(name, "ok", f"{version(name)}, for {use}")
    except PackageNotFoundError:
        return Finding(name, "missing", f"for {use}: pip install 'tallytree[{extra}]'")


def _trial(what: str, action: Callable[[], str]) -> Finding:
    """Whether something works, by doing it once; a broken library may raise anything."""
    try:
        return Finding(what, "ok", action())
    except TallytreeError as error:
        return Finding(what, "FAILED", str(error))
    except Exception as error:
        return Finding(what, "FAILED", f"{type(error).__name__}: {error}")


def _count_rows() -> str:
    read(pa.table({"group": [1, 1, 2]}), group="group", public="groups")
    return "counts a table"


def _draw() -> str:
    noise = DiscreteLaplace(Fraction(1, 2))
    draw_noise(noise, KeyStream.from_system(), level=0, query="doctor", offsets=np.array([0, 1]))
    return "draws from the system's randomness"


def _writable(what: str, folder: Path) -> Finding:
    try:
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free / 2**30
    except OSError as error:
        return Finding(what, "FAILED", f"{folder} cannot be written: {error.strerror}")
    return Finding(what, "ok", f"{folder}, {free:,.0f} GiB free")


def _cache() -> Finding:
    """The cache of strategies is made when it is first needed; without it they are optimised anew."""
    folder = cache_folder()
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if os.access(there, os.W_OK):
        return Finding("cache folder", "ok", str(folder))
    return Finding(
        "cache folder", "missing", f"{folder} cannot be written; optimised strategies take longer"
    )


def _java() -> Finding:
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    advice = f"for Spark: install Java {OLDEST_JAVA} or newer"
    if program is None:
        return Finding("Java", "missing", advice)
    try:
        told = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=30, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return Finding("Java", "missing", f"{program} does not run; {advice}")
    found = re.search(r'version "(\d+)([^"]*)"', told)
    if found is None or int(found[1]) < OLDEST_JAVA:
        return Finding(
            "Java",
            "missing",
            f"{found[1] + found[2] if found else 'unknown version'} is too old; {advice}",
        )
    return Finding("Java", "ok", f"{found[1]}{found[2]}, for Spark")
