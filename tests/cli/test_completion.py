"""Shells complete commands and options."""

import pytest

from tallytree.cli import main


@pytest.mark.parametrize(
    ("typed", "offered"), [("rel", "release"), ("release --mech", "--mechanism"), ("led", "ledger")]
)
def test_bash_completes(
    typed: str, offered: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = f"tallytree {typed}"
    monkeypatch.setenv("_TALLYTREE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.split() == [offered]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_for_shells_name_the_program(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_TALLYTREE_COMPLETE", f"source_{shell}")
    with pytest.raises(SystemExit):
        main([])
    assert "_TALLYTREE_COMPLETE=complete_" in capsys.readouterr().out
