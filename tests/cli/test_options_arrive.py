"""Every option that a command accepts reaches the function behind it, from flags and from a TOML
file; flags win.
"""

from __future__ import annotations

import importlib
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from tallytree.boxes.release import SpatialRelease
from tallytree.cli import load_commands, main
from tallytree.group_sizes.release.release import Release
from tallytree.kinds import showing  # before any verb that it takes is replaced
from tallytree.kinds.table import KINDS
from tallytree.ledger.payment import Payment
from tallytree.model.unit import Unit
from tallytree.options.base import Options
from tallytree.releases.keeping import Keeping, Target
from tallytree.releases.questions import Question, Reply

COMMANDS = load_commands()
VERBS = "tallytree.kinds.verbs"
# Per command what it needs, and the publishing function.
RELEASING = {
    "release": ({"out": "out"}, "group_sizes.publish.make_release"),
    "values": (
        {"out": "out", "value": "income", "step": "10", "max": "100"},
        "group_sizes.values.publish.make_values",
    ),
    "table": ({"out": "out"}, "tables.publish.make_table"),
    "histogram": ({"out": "out", "column": "age"}, "ranges.publish.make_histogram"),
    "spatial": ({"out": "out", "columns": "x,y", "box": "0:1,0:1"}, "maps.publish.make_map"),
    "degrees": (
        {"out": "out", "column": "a", "public": "groups"},
        "degree_sequences.publish.make_degrees",
    ),
    "stream": ({"out": "out", "column": "day", "until": "7"}, "streams.publish.stream"),
}
# What is typed, and what must arrive; None for a flag without a value. Where commands differ, the
# command comes first.
SAMPLES: dict[str, tuple[str | None, Any]] = {
    "alpha": ("1/7", "1/7"),
    "at_least": ("7", 7),
    "between": ("4 5", (4, 5)),
    "bins": ("9", 9),
    "by": ("tenure=own,rent", ("tenure=own,rent",)),
    "bounds": ("0,120", (0.0, 120.0)),
    "box": ("2:3,4:5", ((2.0, 3.0), (4.0, 5.0))),
    "branching": ("3", 3),
    "budget": ("1/4,3/4", ("1/4", "3/4")),
    "categories": ("u,v", ("u", "v")),
    "cells": ("8", 8),
    "chart": ("c.svg", "c.svg"),
    "classes": ("0,1-4,5+", ("0", "1-4", "5+")),
    "table classes": ("age=0-17,18+", ("age=0-17,18+",)),
    "column": ("c", "c"),
    "columns": ("p,q", ("p", "q")),
    "contributions": ("4", 4),
    "copies": ("9", 9),
    "count": ("n", "n"),
    "dataset": ("d", "d"),
    "definition": ("zcdp", "zcdp"),
    "delta": ("1/9", "1/9"),
    "depth": ("5", 5),
    "directed": (None, True),
    "dry_run": (None, True),
    "edges": ("0,5", (0.0, 5.0)),
    "spatial edges": ("0,5;1,2,3", ((0.0, 5.0), (1.0, 2.0, 3.0))),
    "degrees edges": ("a,b", ("a", "b")),
    "evaluate edges": ("a,b", ("a", "b")),
    "engine": ("spark", "spark"),
    "entity": ("trip", "trip"),
    "epsilon": ("1/3", "1/3"),
    "every": ("week", "week"),
    "goal": ("top", "top"),
    "graphical": (None, True),
    "group_name": ("home/homes", "home/homes"),
    "level_name": ("state=land", ("state=land",)),
    "group": ("g", "g"),
    "group_totals": ("t.csv", "t.csv"),
    "groups": ("g.csv", "g.csv"),
    "hierarchy": ("h.csv", "h.csv"),
    "horizon": ("365", 365),
    "idempotency_key": ("k", "k"),
    "insecure_seed": ("6", 6),
    "intervals": ("11", 11),
    "json": (None, True),
    "largest": ("2", 2),
    "ledger": ("l.db", "l.db"),
    "confidence": ("0.5", 0.5),
    "levels": ("a,b", ("a", "b")),
    "like": ("earlier", "earlier"),
    "master": ("local[2]", "local[2]"),
    "max_quantity": ("5", 5),
    "max_size": ("12", 12),
    "max_size_budget": ("0.0001", "0.0001"),
    "min_gap": ("7", 7),
    "min_size": ("2", 2),
    "mean": (None, True),
    "mechanism": ("chain", "chain"),
    "histogram mechanism": ("flat", "flat"),
    "spatial mechanism": ("quadtree", "quadtree"),
    "degrees mechanism": ("sorted", "sorted"),
    "stream mechanism": ("tree", "tree"),
    "merge": ("average", "average"),
    "neighbours": ("replace", "replace"),
    "n_points": ("100", 100),
    "objective": ("largest", "largest"),
    "no_inference": (None, False),
    "no_noisy": (None, True),
    "nodes": ("n.csv", "n.csv"),
    "nonnegative": ("subtree", "subtree"),
    "norm": ("1", 1),
    "notes": ("a sentence", ("a sentence",)),
    "ordered": ("age,grade", ("age", "grade")),
    "out": ("elsewhere", "elsewhere"),
    "outside": ("drop", "drop"),
    "overwrite": (None, True),
    "pad_time": ("1", 1),
    "part": ("state=GA", "state=GA"),
    "people": ("age=child,adult", ("age=child,adult",)),
    "query people": (None, True),
    "people_by": ("tenure,head", ("tenure", "head")),
    "people_share": ("1/3", "1/3"),
    "picture": ("p.png", "p.png"),
    "prune": ("2.5", 2.5),
    "public": ("regions", "regions"),
    "degrees public": ("groups", "groups"),
    "plan unit": ("group", "group"),
    "plan by": ("tenure", ("tenure",)),
    "want": ("state:tenure", ("state:tenure",)),
    "where": ("state=GA", "state=GA"),
    "query where": ("tenure=own", ("tenure=own",)),
    "quantile": ("0.25", 0.25),
    "quantity": ("q", "q"),
    "range": ("1:2", ("1:2",)),
    "real": (None, False),
    "region": ("US", ("US",)),
    "repair": (None, True),
    "resolution": ("64,32", (64, 32)),
    "rho": ("1/5", "1/5"),
    "root": ("US", "US"),
    "known": ("totals.csv", ("totals.csv",)),
    "rule": ("a=1 => b=2", ("a=1 => b=2",)),
    "rules": ("rules.txt", "rules.txt"),
    "runs": ("3", 3),
    "shape": ("poisson:2", "poisson:2"),
    "shapes": ("s.json", "s.json"),
    "shapes_id": ("fips", "fips"),
    "shapes_layer": ("counties", "counties"),
    "shapes_level": ("county", "county"),
    "share": (None, True),
    "size": ("s", "s"),
    "sizes": ("hh1=1,hh7plus=7+", {"hh1": "1", "hh7plus": "7+"}),
    "query size": ("3", 3),
    "source_note": ("a survey", "a survey"),
    "authors": ("A. Writer", ("A. Writer",)),
    "yaml": (None, True),
    "curator": ("an office", ("an office",)),
    "data": ("people", "people"),
    "description": ("homes", "homes"),
    "intended_use": ("planning", "planning"),
    "justification": ("law", "law"),
    "name": ("Homes", "Homes"),
    "published": ("2026-11-16", "2026-11-16"),
    "sector": ("Government", "Government"),
    "sources": ("a paper", ("a paper",)),
    "card region": ("USA", "USA"),
    "closed": ("tenure,head", ("tenure", "head")),
    "crs": ("EPSG:27700", "EPSG:27700"),
    "encoding": ("latin-1", "latin-1"),
    "sql": ("select 1", "select 1"),
    "start": ("3", "3"),
    "sure": (None, True),
    "tell_owner": (None, True),
    "table": ("t", "t"),
    "target": ("a: emd<=2", "a: emd<=2"),
    "threshold": ("2.5", 2.5),
    "time_limit": ("3", "3"),
    "title": ("a title", "a title"),
    "total": (None, True),
    "totals": ("root", "root"),
    "truth": ("t.toml", "t.toml"),
    "value": ("pay", "pay"),
    "step": ("1/2", "1/2"),
    "max": ("90", "90"),
    "min": ("-5", "-5"),
    "unit": ("driver", "driver"),
    "until": ("9", "9"),
    "view": ("sizes,hybrid", ("sizes", "hybrid")),
    "width": ("2.5", 2.5),
    "workload": ("0:18,65:120", ((0.0, 18.0), (65.0, 120.0))),
}
# The name of the keyword where it is not that of the flag.
KEYWORDS = {
    "no_inference": "inference",
    "real": "integers",
    "range": "ranges",
    "level_name": "level_names",
}
# With which other options an option makes sense: without them it would be refused. None takes one
# away.
TOGETHER: dict[str, dict[str, Any]] = {
    "release master": {"engine": "spark"},
    "table master": {"engine": "spark"},
    "release shape": {"dry_run": True},
    "spatial alpha": {"mechanism": "adaptive-grid"},
    "spatial cells": {"mechanism": "uniform-grid"},
    "spatial depth": {"mechanism": "quadtree"},
    "spatial branching": {"mechanism": "hierarchical"},
    "degrees directed": {"edges": "a,b", "column": None, "public": "nodes"},
    "degrees nodes": {"edges": "a,b", "column": None, "public": None},
    "degrees edges": {"column": None, "public": "nodes"},
    "degrees size": {"column": None},
    **{f"{command} ledger": {"dataset": "d"} for command in RELEASING},
    **{f"{command} dataset": {"ledger": "l.db"} for command in RELEASING},
    **{
        f"{command} {name}": {"ledger": "l.db", "dataset": "d"}
        for command in RELEASING
        for name in ("idempotency_key", "part")
    },
}


def options_of(command: str) -> list[str]:
    """The names of all options that a command accepts, as the application itself lists them."""
    return [
        p.name
        for p in COMMANDS[command].params
        if p.param_type_name == "option" and p.name not in ("help", "help_all")
    ]


def sample(command: str, name: str) -> tuple[str | None, Any]:
    return SAMPLES.get(f"{command} {name}", SAMPLES[name])


def flags(command: str, told: dict[str, Any]) -> list[str]:
    words = []
    for name, text in told.items():
        if text is True:
            words.append(f"--{name.replace('_', '-')}")
        elif name == "between":
            words += ["--between", *text.split(" ")]
        elif text is not None:
            words.append(f"--{name.replace('_', '-')}={text}")
    return words


class Desk:
    """Stands where the work would be done, and notes what arrives."""

    def __init__(self) -> None:
        self.arrived: dict[str, Any] = {}

    def takes(self, *names: str) -> Callable[..., Any]:
        """A function whose arguments are noted: options by their fields, others by the given names
        or keywords.
        """

        def function(*arguments: Any, **keywords: Any) -> MagicMock:
            plain = [value for value in arguments if not isinstance(value, Options)]
            for group in [value for value in arguments if isinstance(value, Options)]:
                self.arrived |= {field.name: getattr(group, field.name) for field in fields(group)}
            self.arrived |= dict(zip(names, plain)) | keywords
            made = MagicMock()
            made.save.side_effect = self.takes("out")
            made.picture.side_effect = self.takes("picture")
            return made

        return function

    def release_to(self, target: Target, make: Any, load: Any, payment: Payment | None) -> Any:
        made = make(Keeping(payment))
        self.arrived |= {
            "payment": payment,
            "overwritten": target.overwrite,
            "out": target.out,
            "noisy": target.noisy,
        }
        self.arrived |= {"copies": target.intervals}
        return made, False

    def prints_json(self, value: Any) -> None:
        self.arrived["json"] = True


def opened_by(desk: Desk) -> Callable[..., Any]:
    """Notes the engine, and hands on the source and the options."""

    def opened(source: Any, how: Any, engine: Any) -> tuple[Any, Any]:
        desk.takes()(engine)
        return source, how

    return opened


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Desk:
    """A desk instead of every publishing function, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TALLYTREE_LEDGER", raising=False)
    made = Desk()
    for command, (_, function) in RELEASING.items():
        module = importlib.import_module(f"tallytree.cli.{command}")
        monkeypatch.setattr(
            f"tallytree.{function}", made.takes("counts" if command == "release" else "source")
        )
        monkeypatch.setattr(module, "print_json", made.prints_json)
        if command != "degrees":
            monkeypatch.setattr(module, "summary", lambda release: defaultdict(int))
        if command == "table":
            monkeypatch.setattr(module, "show_prediction", made.takes("source"))
            monkeypatch.setattr(module, "opened", opened_by(made))
        if command == "release":
            monkeypatch.setattr(module, "read_data", made.takes("source"))
            monkeypatch.setattr(module, "say_summary", lambda release, out: None)
            monkeypatch.setattr(module, "refuse_doubts", made.takes("counts"))
            monkeypatch.setattr(module, "show_preview", made.takes("source"))
    monkeypatch.setattr("tallytree.releases.keeping.release_to", made.release_to)
    monkeypatch.setattr("tallytree.cli.paying.sleep_to_multiple", made.takes("seconds", "pad_time"))
    return made


def run(*words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert ended.value.code == 0


def check(desk: Desk, command: str, name: str, expected: Any) -> None:
    """That a value is what the publishing function got; for what is not its business, what the
    saving or paying one got.
    """
    arrived, keyword = desk.arrived, KEYWORDS.get(name, name)
    if name == "no_noisy":
        keyword, expected = "noisy", not expected
    elif name == "intervals":
        keyword = "copies"
    elif name == "overwrite":
        keyword = "overwritten"
    found = str(arrived[keyword]) if name == "where" else arrived[keyword]
    assert found == expected, f"{command} --{name} did not arrive"
    if (
        name in ("ledger", "dataset", "idempotency_key", "part") and command != "stream"
    ):  # which pays by itself
        payment = arrived["payment"]
        paid = {
            "ledger": payment.ledger,
            "dataset": payment.dataset,
            "idempotency_key": payment.key,
        }
        paid["part"] = payment.part and f"{payment.part.column}={payment.part.value}"
        assert paid[name] == expected


EVERY = [(command, name) for command in RELEASING for name in options_of(command)]


@pytest.mark.parametrize(("command", "name"), EVERY)
def test_every_flag_arrives(command: str, name: str, desk: Desk) -> None:
    text, expected = sample(command, name)
    told = (
        RELEASING[command][0]
        | TOGETHER.get(f"{command} {name}", {})
        | {name: True if text is None else text}
    )
    run(command, "people.csv", *flags(command, told))
    assert desk.arrived["source"] == "people.csv"
    check(desk, command, name, expected)


@pytest.mark.parametrize("command", RELEASING)
def test_every_flag_is_at_another_value_otherwise(command: str, desk: Desk) -> None:
    """So that a value that arrives is the one that was given."""
    told = RELEASING[command][0]
    run(command, "people.csv", *flags(command, told))
    for name in set(options_of(command)) - set(told):
        keyword = {"no_noisy": "noisy", "intervals": "copies"}.get(name, KEYWORDS.get(name, name))
        expected = sample(command, name)[1]
        assert desk.arrived.get(keyword) != ((not expected) if name == "no_noisy" else expected), (
            name
        )


@pytest.mark.parametrize(("command", "name"), EVERY)
def test_every_option_arrives_from_a_config_file(
    command: str, name: str, desk: Desk, tmp_path: Path
) -> None:
    text, expected = sample(command, name)
    told = (
        RELEASING[command][0]
        | TOGETHER.get(f"{command} {name}", {})
        | {name: True if text is None else text}
    )
    written = {
        key.replace("_", "-"): _typed(command, key, value)
        for key, value in told.items()
        if value is not None
    }
    (tmp_path / "config.toml").write_text(
        _toml({"source": "people.csv", **written}), encoding="utf-8"
    )
    run(command, "config.toml")
    assert desk.arrived["source"] == "people.csv"
    check(desk, command, name, expected)


def _typed(command: str, name: str, value: Any) -> Any:
    """The value as TOML has it: numbers as numbers, what is given in parts as text."""
    expected = sample(command, name)[1]
    return (
        expected
        if value is not True
        and isinstance(expected, int | float)
        and not isinstance(expected, bool)
        else value
    )


def _toml(facts: dict[str, Any]) -> str:
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in facts.items())


def test_flags_win_over_the_config_even_where_they_say_the_default(
    desk: Desk, tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_text(
        'source = "people.csv"\nout = "there"\nepsilon = 0.1\nmerge = "average"\ndefinition = '
        '"zcdp"\nlevels = ["a", "b"]\n'
    )
    run("release", "config.toml", "--merge", "weighted", "--epsilon", "1", "--out", "here")
    assert {name: desk.arrived[name] for name in ("merge", "epsilon", "definition", "out", "levels")} == {
        "merge": "weighted", "epsilon": "1", "definition": "zcdp", "out": "here", "levels": ("a", "b"),
    }  # fmt: skip


def test_config_values_keep_their_types_and_both_spellings_of_a_flag(
    desk: Desk, tmp_path: Path
) -> None:
    for spelling in ("real = true", "integers = false"):
        (tmp_path / "config.toml").write_text(
            'source = "p.csv"\nout = "o"\ncolumn = "age"\nepsilon = 0.1\nbounds = [0, 120]\nwidth '
            f"= 5\n{spelling}\n"
        )
        run("histogram", "config.toml")
        assert desk.arrived["integers"] is False
        assert desk.arrived["epsilon"] == 0.1
        assert desk.arrived["bounds"] == (0, 120)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('contributions = "four"', "contributions is a whole number of at least 1, got 'four'"),
        ("overwrite = 1", "overwrite takes true or false; got 1"),
        ('real = "yes"', "real takes true or false; got 'yes'"),
        ("mechanism = 3", "mechanism 3 is not known"),
        ('mechanism = "wavlet"', "Did you mean 'wavelet'?"),
        ("mechansm = 3", "unknown option: mechansm. Did you mean 'mechanism'?"),
        ("real = true\nintegers = false", "says integers twice"),
        ("epsilon = true", "epsilon must be a positive number"),
    ],
)
def test_wrong_configs_end_with_one_sentence(
    line: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.toml").write_text(
        f'source = "p.csv"\nout = "o"\ncolumn = "age"\nwidth = 1\nbounds = [0, 9]\n{line}\n'
    )
    with pytest.raises(SystemExit) as ended:
        main(["histogram", "config.toml", *([] if "epsilon" in line else ["--epsilon", "1"])])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert says in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("command", "name"),
    # A box may be edges instead, and a file of points may name its columns itself.
    [
        (command, name)
        for command in RELEASING
        for name in RELEASING[command][0]
        if name not in ("box", "columns")
    ],
)
def test_what_is_needed_is_asked_for(
    command: str, name: str, desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {key: value for key, value in RELEASING[command][0].items() if key != name}
    with pytest.raises(SystemExit) as ended:
        main([command, "people.csv", *flags(command, told)])
    assert ended.value.code == 2
    assert f"--{name}" in capsys.readouterr().err
    assert desk.arrived == {}


@pytest.mark.parametrize("name", options_of("evaluate"))
def test_evaluate_uses_every_option(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inspect, desk = importlib.import_module("tallytree.cli.inspect"), Desk()
    keyword = KEYWORDS.get(name, name)
    kind = next(
        kind for kind in KINDS.values() if keyword == "json" or keyword in kind.evaluates_with
    )
    monkeypatch.setattr(f"{VERBS}.load", lambda folder: MagicMock(kind=kind.name))
    monkeypatch.setattr(f"{VERBS}.evaluate", desk.takes("release", "source"))
    monkeypatch.setattr(inspect, "print_json", desk.prints_json)
    text, expected = sample("evaluate", name)
    run(
        "evaluate",
        "folder",
        "people.csv",
        *flags("evaluate", {name: True if text is None else text}),
    )
    found = desk.arrived[keyword]
    assert (str(found) if name == "where" else found) == expected
    assert desk.arrived["source"] == "people.csv"


@pytest.mark.parametrize("name", options_of("report"))
def test_report_uses_every_option(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report, desk, page = (
        importlib.import_module("tallytree.cli.report"),
        Desk(),
        tmp_path / "page.html",
    )
    page.write_text("", encoding="utf-8")
    monkeypatch.setattr(
        report, "truth_of", lambda config, kind: desk.takes("truth")(config) and ("", {})
    )
    monkeypatch.setattr(f"{VERBS}.load", lambda folder: MagicMock(kind="map"))
    monkeypatch.setattr(f"{VERBS}.evaluate", lambda release, truth: None)
    monkeypatch.setattr(
        showing,
        "write_report",
        lambda *given, look, **rest: desk.takes("folder", "out")(*given, look, **rest) and page,
    )
    text, expected = sample("report", name)
    run(
        "report",
        "folder",
        *flags("report", {"truth": "t.toml", name: True if text is None else text}),
    )
    assert desk.arrived[KEYWORDS.get(name, name)] == expected


@pytest.mark.parametrize("name", options_of("card"))
def test_card_uses_every_option(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    monkeypatch.setattr(showing, "card", lambda *given: desk.takes("folder")(*given) and ("a", "b"))
    text, expected = sample("card", name)
    run("card", "folder", *flags("card", {name: True if text is None else text}))
    assert desk.arrived[KEYWORDS.get(name, name)] == expected


PLAN: dict[str, dict[str, Any]] = {
    **{
        name: {"groups": "g.csv", "group": "g", "epsilon": "1"}
        for name in ("levels", "root", "shape", "group", "groups", "unit", "classes", "by")
    },
    "group_totals": {"epsilon": "1"},
    "like": {"epsilon": "1"},
    "epsilon": {"like": "earlier"},
    "target": {"like": "earlier"},
    **{
        name: {"like": "earlier", "epsilon": "1"}
        for name in ("mechanism", "view", "budget", "runs", "chart", "json", "method")
    },
}


@pytest.mark.parametrize("name", options_of("plan"))
def test_plan_uses_every_option(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plan, desk = importlib.import_module("tallytree.cli.plan"), Desk()
    reading = importlib.import_module("tallytree.ingest.read")
    monkeypatch.chdir(tmp_path)
    assumed = MagicMock(spec=SpatialRelease if name == "method" else Release)
    stand_in = MagicMock()
    stand_in.public.unit = Unit()
    monkeypatch.setattr(
        "tallytree.kinds.verbs.load", lambda folder: desk.takes("like")(folder) and assumed
    )
    monkeypatch.setattr(
        reading,
        "read",
        lambda groups, **options: desk.takes("groups")(groups, **options),
    )
    monkeypatch.setattr(
        reading,
        "read_totals",
        lambda table, **options: desk.takes("group_totals")(table, **options),
    )
    monkeypatch.setattr(
        "tallytree.group_sizes.accuracy.protecting_groups",
        lambda assumed: desk.takes()(unit="group") and assumed,
    )
    monkeypatch.setattr("tallytree.group_sizes.plan.shapes.named_shape", desk.takes("shape"))
    monkeypatch.setattr("tallytree.model.confidential.in_classes", lambda assumed, classes: assumed)
    monkeypatch.setattr("tallytree.model.classes.classes_from", desk.takes("classes"))
    monkeypatch.setattr("tallytree.group_sizes.targets.parse_target", lambda text: text)
    monkeypatch.setattr("tallytree.group_sizes.accuracy.data_like", lambda release: stand_in)
    monkeypatch.setattr(
        "tallytree.group_sizes.plan.shapes.assumed_counts",
        lambda *facts, **more: stand_in,
    )
    monkeypatch.setattr(
        plan,
        "plan_map",
        lambda release, asked, **options: desk.takes()(mechanism=asked.mechanism, **options),
    )
    monkeypatch.setattr(plan, "print_json", desk.prints_json)

    def compare(
        assumed: Any, variants: dict[str, dict[str, Any]], **options: Any
    ) -> list[MagicMock]:
        desk.arrived |= options | variants.get("as asked", {})
        return [MagicMock(levels=())]

    monkeypatch.setattr("tallytree.group_sizes.accuracy.compare", compare)

    def smallest_epsilon(data: Any, target: Any, **rest: Any) -> tuple[int, MagicMock]:
        desk.takes("target")(target, **rest)
        return 1, MagicMock(share=None)

    monkeypatch.setattr("tallytree.group_sizes.accuracy.smallest_epsilon", smallest_epsilon)
    monkeypatch.setattr(plan, "_write", lambda chart, svg: desk.takes("chart")(str(chart)))
    monkeypatch.setattr(
        "tallytree.group_sizes.accuracy.trade_off", lambda *facts, **rest: MagicMock()
    )
    monkeypatch.setattr(plan, "_rows", lambda predictions: [])
    text, expected = sample("plan", name)
    run("plan", *flags("plan", PLAN[name] | {name: True if text is None else text}))
    assert desk.arrived[KEYWORDS.get(name, name)] == expected


@pytest.mark.parametrize("name", options_of("query"))
def test_query_uses_every_option(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is typed is what the release is asked."""
    inspect, desk, asked = importlib.import_module("tallytree.cli.inspect"), Desk(), []

    def ask(release: Any, question: Question, **options: Any) -> Reply:
        asked.append(question)
        return Reply("title", ("column",), [])

    monkeypatch.setattr(f"{VERBS}.load", lambda folder: MagicMock(kind="map"))
    monkeypatch.setattr(f"{VERBS}.ask", ask)
    monkeypatch.setattr(inspect, "print_json", desk.prints_json)
    text, expected = sample("query", name)
    run("query", "folder", *flags("query", {name: True if text is None else text}))
    if name == "json":
        assert desk.arrived["json"]
    else:
        assert getattr(asked[0], KEYWORDS.get(name, name)) == expected
