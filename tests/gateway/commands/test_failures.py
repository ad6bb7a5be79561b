"""Every error of the engine has one chat sentence."""

import inspect

import pytest

from engine import errors
from engine.errors import (
    BadSelection,
    CaptureFailed,
    EngineError,
    GitFailed,
    GitUnavailable,
    ImportRefused,
    NestedRepositoryRefused,
    RestoreRefused,
    SafetyFailed,
    StorageFailed,
    StoreBusy,
    StoreDamaged,
    ToolRefused,
    UnknownCheckpoint,
    WorkspaceRefused,
)
from gateway.commands.failures import SENTENCES, sentence

EXAMPLES = [
    GitUnavailable("not found in /usr/bin"),
    GitFailed("write-tree", "fatal: disk full"),
    GitFailed("add", "after 120 s", timed_out=True),
    StoreDamaged("objects/ab is missing"),
    StorageFailed("/home/me/.takeback/checkpoints/store/HEAD", "No space left on device"),
    StoreBusy("/home/me/.takeback/.checkpoints.lock", "process 12 (gateway prune)", 10.0),
    WorkspaceRefused("/", "it is the whole machine"),
    ImportRefused("/home/me/other", "it borrows objects from elsewhere"),
    CaptureFailed("/home/me/app", "more than 50,000 source files"),
    UnknownCheckpoint("abcd", "there is none by that id; it may have been pruned"),
    RestoreRefused("a turn is running"),
    NestedRepositoryRefused(["tool", "vendor/x"]),
    BadSelection("../x", "leads out of the workspace"),
    SafetyFailed("no space left on device"),
    ToolRefused("notes.md", "is a directory"),
]


def test_table_is_complete() -> None:
    every = {
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, EngineError) and kind is not EngineError
    }

    assert set(SENTENCES) == every
    assert {type(example) for example in EXAMPLES} == every


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_sentence_is_one_line_with_the_errors_own_facts(error: EngineError) -> None:
    said = sentence(error)

    assert "\n" not in said
    facts = [value for value in vars(error).values() if isinstance(value, str) and not value.endswith(".lock")]
    assert all(fact in said for fact in facts)


def test_nested_repositories_are_named_and_nothing_is_said_to_have_changed() -> None:
    said = sentence(NestedRepositoryRefused(["tool", "vendor/x"]))

    assert "nothing was changed" in said
    assert "tool, vendor/x" in said
    assert "/rollback <N> <file>" in said


def test_error_that_the_table_does_not_know_is_said_in_its_own_words() -> None:
    assert sentence(EngineError("something new\nhappened")) == "something new happened"


def test_subclass_has_its_parents_sentence() -> None:
    class OtherRefusal(RestoreRefused):
        pass

    assert sentence(OtherRefusal("because")) == "Refused, nothing was changed: because"


def test_hostile_names_are_shown_escaped() -> None:
    said = sentence(BadSelection("a\nb\x1b[31m\udcff", "matches no file"))

    assert said.startswith("a\\nb\\x1b[31m\\xff: matches no file")
