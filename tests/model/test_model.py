"""The state machine at work, the same in every run, and for longer where somebody asks for it.

    python -m tests.model --examples 200 --steps 40 --seed 7

runs as many examples of so many steps from a seed, prints the shortest steps to whatever it finds with all that was
said in the chats, and how much it did. With ``--minutes`` it goes on with the next seeds for so long.
"""

from collections.abc import Iterator

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from tests.model.product import Nursery, nursery
from tests.model.running import run


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal("asyncio") as portal:
        yield portal


@pytest.fixture(scope="module")
def forker() -> Iterator[Nursery]:
    with nursery() as forker:
        yield forker


def test_whatever_is_done_in_whatever_order_is_as_the_model_predicts(portal: BlockingPortal, forker: Nursery) -> None:
    done = run(portal, forker, examples=8, steps=25)

    assert done.steps >= 8 * 10
