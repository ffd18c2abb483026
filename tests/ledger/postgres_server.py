"""A PostgreSQL server of the system's own, started for a test run and stopped after it."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

LIFETIME_SECONDS = 7200


def server_programs() -> Path | None:
    """The folder of initdb and postgres, or None where no server is installed."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next(
        (
            folder
            for folder in folders
            if (folder / "initdb").exists() and (folder / "postgres").exists()
        ),
        None,
    )


def _account() -> dict[str, object]:
    """The server refuses to run as root, so root hands it to an account without rights."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise RuntimeError("root needs an account 'postgres' or 'nobody' to run the server")


@contextmanager
def postgres_server() -> Iterator[str]:
    """Yield the address of a running server (``{database}`` is to be filled in), reachable through
    a socket file only.
    """
    programs = server_programs()
    if programs is None:
        if os.environ.get("CI"):
            pytest.fail(
                "no PostgreSQL server on this machine: install it, the ledger is tested against a "
                "real one"
            )
        pytest.skip(
            "SKIPPED LOUDLY: no initdb found; install PostgreSQL to test the ledger against a real "
            "server"
        )
    account = _account()
    home = Path(tempfile.mkdtemp(prefix="ttpg"))
    if account:
        os.chown(home, account["user"], account["group"])  # type: ignore[arg-type]
    settings = {
        "cwd": home,
        "stdout": subprocess.DEVNULL,
        "env": {"PATH": os.environ["PATH"], "LC_ALL": "C"},
        **account,
    }
    log = (home / "log").open("wb")
    try:
        make = [
            programs / "initdb",
            "-D",
            home / "data",
            "-U",
            "tallytree",
            "--auth=trust",
            "--no-sync",
            "-E",
            "UTF8",
        ]
        subprocess.run(make, check=True, timeout=120, stderr=log, **settings)
        # fsync guards against power cuts, which these tests do not stage; `timeout` ends a server
        # that nobody stopped.
        options = [
            "-c",
            "listen_addresses=",
            "-c",
            f"unix_socket_directories={home}",
            "-c",
            "fsync=off",
        ]
        serve = [
            "timeout",
            "--signal=INT",
            str(LIFETIME_SECONDS),
            programs / "postgres",
            "-D",
            home / "data",
            *options,
        ]
        server = subprocess.Popen(serve, stderr=log, **settings)
        try:
            _wait_until_ready(programs, home, server)
            yield f"postgresql://tallytree@/{{database}}?host={home}"
        finally:
            subprocess.run(
                [programs / "pg_ctl", "stop", "-D", home / "data", "-m", "immediate"],
                check=False,
                timeout=60,
                **settings,
            )
            server.wait(timeout=60)
    finally:
        log.close()
        shutil.rmtree(home, ignore_errors=True)


def _wait_until_ready(programs: Path, home: Path, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    ask = [programs / "pg_isready", "-q", "-h", home]
    while subprocess.run(ask, check=False, timeout=10).returncode != 0:
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError((home / "log").read_text(errors="replace"))
        time.sleep(0.05)
