"""A release folder: Parquet tables beside a manifest that holds the row count and SHA-256 of every
file.

A table is one file, or parts that the manifest lists in order. A folder is written under a
temporary name next to its place and then renamed, so that a crash leaves either the whole release
or none.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from tallytree.errors import RequestError, StorageError, VerificationError
from tallytree.storage.parts import PartFile, Parts, gather_parts
from tallytree.storage.sealing import OWN_CHECKSUM, is_whole, rendered, sealed
from tallytree.storage.work import BESIDE, BUILT, Work, claim, set_aside, sync

MANIFEST = "manifest.json"
PAGE, CARD, CARD_TEXT, CARD_YAML = "report.html", "card.json", "card.md", "card.yaml"
FORMAT_VERSION = 1
_ADDED = ("files", "format_version", "parts")
_OWN_DIGEST = "\n<!-- tallytree sha256 "
_OF_MANIFEST = "\n<!-- tallytree manifest "
# Beyond it Parquet gives up on a dictionary and writes every name again: a batch names up to a
# million regions.
MOST_DICTIONARY_BYTES = 1 << 28

Manifest = dict[str, Any]

# What reading a damaged folder may raise: a manifest may hold anything anywhere, a table any
# column.
DAMAGE = (
    LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, MemoryError, OSError,
    pa.ArrowException,
)  # fmt: skip


def write_folder(
    path: str | Path,
    tables: Mapping[str, pa.Table | pa.RecordBatchReader],
    manifest: Manifest,
    *,
    overwrite: bool = False,
    work: Work | None = None,
    parts: Parts | None = None,
) -> Path:
    """Write tables and manifest as one folder, all or nothing.

    Parameters
    ----------
    path
        Folder to create.
    tables
        File name (``counts.parquet``) to table, or to a reader of record batches that is written in
        a stream.
    manifest
        JSON-ready facts; ``files``, ``format_version`` and a checksum are added here.
    overwrite
        Replace a release that is already there. Anything else is never replaced.
    work
        The claim on the target, where it was claimed before; it is left as it is then.
    parts
        Tables that others have written in parts, on the same disk.
    """
    mine = work if work is not None else claim(path, overwrite=overwrite)
    try:
        built = mine.path / BUILT
        shutil.rmtree(built, ignore_errors=True)
        build_folder(built, tables, manifest, parts)
        _make_readable(built)
        if work is not None:
            mine.note_built(built)
        mine.put_into_place(built)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        kept = "What was measured is kept." if work is not None else "Nothing was left behind."
        raise StorageError(
            f"Writing {mine.target} failed: {error.strerror or error}. {kept}"
        ) from error
    finally:
        if work is None:
            mine.release()
    return Path(path)


def build_folder(
    folder: Path,
    tables: Mapping[str, pa.Table | pa.RecordBatchReader],
    manifest: Manifest,
    parts: Parts | None = None,
    *,
    private: bool = False,
) -> None:
    """Write tables and manifest into a new folder, flushed to disk; the manifest last, without
    which nothing loads. The files of a private one are readable by their owner alone.
    """
    folder.mkdir(mode=0o700)
    # Files are independent, and Parquet is written outside the interpreter lock: side by side on
    # two cores.
    with ThreadPoolExecutor(max(len(tables), 1)) as pool:
        written = {
            name: pool.submit(_write_table, folder / name, table) for name, table in tables.items()
        }
        files = {name: facts.result() for name, facts in written.items()}
    rest = {name: value for name, value in manifest.items() if name not in (*_ADDED, OWN_CHECKSUM)}
    version: Manifest = {"format_version": FORMAT_VERSION}
    if parts:
        named = gather_parts(folder, parts)
        files |= {
            name: part.facts for table in named for name, part in zip(named[table], parts[table])
        }
        rest["parts"] = named
    write_manifest(folder, {**version, **rest, "files": files})
    for file in folder.iterdir():
        if private:
            file.chmod(0o600)
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
    sync(folder)


def write_part(folder: Path, name: str, table: pa.RecordBatchReader) -> PartFile:
    """Write a part of a table into a folder that exists, all or nothing: whoever writes it twice
    leaves one file.
    """
    own = folder / f".{name}.{uuid4().hex}"
    try:
        facts = _write_table(own, table)
        with own.open("rb") as stream:
            os.fsync(stream.fileno())
        own.rename(folder / name)
    finally:
        own.unlink(missing_ok=True)
    sync(folder)
    return PartFile(folder / name, **facts)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a folder, readable by people and in a stable order, with its own
    checksum at the end.
    """
    (folder / MANIFEST).write_text(sealed(manifest), encoding="utf-8", newline="\n")


def lasting_digest(text: bytes) -> str:
    """SHA-256 by which a ledger knows a release: of its manifest, less the entries that the
    manifest itself says will grow.

    A stream goes on after it was paid for; its manifest names the entries that then change under
    ``grows``, which never does. So whoever adds that list to another manifest, or a name to it,
    changes the digest.
    """
    manifest = json.loads(text)
    growing = manifest.get("grows")
    if not growing:
        return hashlib.sha256(text).hexdigest()
    return hashlib.sha256(
        rendered({n: value for n, value in manifest.items() if n not in growing}).encode()
    ).hexdigest()


def read_manifest(path: str | Path) -> Manifest:
    """The manifest of a release folder as it was written."""
    folder = Path(path)
    file = folder / MANIFEST
    try:
        there = file.is_file()
    except OSError as error:  # a name that is too long, a folder that may not be entered
        raise StorageError(f"Cannot read {folder}: {error.strerror}.") from None
    aside = set_aside(folder)
    if aside is not None:
        raise StorageError(
            f"{folder} was being replaced by a run that ended on the way. Its release is whole, in "
            f"{aside}; tallytree resume "
            f"{folder} puts one of the two into its place."
        )
    if not there:
        raise StorageError(f"{folder} is not a release folder: it has no {MANIFEST}.")
    return read_facts(file, "a manifest", newest=FORMAT_VERSION)


def read_facts(file: Path, what: str, *, newest: int) -> Manifest:
    """Facts that were written with a format version and their own checksum."""
    changed = VerificationError(f"{file} is not {what}: it was changed or cut off.", (file.name,))
    try:
        text = file.read_bytes().decode("utf-8")
        facts = json.loads(text)
    except OSError as error:
        raise StorageError(f"Cannot read {file}: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise changed from None
    if not isinstance(facts, dict):
        raise changed
    version = facts.get("format_version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise changed
    if version > newest:
        raise RequestError(
            f"{file} has format version {version}; this version reads up to {newest}. Upgrade "
            "tallytree."
        )
    if not is_whole(facts, text):
        raise VerificationError(
            f"{file} was changed: it does not match its own checksum.", (file.name,)
        )
    return facts


def read_table(
    path: str | Path, name: str, *, names: Sequence[str] = (), columns: Sequence[str] | None = None
) -> pa.Table:
    """One table of a release folder, or some of its columns; those in ``names`` come as
    dictionaries, as they were written.
    """
    # pq.read_table would load pandas first, several times as long as a small table takes.
    with (
        _reading(Path(path) / name) as place,
        pq.ParquetFile(place, read_dictionary=list(names)) as file,
    ):
        if columns is None:
            return file.read()
        missing = set(columns) - set(file.schema_arrow.names)
        if missing:
            raise pa.ArrowInvalid(f"no column {', '.join(sorted(missing))}")
        return file.read(columns=list(columns)).select(list(columns))


@contextmanager
def _reading(file: Path) -> Iterator[Path]:
    """While a file of a release is read: that it is missing or damaged is one sentence."""
    try:
        yield file
    except FileNotFoundError:
        raise StorageError(f"{file} is missing from the release.") from None
    except (pa.ArrowException, OSError):
        raise VerificationError(
            f"{file} cannot be read: it was changed or cut off.", (file.name,)
        ) from None


@dataclass(frozen=True, eq=False)
class Folder:
    """A release folder that was opened: its manifest, read once, and its files.

    Attributes
    ----------
    path
        Where it is.
    manifest
        Everything that the release itself holds: without ``files``, ``format_version`` and
        checksum.
    files
        Number of rows and checksum of every file.
    split
        Names of the parts of each table that is not one file, in order.
    """

    path: Path
    manifest: Manifest
    files: Mapping[str, Mapping[str, Any]]
    split: Mapping[str, Sequence[str]]
    _whole: set[str] = field(default_factory=set, repr=False, kw_only=True)

    def has(self, name: str) -> bool:
        """Whether the folder has a table."""
        return name in self.files or name in self.split

    def files_of(self, name: str) -> Sequence[str]:
        """The files of a table, in the order of their rows."""
        return self.split.get(name, (name,))

    def table(
        self, name: str, *, names: Sequence[str] = (), columns: Sequence[str] | None = None
    ) -> pa.Table:
        """One table, or some of its columns; those in ``names`` come as dictionaries, as they were
        written.
        """
        files = [self._checked(file) for file in self.files_of(name)]
        read = [read_table(self.path, file, names=names, columns=columns) for file in files]
        return pa.concat_tables(read)

    def parts(self, name: str, *, names: Sequence[str] = ()) -> Iterator[pa.Table]:
        """The same table in parts of consecutive rows, as they were written, of which one exists at
        a time.
        """
        for each in self.files_of(name):
            self._checked(each)
            with (
                _reading(self.path / each) as place,
                pq.ParquetFile(place, read_dictionary=list(names)) as file,
            ):
                for part in range(max(file.num_row_groups, 1)):
                    yield file.read_row_group(part) if file.num_row_groups else file.read()

    def _checked(self, file: str) -> str:
        """The name of a file that is as the manifest lists it, looked at once; VerificationError
        where it is another.
        """
        if file not in self._whole:
            with _reading(self.path / file) as place:
                wrong = self._changed(file, place)
            if wrong:
                raise VerificationError(f"{self.path}: {wrong}", (file,))
            self._whole.add(file)
        return file

    def _changed(self, name: str, file: Path) -> str:
        """How a file that is there differs from what the manifest lists; nothing where it does not."""
        facts = self.files.get(name)
        if facts is None:
            return f"{name} is not listed in the manifest."
        if sha256_of(file) != facts.get("sha256"):
            return f"{name} was changed: its checksum differs from the manifest."
        if pq.read_metadata(file).num_rows != facts.get("rows"):
            return f"{name} does not have the number of rows that the manifest states."
        return ""

    def unlisted(self) -> list[str]:
        """Files in the folder that neither its manifest lists nor the program puts there itself."""
        there = {entry.name for entry in self.path.iterdir()}
        return sorted(there - {MANIFEST, *self.files, *BESIDE})

    def _has_page(self) -> bool:
        """Whether the page in the folder is whole, and of the release in the folder."""
        text = (self.path / PAGE).read_bytes().decode(errors="replace").rpartition(_OWN_DIGEST)[0]
        return has_own_digest(self.path / PAGE) and text.endswith(
            _manifest_line(sha256_of(self.path / MANIFEST))
        )

    def changed_files(self) -> list[str]:
        """Files that are missing, changed or not listed in the manifest, one sentence each."""
        problems = [f"{name} is not listed in the manifest." for name in self.unlisted()]
        if (self.path / PAGE).exists() and not self._has_page():
            problems.append(
                f"{PAGE} was changed, or is not a page of this release; write it again (tallytree "
                "report)."
            )
        for name in self.files:
            file = self.path / name
            wrong = self._changed(name, file) if file.is_file() else f"{name} is missing."
            if wrong:
                problems.append(wrong)
            else:
                self._whole.add(name)
        return problems


def page_with_digest(page: str, manifest: str = "") -> str:
    """A page for a release folder, with its own SHA-256 in its last line; pages that show true
    errors have none.

    ``manifest`` is the SHA-256 of the manifest of the release that the page shows, which the line
    before then names.
    """
    named = f"{page}{_manifest_line(manifest)}" if manifest else page
    return f"{named}{_digest_line(named)}"


def _manifest_line(digest: str) -> str:
    return f"{_OF_MANIFEST}{digest} -->"


def has_own_digest(file: Path) -> bool:
    """Whether a page is as :func:`page_with_digest` made it."""
    text = file.read_bytes().decode(errors="replace")
    page, mark, digest = text.rpartition(_OWN_DIGEST)
    return bool(mark) and _digest_line(page) == mark + digest


def _digest_line(page: str) -> str:
    return f"{_OWN_DIGEST}{hashlib.sha256(page.encode()).hexdigest()} -->\n"


def _write_table(file: Path, table: pa.Table | pa.RecordBatchReader) -> Manifest:
    rows = 0
    batches = table.to_batches(max_chunksize=1 << 20) if isinstance(table, pa.Table) else table
    whole_numbers = [field.name for field in table.schema if field.type == pa.int64()]
    with pq.ParquetWriter(
        file,
        table.schema,
        compression="zstd",
        use_dictionary=[field.name for field in table.schema if field.name not in whole_numbers],
        dictionary_pagesize_limit=MOST_DICTIONARY_BYTES,
        column_encoding=dict.fromkeys(whole_numbers, "DELTA_BINARY_PACKED"),
        store_schema=False,  # a name reads as text, however it is kept
    ) as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return {"rows": rows, "sha256": sha256_of(file)}


def sha256_of(file: Path) -> str:
    """The checksum of a file, as manifests hold it."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _make_readable(folder: Path) -> None:
    """Give the folder the rights that the user's umask asks for; the work folder's are its owner's
    alone.
    """
    umask = os.umask(0)
    os.umask(umask)
    folder.chmod(0o777 & ~umask)
