"""Commands that look as if they only read and do not, or may not.

Each can change, run or hide something; none may be called read-only. What they rely on stands beside them.
"""

import pytest

from tests.engine.shell.tables.hostile import HOSTILE

CASES = [command for group in HOSTILE.values() for command in group]


@pytest.mark.parametrize("command", CASES)
def test_a_disguised_command_is_never_read_only(judge, command):
    assert judge(command).verdict != "read-only"


def test_words_behind_two_dashes_are_no_options(judge):
    assert judge("sort -- -o out").verdict == "read-only"


def test_there_are_enough_disguises():
    assert len(CASES) > 200
