"""Several hundred commands from manuals and everyday work, each with its verdict."""

import pytest

from tests.engine.shell.tables import exceptions, git, reading, wrapping, writing

READ_ONLY = [*reading.READ_ONLY, *git.READ_ONLY, *wrapping.READ_ONLY]
UNKNOWN = [*exceptions.UNKNOWN, *git.UNKNOWN, *wrapping.UNKNOWN]
DESTRUCTIVE = [*exceptions.DESTRUCTIVE, *git.DESTRUCTIVE, *writing.DESTRUCTIVE]


@pytest.mark.parametrize("command", READ_ONLY)
def test_what_only_reads_is_read_only(judge, command):
    assert judge(command).verdict == "read-only", judge(command).reason


@pytest.mark.parametrize("command", UNKNOWN)
def test_what_may_do_more_is_unknown(judge, command):
    assert judge(command).verdict == "unknown", judge(command).reason


@pytest.mark.parametrize("command", DESTRUCTIVE)
def test_what_certainly_changes_files_is_destructive(judge, command):
    assert judge(command).verdict == "destructive", judge(command).reason


def test_no_command_stands_in_two_tables():
    every = [*READ_ONLY, *UNKNOWN, *DESTRUCTIVE]

    assert len(every) == len(set(every))
    assert len(every) > 900
