"""Addresses of databases: what is wrong with one is said in a sentence that repeats nothing of its
password.
"""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tallytree.errors import InputError, RequestError, TallytreeError
from tallytree.ingest import read
from tallytree.ledger.accounts import list_accounts
from tallytree.model.address import check_address, secrets_of

PARTS = st.lists(
    st.integers(10**6, 10**7).map(lambda number: f"Zq{number:x}"), min_size=1, max_size=4
)
BETWEEN = st.sampled_from(
    ["@", ":", "/", "?", "#", "[", "]", "%", "%40", "&", "=", "\\", " ", "é", ";", "+"]
)
FORMS = (
    "{scheme}://user:{password}@127.0.0.1:1/base",
    "{scheme}://user:{password}@127.0.0.1:5x{port}/base",
    "{scheme}://user:{password}@",
    "{scheme}://:{password}@127.0.0.1:1",
    "{scheme}://127.0.0.1:1/base?password={password}",
    "{scheme}://127.0.0.1:1/base?user=x&password={password}@127.0.0.1",
)


@given(
    st.sampled_from(FORMS), PARTS, st.lists(BETWEEN, min_size=4, max_size=4), st.integers(0, 10**7)
)
@example("postgresql://user:{password}@127.0.0.1:1/base", ["Zq111111", "Zq222222"], ["@"] * 4, 0)
@example("postgresql://user:{password}@127.0.0.1:5x{port}/base", ["Zq111111"], ["@"] * 4, 0)
@settings(max_examples=40)
def test_no_part_of_a_password_is_shown(
    form: str, parts: list[str], between: list[str], port: int
) -> None:
    password = parts[0] + "".join(sign + part for sign, part in zip(between, parts[1:]))
    address = form.format(scheme="postgresql", password=password, port=port)
    for door in (
        lambda: read(address, group="g", table="t", public="groups"),
        lambda: list_accounts(address),
    ):
        with pytest.raises(TallytreeError) as caught:
            door()
        assert not [part for part in parts if part in str(caught.value)]
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql://user:hidden@host:55x/base", "a port that is no number from 0 to 65535"),
        ("postgresql://user:hidden@host:99999/base", "a port that is no number from 0 to 65535"),
        ("postgresql://user:hidden@host:²/base", "a port that is no number from 0 to 65535"),
        ("postgresql://user:hid@den@host/base", "write @ as %40"),
        ("postgresql://user:hid/den@host/base", "write @ as %40"),
        ("postgresql://user:hid#den@host/base", "write @ as %40"),
        ("postgresql://user:hid?den@host/base", "write @ as %40"),
        ("postgresql://user:hidden@[host/base", "an unfinished [ ] around its host"),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused(address: str, said: str) -> None:
    with pytest.raises(RequestError) as caught:
        check_address(address, "The database")
    assert said in str(caught.value)
    assert "hid" not in str(caught.value)
    with pytest.raises(RequestError, match="The ledger has"):
        list_accounts(address)
    with pytest.raises(RequestError, match="The postgresql database has"):
        read(address, group="g", table="t", public="groups")


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://user:p%40q@host:5432/base",
        "postgresql://user@/base?host=/tmp/socket",
        "postgresql://[::1]:5432/base",
        "postgresql://host",
        "sqlite:////home/user@example/base.db",
        "duckdb:///home/user@example/base.duckdb",
    ],
)
def test_addresses_that_are_right_pass(address: str) -> None:
    check_address(address, "The database")


def test_what_is_secret_of_an_address() -> None:
    assert secrets_of("postgresql://user:p%40q@host/base?password=a%20b&sslpassword=c") == {
        "p%40q", "p@q", "a%20b", "a b", "c",
    }  # fmt: skip
    assert secrets_of("postgresql://user@host/base") == set()


def test_a_driver_that_is_missing_is_named_as_it_can_be_installed() -> None:
    with pytest.raises(InputError) as caught:
        read("mysql://user:hidden@host/base", group="g", table="t", public="groups")
    assert str(caught.value) == (
        "Reading from mysql needs a driver that tallytree does not bring; install Ibis with it: "
        "pip install 'ibis-framework[mysql]'. Or export the table to a Parquet file."
    )
    with pytest.raises(InputError, match="no database that can be read: foo") as caught:
        read("foo://user:hidden@host/base", group="g", table="t", public="groups")
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "*.parquet", "x.xyz", "x.geojson"])
@pytest.mark.parametrize("scheme", ["https", "s3"])
def test_credentials_of_a_remote_file_are_not_shown(scheme: str, name: str) -> None:
    source = f"{scheme}://user:hidden@127.0.0.1:1/folder/{name}?X-Amz-Signature=hidden"
    with pytest.raises(InputError) as caught:
        read(source, group="g", public="groups")
    assert "hidden" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)
