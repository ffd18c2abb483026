"""Which files see confidential values or draw noise: what a privacy reviewer must read.

Outside reading (``ingest``), noise (``privacy``), executors (``spark``), the confidential types and
the owner's ``evaluate``, only a kind's ``measure`` may open them. ``python -m
tests.attacks.test_confidential_files`` prints the list with its number of lines.
"""

import ast
from pathlib import Path

import tallytree

PACKAGE = Path(tallytree.__file__).parent
MOST_FILES = 44
ROOMS = ("ingest", "privacy", "spark")
# Members of confidential types that hold exact values. Of the owner's ``altered`` only the console
# is told.
EXACT = {
    "leaf_counts",
    "cell_counts",
    "entity_counts",
    "counts_on_levels",
    "counts_of",
    "people_cells",
    "people_of",
}
DRAWS = {"add_noise", "draw_noise"}
# Where values are read, noise is made and executors work, whoever names one of these has a hand in
# it; elsewhere they may be handed on unopened.
STREAMS = {"KeyStream", "BitSource"}
# How noise is worked out from random bits, and kept: they name no key.
NOISE = {
    "privacy/inversion.py",
    "privacy/journal.py",
    "privacy/kernels.py",
    "privacy/probabilities.py",
}
# Counts that stand in for confidential ones, made up or taken from a release, have the same
# members; and one command times noise that nothing is hidden by.
STAND_INS = {
    "cli/doctor.py",  # draws noise to time it
    "cli/plan.py",  # numbers of groups of public tables
    "group_sizes/intervals/copies.py",  # possible truths, made of a release
    "group_sizes/targets.py",  # assumed data of a plan
    "group_sizes/verbs.py",  # published tables, to compare a release with
}


def is_meant(path: Path) -> bool:
    """Whether a file is one that may see exact values and noise."""
    inside = path.relative_to(PACKAGE)
    room, names = inside.parts[0], {part.removesuffix(".py") for part in inside.parts}
    return (
        room in ROOMS
        or (room == "model" and inside.name.startswith("confidential"))
        or "measure" in names
        or "evaluate" in names
    )


def opens(path: Path) -> bool:
    """Whether a file reads exact values of confidential types, or draws noise."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in EXACT:
            return True
        if isinstance(node, ast.Name) and node.id in DRAWS:
            return True
    return False


def names(path: Path) -> bool:
    """Whether a file names a confidential type, noise or its key, outside its comments."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Name(id=name) | ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                found.add(name)
            case ast.ImportFrom(names=aliases):
                found |= {alias.name for alias in aliases}
    return any(name in DRAWS | STREAMS or name.startswith("Confidential") for name in found)


def is_noise(path: Path) -> bool:
    """Whether a file works noise out, or keeps it."""
    return path.relative_to(PACKAGE).as_posix() in NOISE


def product_files() -> list[Path]:
    """Every file of the product; papers are experiments on public data."""
    return [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] != "papers"
    ]


def to_review() -> list[Path]:
    """The files that a privacy reviewer must read: those that open exact values, and those that
    name them where values are read, noise is made and executors work.
    """
    return [
        path
        for path in product_files()
        if is_meant(path)
        and (opens(path) or names(path) or path.relative_to(PACKAGE).as_posix() in NOISE)
    ]


def handed_on() -> list[Path]:
    """The files that hand on confidential values, or a key, and open neither."""
    reviewed = set(to_review())
    return [path for path in product_files() if names(path) and path not in reviewed]


def test_only_measuring_opens_what_is_confidential() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in product_files()
        if opens(path) and not is_meant(path)
    }
    assert found == STAND_INS


def test_the_reviewer_reads_little() -> None:
    files = to_review()
    assert {path.relative_to(PACKAGE).as_posix() for path in files} >= NOISE
    rooms = {path.relative_to(PACKAGE).parts[0] for path in files}
    assert {"ingest", "privacy", "spark", "model", "boxes", "group_sizes"} <= rooms
    assert 20 <= len(files) <= MOST_FILES
    assert len(handed_on()) <= MOST_FILES


if __name__ == "__main__":
    for title, listed in (("open or draw", to_review()), ("hand on unopened", handed_on())):
        lines = [file.read_text(encoding="utf-8").count("\n") for file in listed]
        print(f"{len(listed)} files with {sum(lines):,} lines {title}:")
        for n_lines, file in zip(lines, listed):
            print(f"{n_lines:6,} {file.relative_to(PACKAGE)}")
