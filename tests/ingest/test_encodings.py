"""CSV files in other encodings than UTF-8: found, or said."""

from pathlib import Path

import pytest

import tallytree as tt
from tallytree.errors import InputError, RequestError

TEXT = 'household;região\n1;"São Paulo"\n1;São Paulo\n2;Córdoba\n'


def regions(file: Path, **place: str) -> list[str]:
    counts = tt.read(str(file), group="household", levels=["região"], public="groups", **place)
    return counts.hierarchy.labels[1:].tolist()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_unicode_is_found(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(TEXT.encode(encoding))
    assert regions(file) == ["Córdoba", "São Paulo"]
    assert regions(file, encoding=encoding) == ["Córdoba", "São Paulo"]


@pytest.mark.parametrize("encoding", ["windows-1252", "latin-1", "cp850"])
def test_other_encodings_are_said(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(TEXT.encode(encoding))
    assert regions(file, encoding=encoding) == ["Córdoba", "São Paulo"]


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # Ibis again: pytest.warns repeats what it has heard
def test_what_is_likely_is_taken_with_a_word(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(TEXT.encode("windows-1252"))
    with pytest.warns(UserWarning, match="is not UTF-8 and is read as windows-1252"):
        assert regions(file) == ["Córdoba", "São Paulo"]


def test_an_encoding_that_is_unknown_or_wrong_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(TEXT.encode("windows-1252"))
    with pytest.raises(RequestError, match="There is no encoding 'utf-9'"):
        regions(file, encoding="utf-9")
    with pytest.raises(InputError, match="is not written in utf-8"):
        regions(file, encoding="utf-8")
    with pytest.raises(RequestError, match="goes with files of text"):
        tt.read({"not": "read"}, group="household", public="groups", encoding="utf-8")


def test_empty_fields_are_missing_in_every_encoding(tmp_path: Path) -> None:
    for encoding in ("utf-8", "utf-16"):
        file = tmp_path / f"{encoding}.csv"
        file.write_bytes('household;região\n1;""\n'.encode(encoding))
        with pytest.raises(InputError, match="missing values"):
            regions(file)
