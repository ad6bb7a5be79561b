"""``gateway pair``: who is admitted besides those that the configuration names."""

import os
from typing import TYPE_CHECKING

import click

from gateway.cli import opening
from gateway.cli.exits import Exit, ending
from gateway.cli.plain import print_json

if TYPE_CHECKING:
    from gateway.state.access import Admission


@click.command(
    epilog=ending(
        "gateway pair ABCD2345",
        "gateway pair ABCD2345 --role admin",
        "gateway pair --list",
        "gateway pair --remove telegram:12345",
    )
)
@click.argument("code", required=False)
@click.option(
    "--role",
    type=click.Choice(["user", "admin"]),
    help="What the person may do (default: user); an admin admits others.",
)
@click.option("--list", "lists", is_flag=True, help="List who was admitted this way.")
@click.option(
    "--remove", metavar="PLATFORM:ID", help="Admit somebody no longer; holds at once, also while the gateway runs."
)
@click.option("--json", "as_json", is_flag=True, help="With --list: print JSON for scripts.")
def command(code: str | None, role: str | None, *, lists: bool, remove: str | None, as_json: bool) -> Exit:
    """Admit somebody by the code they were given.

    Whoever writes to the bot without being admitted is given a code, which is good for ten minutes and once. They are
    told when they are admitted. Whom the configuration names needs no code and is not listed.
    """
    if sum((code is not None, lists, remove is not None)) != 1:
        raise click.UsageError("give one of: a code, --list, --remove PLATFORM:ID")
    if role is not None and code is None:
        raise click.UsageError("--role goes with a code")
    if as_json and not lists:
        raise click.UsageError("--json goes with --list")
    if lists:
        return _list(as_json=as_json)
    return _admit(code, role or "user") if code is not None else _remove(remove or "")


def _admit(code: str, role: str) -> Exit:
    import anyio

    from gateway.access.pairing import redeem
    from gateway.commands.pair import NO_SUCH_CODE
    from gateway.state.access import Role

    admission = anyio.run(redeem, opening.home().database, code, Role(role)) if _has_database() else None
    if admission is None:
        click.echo(f"gateway: {NO_SUCH_CODE}", err=True)
        return Exit.ERROR
    click.echo(f"Admitted {_who(admission)} as {role}. Undo it with: gateway pair --remove {_who(admission)}")
    return Exit.OK


def _list(*, as_json: bool) -> Exit:
    import anyio

    from gateway.access.pairing import read_admissions

    admissions = anyio.run(read_admissions, opening.home().database) if _has_database() else []
    if as_json:
        print_json(admissions)
        return Exit.OK
    if not admissions:
        click.echo("Nobody was admitted by a code. Whom config.yaml names under allow and admins needs none.")
    for admission in admissions:
        click.echo(
            f"{_who(admission)}  {admission.role.value:<5}  {admission.admitted_at:%Y-%m-%d %H:%M}"
            f"  by {_printable(admission.admitted_by)}"
        )
    return Exit.OK


def _remove(who: str) -> Exit:
    import anyio

    from gateway.access.pairing import remove

    adapter, _, user = who.partition(":")
    if not (adapter and user):
        raise click.UsageError("--remove takes a platform and an id, as --list shows them: telegram:12345")
    if not (_has_database() and anyio.run(remove, opening.home().database, adapter, user)):
        click.echo(
            f"gateway: {who} was not admitted by a code, and nothing was changed. gateway pair --list shows who was; "
            "whom config.yaml names is removed there.",
            err=True,
        )
        return Exit.ERROR
    click.echo(f"{who} is admitted no longer.")
    return Exit.OK


def _has_database() -> bool:
    """Whether there is one; looking must not make it."""
    return os.path.exists(opening.home().database)


def _who(admission: "Admission") -> str:
    return _printable(f"{admission.adapter}:{admission.user}")


def _printable(text: str) -> str:
    return "".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in text)
