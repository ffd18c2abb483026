"""The edges of input and output: consoles that lack letters, outputs that are full, signals, names
that are too long.
"""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.errors import InputError, StorageError
from tallytree.storage import work

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = pa.table({"gruppe": ["1", "2"], "land": ["Österreich", "Ελλάδα"]})
    counts = tt.read(table, group="gruppe", levels=["land"], public="groups")
    return Path(
        tt.release(counts, epsilon=1, mechanism="matching", view="naive").save(tmp_path / "out")
    )


def test_a_console_that_lacks_letters(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for encoding in ("ascii", "latin-1", "utf-8"):
        written = io.BytesIO()
        monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(written, encoding=encoding))
        assert run("query", str(folder), "--region", "total/Österreichx") == 2
        sys.stderr.flush()
        assert "sterreichx" in written.getvalue().decode(encoding)
        written = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
        assert run("query", str(folder), "--region", "total/Österreich", "--json") == 0
        assert "Österreich" in json.dumps(
            json.loads(written.getvalue().decode(encoding)), ensure_ascii=False
        )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_output_that_is_full(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert run("query", str(folder), "--json") == 2
        assert (
            capsys.readouterr().err
            == "tallytree: Cannot write the output: No space left on device.\n"
        )
        monkeypatch.undo()


def test_names_that_are_too_long_are_one_sentence(tmp_path: Path) -> None:
    for long in ("x" * 300, "x/" * 3000):
        with pytest.raises(InputError, match="Cannot read x"):
            tt.read(f"{long}.csv", group="g", public="groups")
        with pytest.raises(StorageError, match="Cannot read x"):
            tt.load(long)
        with pytest.raises(StorageError, match="Cannot write to"):
            tt.histogram([1], epsilon=1).save(tmp_path / long)


@pytest.mark.parametrize("rows", ["g,g,x\n1,2,3\n", '"g";x;"g"\n1;2;3\n', "g\tx\tg\n1\t2\t3"])
def test_a_name_that_occurs_twice_in_a_csv_file_is_refused(rows: str, tmp_path: Path) -> None:
    file = tmp_path / "twice.csv"
    file.write_text(rows)
    with pytest.raises(InputError, match="several columns called 'g'"):
        tt.read(str(file), group="g", public="groups")
    tt.read(str(file), group="x", public="groups")


TYPES: dict[str, tuple[Any, str]] = {
    "duration": (pa.array([1, 2], type=pa.duration("s")), "has type interval"),
    "date": (pa.array([1, 2], type=pa.date32()), "has type date"),
    "float16": (pa.array(np.array([1, 2], dtype=np.float16)), "a type that cannot be read"),
    "decimal256": (pa.array([1, 2], type=pa.decimal256(60, 2)), "a type that cannot be read"),
}


@pytest.mark.parametrize("name", TYPES)
def test_sizes_of_other_types_are_refused(name: str) -> None:
    column, told = TYPES[name]
    with pytest.raises(InputError, match=told):
        tt.read(pa.table({"g": ["a", "b"], "s": column}), group="g", size="s", public="groups")


def test_nothing_is_paid_without_room_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("g,s\n1,a\n2,b\n")
    monkeypatch.setattr(work.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    arguments = [
        "release",
        "people.csv",
        "--group",
        "g",
        "--levels",
        "s",
        "--public",
        "groups",
        "--epsilon",
        "1",
    ]
    assert run(*arguments, "--out", "out") == 2
    assert "nothing was paid" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_the_program_starts_is_one_line(number: int) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}"}
    # The handlers are there once the package is; what is loaded after that takes ten times as long.
    code = (
        "import os, signal, sys\n"
        "from tallytree.cli import main\n"
        "class Finder:\n"
        "    def find_spec(self, name, *rest):\n"
        f"        if name == 'tallytree.cli.app': os.kill(os.getpid(), {int(number)})\n"
        "sys.meta_path.insert(0, Finder())\n"
        "main(['--version'])\n"
    )
    begun = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 130, (ended, time.monotonic() - begun)
    assert ended.stderr == "tallytree: stopped; nothing is left unfinished.\n"


STOPPED_WHERE = {
    # In a callback, where nothing can be raised: Python prints the exception and goes on.
    "a callback": "call = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), number)); call(); "
    "time.sleep(5)",
    # DuckDB makes an error of its own of it.
    "a library": (
        "try: os.kill(os.getpid(), number); time.sleep(5)\n    except KeyboardInterrupt: raise "
        "RuntimeError('interrupted')"
    ),
    "the command": "os.kill(os.getpid(), number); time.sleep(5)",
    # The compiler must not be left midway: it ends what it does, and then the run stops.
    "the compiler": (
        "exec('try: os.kill(os.getpid(), number); time.sleep(0.1)\\nexcept KeyboardInterrupt: "
        "os._exit(3)',"
        " globals() | {'__name__': 'numba.core'})\n"
        "    time.sleep(5)"
    ),
    # Lost at first, then made again by the user: what is left of the first must not hit the end of
    # the program.
    "a callback, and again": (
        "call = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), number)); call(); "
        "atexit.register(time.sleep, 0.1)\n"
        "    os.kill(os.getpid(), number)"
    ),
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("where", STOPPED_WHERE)
def test_a_request_to_stop_is_never_lost_nor_a_traceback(number: int, where: str) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}"}
    code = (
        "import atexit, ctypes, os, time\n"
        "from tallytree.cli import main\n"
        "from tallytree.cli.app import app\n"
        f"number = {int(number)}\n"
        "@app.command(name='wait')\n"
        "def wait() -> None:\n"
        f"    {STOPPED_WHERE[where]}\n"
        "main(['wait'])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (
        130,
        "tallytree: stopped; nothing is left unfinished.\n",
    )


@pytest.mark.parametrize(("arguments", "code"), [("--version", 0), ("no-such-command", 2)])
def test_the_program_ends_at_once_with_the_code_of_its_command_and_nothing_lost(
    arguments: str, code: int
) -> None:
    """What is printed arrives, and what others asked Python to do at its end is done; only objects
    are not freed one by one.
    """
    script = (
        "import atexit, sys\n"
        "from tallytree.cli import program\n"
        "class Kept:\n"
        "    def __del__(self): sys.__stdout__.write('freed one by one\\n')\n"
        f"sys.argv[1:] = ['{arguments}']\n"
        "kept = Kept()\n"
        "try:\n"
        "    program()\n"
        "finally:\n"
        "    atexit.register(print, 'asked for')\n"
        "    print('printed')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout.splitlines()[-2:]) == (code, ["printed", "asked for"]), (
        ended
    )


def test_output_that_is_lost_when_the_program_ends_is_told() -> None:
    script = (
        "import io, os, sys\n"
        "from tallytree.cli import program\n"
        "sys.argv[1:] = ['--version']\n"
        "try:\n"
        "    program()\n"
        "finally:\n"
        "    sys.stdout = open('/dev/full', 'w')\n"
        "    print('lost')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 120
    assert "No space left on device" in ended.stderr


def test_a_closed_output_is_told_before_anything_is_done(tmp_path: Path) -> None:
    command = f"{sys.executable} -m tallytree demo --out {tmp_path / 'demo'} >&-"
    ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "Standard output is closed" in ran.stderr
    assert not list(tmp_path.iterdir())
