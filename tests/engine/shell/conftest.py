"""What the tests of command understanding share: one imaginary workspace, and a judge of commands in it."""

from collections.abc import Callable

import pytest

from engine.tools.shell import Understanding, understand

ROOT = "/w/app"
HOME = "/home/user"


@pytest.fixture
def judge() -> Callable[[str], Understanding]:
    """Understand a command at the root of a workspace at /w/app, for a user whose home is /home/user."""

    def understand_there(command: str) -> Understanding:
        return understand(command, cwd=ROOT, root=ROOT, home=HOME)

    return understand_there
