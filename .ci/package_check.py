"""Use an installed tallytree in an empty folder, and look at what comes out.

Run with the environment's own Python: ``package_check.py command-line``, then ``package_check.py
notebook``.
"""

from __future__ import annotations

import base64
import gzip
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

STATES = {"California", "Georgia", "Texas"}
# What only some users need is not in a plain install.
EXTRAS = ("pandas", "polars", "pyspark", "psycopg", "highspy", "osqp")
NOTEBOOK = (
    "import tallytree as tt",
    "counts = tt.read('demo/people.parquet', group='household', levels=['state', 'county'], "
    "root='US', public='groups')",
    "made = tt.release(counts, epsilon=1)\nmade.verify().raise_if_failed()\nmade",
)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of the installed program, which must succeed."""
    program = Path(sys.executable).with_name("tallytree")
    done = subprocess.run(
        [program, *arguments], check=False, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, (
        f"tallytree {' '.join(arguments)} ended with {done.returncode}: {done.stderr}"
    )
    return done


def check_command_line() -> None:
    """Demo, verification and report."""
    spec = importlib.util.find_spec("tallytree")
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).is_relative_to(sys.prefix), (
        f"{spec.origin} is not the installed package"
    )
    installed = [name for name in EXTRAS if importlib.util.find_spec(name) is not None]
    assert not installed, f"a plain install brings {installed}"
    said = run("demo", "--out", "demo", "--households", "10000")
    assert "every check passed" in said.stderr, said.stderr
    verified = json.loads(run("verify", "demo/release", "--json").stdout)
    assert verified["passed"] is True, verified
    assert len(verified["checks"]) >= 5, verified
    assert (
        int(
            run("query", "demo/release", "--region", "US", "--at-least", "1")
            .stdout.split()[-1]
            .replace(",", "")
        )
        > 0
    )
    run("report", "demo/release", "--out", "page.html")
    regions = packed_data(Path("page.html").read_text(encoding="utf-8"))
    missing = [state for state in STATES if state not in regions]
    assert not missing, f"the report has no {missing}"
    print("demo, verify, query and report work")


def packed_data(page: str) -> str:
    """What a report's script unpacks."""
    blocks = re.findall(r"H4sI[A-Za-z0-9+/=]+", page)
    assert len(blocks) == 1, f"{len(blocks)} packed blocks in the report"
    return gzip.decompress(base64.b64decode(blocks[0])).decode()


def check_notebook() -> None:
    """A release in a bare Jupyter kernel, where DuckDB finds no widgets to draw with."""
    import nbclient
    import nbformat

    assert importlib.util.find_spec("ipywidgets") is None
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in NOTEBOOK])
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    outputs = [output for cell in book.cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"], outputs
    shown = outputs[-1].data["text/html"]
    assert "<table>" in shown, shown
    assert "county" in shown, shown
    print("a notebook works")


if __name__ == "__main__":
    {"command-line": check_command_line, "notebook": check_notebook}[sys.argv[1]]()
