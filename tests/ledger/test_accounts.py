"""Budget accounts: exact sums, one payment per key, nothing ever taken back."""

import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from tallytree.errors import (
    BudgetError,
    DuplicateReleaseError,
    RequestError,
    StorageError,
    TallytreeError,
    VerificationError,
)
from tallytree.ledger.accounts import (
    Purpose,
    close_account,
    complete,
    create_account,
    find_reservation,
    list_accounts,
    migrate_account,
    read_history,
    reserve,
)
from tallytree.ledger.chain import Entry, summarise
from tallytree.ledger.checks import check_history
from tallytree.ledger.tables import ledger_url
from tallytree.ledger.terms import Parts
from tallytree.model.part import Part
from tallytree.privacy.budget import Budget, Definition

STATES = Parts("state", ("GA", "TX"))


def pure(amount: str) -> Budget:
    return Budget("pure", Fraction(amount))


def zcdp(amount: str) -> Budget:
    return Budget("zcdp", Fraction(amount))


def pay(ledger: str, budget: Budget, key: str = "", **options: object) -> Entry:
    return reserve(ledger, "census", budget, secure=True, purpose=Purpose(key=key), **options)  # type: ignore[arg-type]


def change(ledger: str, statement: str) -> None:
    """Change rows behind the ledger's back, the way someone who owns the database can."""
    engine = create_engine(ledger_url(ledger))
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            for action in ("update", "delete"):
                connection.execute(text(f"DROP TRIGGER IF EXISTS tallytree_ledger_no_{action}"))
        else:
            connection.execute(
                text("DROP TRIGGER IF EXISTS tallytree_ledger_append_only ON tallytree_ledger")
            )
        connection.execute(text(statement))
    engine.dispose()


def test_releases_add_up_exactly_until_nothing_is_left(ledger: str) -> None:
    create_account(ledger, "census", pure("1"), note="2020 count")
    for _ in range(10):
        pay(ledger, pure("0.1"))  # ten times one tenth is one, which floats miss
    with pytest.raises(BudgetError, match=r"0 left of 1.*asks for ε = 0\.000001"):
        pay(ledger, pure("0.000001"))
    history = read_history(ledger, "census")
    assert check_history(history) == []
    account = summarise(history)
    assert (account.spent, account.remaining, account.n_reservations) == (1, 0, 10)
    assert list_accounts(ledger) == [account]


def test_overspending_names_requested_and_remaining(ledger: str) -> None:
    create_account(ledger, "census", pure("1"))
    pay(ledger, pure("2/3"))
    with pytest.raises(
        BudgetError, match=r"'census' has ε = 1/3 left of 1; the release asks for ε = 0\.5\."
    ) as refusal:
        pay(ledger, pure("0.5"))
    assert (refusal.value.requested, refusal.value.remaining) == (Fraction(1, 2), Fraction(1, 3))
    assert len(read_history(ledger, "census")) == 2


def test_a_key_pays_once_and_a_crashed_run_is_not_drawn_again(ledger: str) -> None:
    create_account(ledger, "census", pure("3"))
    paid = pay(ledger, pure("1"), key="spring")
    with pytest.raises(DuplicateReleaseError, match=r"stays spent.*new key") as crashed:
        pay(ledger, pure("1"), key="spring")
    assert (crashed.value.state, crashed.value.released) == ("reserved", False)
    assert crashed.value.receipt == paid.receipt()

    complete(ledger, find_reservation(ledger, paid.receipt()), result_digest="abc")
    with pytest.raises(
        DuplicateReleaseError, match="Nothing was charged; use that release"
    ) as again:
        pay(ledger, pure("1"), key="spring")
    assert again.value.released
    assert again.value.result_digest == "abc"
    assert summarise(read_history(ledger, "census")).spent == 1


@pytest.mark.parametrize(
    "other", [{"budget": pure("1/2")}, {"part": Part("state", "GA")}, {"budget": zcdp("1")}]
)
def test_a_key_belongs_to_one_request(ledger: str, other: dict[str, object]) -> None:
    create_account(ledger, "census", zcdp("3"), parts=STATES)
    pay(ledger, pure("1"), key="spring")
    with pytest.raises(RequestError, match="belongs to another release"):
        pay(ledger, **{"budget": pure("1"), "key": "spring", **other})  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="belongs to another release"):
        reserve(
            ledger,
            "census",
            pure("1"),
            secure=True,
            purpose=Purpose(key="spring", request_digest="f00"),
        )


def test_completing_twice_is_harmless_and_another_result_is_refused(ledger: str) -> None:
    create_account(ledger, "census", pure("3"))
    paid = pay(ledger, pure("1"))
    assert complete(ledger, paid, result_digest="abc") == complete(
        ledger, paid, result_digest="abc"
    )
    with pytest.raises(RequestError, match="another release"):
        complete(ledger, paid, result_digest="def")
    assert len(read_history(ledger, "census")) == 3


def test_a_closed_account_gives_nothing_but_lets_releases_finish(ledger: str) -> None:
    create_account(ledger, "census", pure("3"))
    paid = pay(ledger, pure("1"))
    assert close_account(ledger, "census", reason="the year is over").closed
    with pytest.raises(BudgetError, match="closed") as refusal:
        pay(ledger, pure("1"))
    assert refusal.value.remaining == 0
    with pytest.raises(RequestError, match="closed already"):
        close_account(ledger, "census")
    complete(ledger, paid, result_digest="abc")
    assert check_history(read_history(ledger, "census")) == []


def test_pure_releases_count_as_half_their_square_under_zcdp(ledger: str) -> None:
    create_account(ledger, "census", zcdp("1"))
    assert pay(ledger, pure("0.1")).charge == Fraction(1, 200)
    pay(ledger, zcdp("0.9"))
    with pytest.raises(
        BudgetError,
        match=r"ρ = 0\.095 left of 1; the release asks for ε = 1, which counts as ρ = 0\.5",
    ):
        pay(ledger, pure("1"))
    assert check_history(read_history(ledger, "census")) == []


def test_zcdp_releases_are_refused_by_pure_accounts(ledger: str) -> None:
    create_account(ledger, "census", pure("100"))
    with pytest.raises(RequestError, match="zCDP implies no pure guarantee"):
        pay(ledger, zcdp("0.01"))
    assert summarise(read_history(ledger, "census")).spent == 0


def test_parts_of_a_partition_pay_for_the_largest(ledger: str) -> None:
    create_account(ledger, "census", pure("3"), parts=STATES)
    georgia, texas = Part("state", "GA"), Part("state", "TX")
    charges = [
        pay(ledger, pure("1"), part=georgia).charge,
        pay(ledger, pure("0.5"), part=texas).charge,  # below Georgia's 1
        pay(ledger, pure("0.7"), part=texas).charge,  # Texas is at 1.2 now
        pay(ledger, pure("0.5")).charge,  # all of the data
    ]
    assert charges == [1, 0, Fraction(1, 5), Fraction(1, 2)]
    history = read_history(ledger, "census")
    assert check_history(history) == []
    assert [(entry.part_of, entry.part) for entry in history[1:3]] == [
        ("state", "GA"),
        ("state", "TX"),
    ]


def test_other_privacy_units_and_insecure_seeds_are_refused(ledger: str) -> None:
    create_account(ledger, "census", pure("3"), unit="person_id")
    with pytest.raises(
        RequestError, match="counts losses per 'person_id', this release protects 'entity'"
    ):
        pay(ledger, pure("1"))
    with pytest.raises(RequestError, match="insecure seed is not private"):
        reserve(ledger, "census", pure("1"), secure=False, unit="person_id")
    assert pay(ledger, pure("1"), unit="person_id").spent == 1


def test_accounts_are_never_replaced_and_unknown_ones_are_named(ledger: str) -> None:
    with pytest.raises(TallytreeError, match="ledger create"):
        read_history(ledger, "census")
    with pytest.raises(TallytreeError, match="ledger create"):
        pay(ledger, pure("1"))
    create_account(ledger, "census", pure("3"))
    with pytest.raises(RequestError, match="already has an account"):
        create_account(ledger, "census", pure("5"))
    with pytest.raises(RequestError, match=r"no account 'survey'\. Accounts: 'census'"):
        read_history(ledger, "survey")
    create_account(ledger, "survey", zcdp("1"))
    assert [account.dataset for account in list_accounts(ledger)] == ["census", "survey"]


@pytest.mark.parametrize(
    "statement", ["UPDATE tallytree_ledger SET amount = '9'", "DELETE FROM tallytree_ledger"]
)
def test_the_database_itself_refuses_changes(ledger: str, statement: str) -> None:
    create_account(ledger, "census", pure("3"))
    engine = create_engine(ledger_url(ledger))
    with pytest.raises(Exception, match="append-only"), engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()
    assert summarise(read_history(ledger, "census")).total == 3


def test_an_edited_row_is_noticed_and_nothing_more_is_recorded(ledger: str) -> None:
    create_account(ledger, "census", pure("3"))
    pay(ledger, pure("1"))
    change(ledger, "UPDATE tallytree_ledger SET amount = '300' WHERE position = 0")
    assert any(
        "row 0" in failure and "edited" in failure
        for failure in check_history(read_history(ledger, "census"))
    )
    with pytest.raises(VerificationError, match="edited"):
        pay(ledger, pure("1"))


def test_a_cut_off_end_is_noticed_by_the_receipt(ledger: str) -> None:
    create_account(ledger, "census", pure("3"))
    paid = pay(ledger, pure("1"))
    change(ledger, "DELETE FROM tallytree_ledger WHERE position = 1")
    history = read_history(ledger, "census")
    assert check_history(history) == []
    assert "no longer says so" in check_history(history, [paid.receipt()])[0]
    with pytest.raises(VerificationError, match="no row 1"):
        find_reservation(ledger, paid.receipt())


def test_a_transaction_that_fails_leaves_nothing(ledger: str) -> None:
    create_account(ledger, "census", pure("3"))
    with pytest.raises(RequestError, match="printable"):
        reserve(ledger, "census", pure("1"), secure=True, purpose=Purpose(summary="two\nlines"))
    assert len(read_history(ledger, "census")) == 1


@pytest.mark.parametrize(
    "address",
    ["mysql://me:secret@host/db", "sqlite://", ":memory:", "sqlite:///x.db?mode=ro", "://"],
)
def test_addresses_that_cannot_hold_a_ledger_are_refused_without_their_password(
    address: str,
) -> None:
    with pytest.raises(RequestError, match=r"ledger\.db") as refusal:
        list_accounts(address)
    assert "secret" not in str(refusal.value)


def test_a_server_that_is_away_is_one_message_without_the_password() -> None:
    pytest.importorskip("psycopg", reason="the postgres extra is not installed")
    with pytest.raises(StorageError, match="nothing may be released") as failure:
        list_accounts("postgresql://me:secret@127.0.0.1:1/db?connect_timeout=1&password=secret")
    assert "secret" not in str(failure.value)


def test_files_that_are_no_ledger_are_one_message(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="There is no ledger"):
        list_accounts(str(tmp_path / "missing.db"))
    assert not (tmp_path / "missing.db").exists()
    with pytest.raises(StorageError, match="folder does not exist"):
        create_account(str(tmp_path / "missing" / "ledger.db"), "census", pure("1"))
    other = tmp_path / "other.db"
    other.write_text(
        "not a database, but a text of some length that nobody should mistake for one" * 20
    )
    with pytest.raises(StorageError, match="cannot be used"):
        list_accounts(str(other))
    (tmp_path / "empty.db").touch()
    with pytest.raises(RequestError, match="holds no ledger yet"):
        list_accounts(str(tmp_path / "empty.db"))


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x00b", "\ud800", "x" * 201])
def test_names_that_databases_store_differently_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RequestError, match="dataset must"):
        create_account(str(tmp_path / "ledger.db"), name, pure("1"))


def test_sums_that_need_thousands_of_digits_are_refused_not_rounded(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.db")
    create_account(ledger, "census", pure("3"))
    with pytest.raises(RequestError, match="thousands of digits"):
        pay(ledger, Budget("pure", Fraction(1, 7**4000)))
    assert len(read_history(ledger, "census")) == 1


AMOUNTS = st.fractions(min_value=Fraction(1, 50), max_value=2, max_denominator=50)
REQUESTS = st.tuples(
    st.sampled_from(["pure", "zcdp"]),
    AMOUNTS,
    st.sampled_from(["", "a", "b"]),
    st.sampled_from([None, Part("state", "GA"), Part("state", "TX"), Part("sex", "f")]),
)
PARTS = st.sampled_from([None, STATES, Parts("sex", ("f", "m"))])


@settings(max_examples=25)
@given(
    st.sampled_from(["pure", "zcdp"]),
    AMOUNTS,
    st.lists(REQUESTS, max_size=12),
    PARTS,
    st.integers(0, 12),
)
def test_whatever_is_asked_the_account_holds_together(
    definition: Definition,
    total: Fraction,
    requests: list[tuple[Definition, Fraction, str, Part | None]],
    parts: Parts | None,
    migrated_after: int,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = str(Path(folder) / "ledger.db")
        create_account(
            ledger, "census", Budget(definition, total), parts=None if migrated_after else parts
        )
        receipts = []
        for turn, (asked, amount, key, part) in enumerate(requests, 1):
            if turn == migrated_after:
                migrate_account(ledger, "census", parts=parts)
            before = summarise(read_history(ledger, "census"))
            try:
                entry = pay(ledger, Budget(asked, amount), key=key, part=part)
            except TallytreeError:
                assert summarise(read_history(ledger, "census")) == before
                continue
            receipts.append(entry.receipt())
            assert entry.charge <= before.remaining
            assert entry.charge <= (amount if asked == definition else amount**2 / 2)
        history = read_history(ledger, "census")
        assert check_history(history, receipts) == []
        assert loss_of_worst_unit(history, definition) <= history[-1].spent <= total


def loss_of_worst_unit(history: list[Entry], definition: Definition) -> Fraction:
    """The slow, obvious account: a unit lies in one part of each partition; add up what touched it,
    for the worst unit.
    """
    cost = {
        entry: entry.amount if entry.definition == definition else entry.amount**2 / 2
        for entry in history[1:]
    }
    states, sexes = ["GA", "TX", "elsewhere"], ["f", "m"]
    return max(
        sum(
            (
                loss
                for entry, loss in cost.items()
                if entry.part_of is None
                or entry.part == {"state": state, "sex": sex}[entry.part_of]
            ),
            Fraction(0),
        )
        for state in states
        for sex in sexes
    )
