"""``gateway pair`` beside a gateway that runs or not: admits by code, lists, removes."""

import json
import os

import anyio
import pytest

from adapters.contract import Place
from gateway.cli.exits import Exit
from gateway.state.access import Admissions
from gateway.state.clock import utc_now
from gateway.state.database import open_database

ASKED = Place("telegram", "12345")


@pytest.fixture
def code(gateway):
    """A code that somebody was given."""

    async def issue():
        async with open_database(f"{gateway.home}/gateway.db") as database:
            return await Admissions(database, utc_now).issue(ASKED, "12345")

    return anyio.run(issue)


def test_a_code_admits_once_and_the_admission_is_listed_and_removed(gateway, code):
    typed = f"{code[:4]}-{code[4:].lower()}"

    admitted = gateway("pair", typed, "--role", "admin")
    again = gateway("pair", code)
    listed = json.loads(gateway("pair", "--list", "--json").stdout)
    removed = gateway("pair", "--remove", "telegram:12345")

    assert admitted.stdout == "Admitted telegram:12345 as admin. Undo it with: gateway pair --remove telegram:12345\n"
    assert (again.returncode, again.stdout) == (Exit.ERROR, "")
    assert again.stderr.startswith("gateway: No such code is open")
    assert [(who["adapter"], who["user"], who["role"], who["admitted_by"]) for who in listed] == [
        ("telegram", "12345", "admin", "operator")
    ]
    assert removed.stdout == "telegram:12345 is admitted no longer.\n"
    assert gateway("pair", "--list").stdout.startswith("Nobody was admitted by a code.")


def test_without_a_database_nobody_is_admitted_and_none_is_made(gateway):
    wrong = gateway("pair", "ABCD2345")
    removed = gateway("pair", "--remove", "telegram:1")

    assert (wrong.returncode, removed.returncode) == (Exit.ERROR, Exit.ERROR)
    assert "telegram:1 was not admitted by a code, and nothing was changed." in removed.stderr
    assert gateway("pair", "--list").returncode == Exit.OK
    assert not os.path.exists(f"{gateway.home}/gateway.db")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give one of: a code, --list, --remove PLATFORM:ID"),
        (["ABCD2345", "--list"], "give one of"),
        (["--list", "--role", "admin"], "--role goes with a code"),
        (["ABCD2345", "--json"], "--json goes with --list"),
        (["--remove", "12345"], "--remove takes a platform and an id"),
    ],
)
def test_a_mistake_is_said_and_exits_with_2(gateway, arguments, said):
    result = gateway("pair", *arguments)

    assert result.returncode == Exit.USAGE
    assert said in result.stderr
