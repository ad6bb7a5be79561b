"""One writer at a time below a root, also between processes: what touches excludes, what lies apart does not."""

import os
from pathlib import Path

import pytest

from engine.errors import StorageFailed
from engine.store.claims import Claims


@pytest.fixture
def claims(tmp_path: Path) -> Claims:
    return Claims(str(tmp_path / "writers"))


@pytest.mark.parametrize(("one", "other"), [("/w", "/w"), ("/w", "/w/app"), ("/w", "/w/a/b")])
def test_roots_that_touch_have_one_claim_and_it_says_whose(claims: Claims, one: str, other: str) -> None:
    outer, inner = claims.make(one, "the chat A"), claims.make(other, "the chat B")
    assert outer.take() is None
    assert (inner.take() or "").startswith(f"process {os.getpid()} (the chat A, since ")

    outer.give_back()
    assert inner.take() is None
    assert outer.take() is not None
    inner.give_back()

    assert outer.take() is None
    outer.give_back()


def test_roots_apart_are_claimed_beside_each_other(claims: Claims) -> None:
    beside = [claims.make(root, "somebody") for root in ("/w/a", "/w/b", "/w-other")]

    assert [claim.take() for claim in beside] == [None, None, None]
    for claim in beside:
        claim.give_back()


def test_a_claim_is_taken_once_and_given_back_once(claims: Claims) -> None:
    claim = claims.make("/w", "A")

    assert [claim.take(), claim.take()] == [None, None]
    assert claims.make("/w", "B").find_holder() is not None
    claim.give_back()
    claim.give_back()

    assert claims.make("/w", "B").find_holder() is None


def test_lock_files_that_cannot_be_made_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StorageFailed, match="file"):
        Claims(str(tmp_path / "file" / "writers")).make("/w", "A").take()
