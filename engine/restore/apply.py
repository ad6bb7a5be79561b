"""Doing what a plan says, one path after the other, so that doing it twice does no more than doing it once.

Before each step the path is looked at again: what already is as the checkpoint holds it is done, what is no longer as
the plan saw it is left alone and reported. Deletions come first, deepest first; then what has to be made, from the
top; the permission bits of directories last, and those are open until then, so that a read-only one does not stand in
the way of its own content.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from engine.checkpoints.standing import look_at
from engine.errors import StoreDamaged
from engine.host.files import ContentChanged, Signature, Tree
from engine.host.paths import PathUnsafe
from engine.model import EFFECTIVE, Action, Entry, EntryKind, PathNote
from engine.store.journal import JournalItem
from engine.store.reader import ObjectReader

_CHANGED = "changed during the restore, left as it is"
_OPEN_DIRECTORY_BITS = 0o700
_FAILURES = (OSError, PathUnsafe, ContentChanged, StoreDamaged)


@dataclass(slots=True)
class Outcome:
    """What became of each path."""

    done: list[JournalItem] = field(default_factory=list)
    failed: list[PathNote] = field(default_factory=list)


def apply_items(tree: Tree, reader: ObjectReader, items: Iterable[JournalItem]) -> Outcome:
    """Bring every path to what its item's target says; never raises for a single path."""
    outcome = Outcome()
    effective = [item for item in items if item.action in EFFECTIVE]
    opened = _open_directories(tree, effective)
    for item in sorted((i for i in effective if i.action == Action.DELETE), key=lambda i: i.path, reverse=True):
        _attempt(tree, item, outcome, partial(_delete, tree, item))
    made = sorted((i for i in effective if i.action != Action.DELETE), key=lambda i: i.path)
    for item in made:
        _attempt(tree, item, outcome, partial(_restore, tree, reader, item))
    finished = [i for i in outcome.done if i.target is not None and i.target.kind is EntryKind.DIRECTORY]
    for item in reversed(finished):
        _finish_directory(tree, item, outcome)
    _shut_again(tree, opened, outcome)
    return outcome


def _open_directories(tree: Tree, items: Iterable[JournalItem]) -> list[JournalItem]:
    """Open the directories of a plan that their owner may not write in, from the top, as long as it is under way."""
    opened = []
    for item in sorted(items, key=lambda i: i.path):
        with suppress(*_FAILURES):
            signature = tree.signature(item.path)
            if signature is not None and signature.is_directory and _is_shut(item, signature.mode):
                tree.change_mode(item.path, signature.mode | _OPEN_DIRECTORY_BITS, expected=signature)
                opened.append(item)
    return opened


def _is_shut(item: JournalItem, mode: int) -> bool:
    """Whether a directory is as shut as the plan saw it; also of what a crash left open, so that it is shut again."""
    if item.now is None or item.now.kind is not EntryKind.DIRECTORY:
        return False
    shut = item.now.mode
    return shut & _OPEN_DIRECTORY_BITS != _OPEN_DIRECTORY_BITS and mode in (shut, shut | _OPEN_DIRECTORY_BITS)


def _shut_again(tree: Tree, opened: Iterable[JournalItem], outcome: Outcome) -> None:
    """Give those their modes back that stay although they were to go."""
    done = {item.path for item in outcome.done}
    for item in reversed([i for i in opened if i.path not in done]):
        with suppress(*_FAILURES):
            signature = tree.signature(item.path)
            if signature is not None and signature.is_directory and item.now is not None:
                tree.change_mode(item.path, item.now.mode, expected=signature)


def _attempt(tree: Tree, item: JournalItem, outcome: Outcome, step: Callable[[], bool]) -> None:
    try:
        done = step()
    except ContentChanged:
        outcome.failed.append(PathNote(item.path, _CHANGED))
    except PathUnsafe as error:
        outcome.failed.append(PathNote(item.path, error.reason))
    except StoreDamaged as error:
        outcome.failed.append(PathNote(item.path, error.what))
    except OSError as error:
        if _stands(tree, item):  # all but making it durable was done
            outcome.done.append(item)
        else:
            outcome.failed.append(PathNote(item.path, error.strerror or str(error)))
    else:
        if done:
            outcome.done.append(item)


def _stands(tree: Tree, item: JournalItem) -> bool:
    """Whether a path is as its item's target says, but for the mode of a directory, which comes last."""
    try:
        state = look_at(tree, item.path)[1]
    except _FAILURES:
        return False
    directories = [entry is not None and entry.kind is EntryKind.DIRECTORY for entry in (state, item.target)]
    return all(directories) or state == item.target


def _delete(tree: Tree, item: JournalItem) -> bool:
    """Remove what stands at a path; whether nothing does any more."""
    signature, state = look_at(tree, item.path)
    if state is None:
        return True
    if state.kind is EntryKind.DIRECTORY:
        # What is left inside failed, was not captured, or is kept; then the directory stays with it, and stays the
        # agent's: noted as deleted it would count as made by hand.
        return tree.remove_directory(item.path)
    _require(item, signature, state)
    tree.remove_file(item.path, expected=signature)
    return True


def _restore(tree: Tree, reader: ObjectReader, item: JournalItem) -> bool:
    _bring_back(tree, reader, item)
    return True


def _bring_back(tree: Tree, reader: ObjectReader, item: JournalItem) -> None:
    target = item.target
    if target is None:
        return
    signature, state = look_at(tree, item.path)
    if state == target:
        return
    if target.kind is EntryKind.DIRECTORY:
        _restore_directory(tree, reader, item, signature, state)
        return
    tree.ensure_parents(item.path)
    was_directory = item.now is not None and item.now.kind is EntryKind.DIRECTORY
    if state is not None and state.kind is EntryKind.DIRECTORY:
        with _put_back_on_failure(tree, reader, item.path, state):
            if not was_directory or not tree.remove_directory(item.path):
                raise ContentChanged(item.path, signature)
            _put(tree, reader, item.path, target, None, None)
        return
    if not (was_directory and state is None):  # a crash may have come between removing it and what takes its place
        _require(item, signature, state)
    _put(tree, reader, item.path, target, signature, state)


@contextmanager
def _put_back_on_failure(tree: Tree, reader: ObjectReader, path: str, gone: Entry | None) -> Iterator[None]:
    """Put back what had to go first when what was to take its place cannot; else a retry would miss it."""
    try:
        yield
    except _FAILURES:
        with suppress(*_FAILURES):
            if gone is not None and gone.kind is EntryKind.DIRECTORY:
                tree.make_directory(path, gone.mode)
            elif gone is not None:
                _put(tree, reader, path, gone, None, None)
        raise


def _put(
    tree: Tree, reader: ObjectReader, path: str, target: Entry, signature: Signature | None, state: Entry | None
) -> None:
    oid = target.oid
    if oid is None:
        raise StoreDamaged("the checkpoint names no content")
    if target.kind is EntryKind.SYMLINK:
        tree.write_link(path, reader.read(oid), expected=signature)
    elif state is not None and state.kind is EntryKind.FILE and state.oid == oid:
        tree.change_mode(path, target.mode, expected=signature)
    else:
        tree.write_file(path, reader.chunks(oid), target.mode, expected=signature)


def _restore_directory(
    tree: Tree, reader: ObjectReader, item: JournalItem, signature: Signature | None, state: Entry | None
) -> None:
    if state is not None and state.kind is EntryKind.DIRECTORY:
        return
    tree.ensure_parents(item.path)
    if state is not None:
        _require(item, signature, state)
    mode = item.target.mode if item.target is not None else 0
    with _put_back_on_failure(tree, reader, item.path, state):
        if state is not None:
            tree.remove_file(item.path, expected=signature)
        tree.make_directory(item.path, mode | _OPEN_DIRECTORY_BITS)


def _finish_directory(tree: Tree, item: JournalItem, outcome: Outcome) -> None:
    target = item.target
    if target is None:
        return
    try:
        signature = tree.signature(item.path)
        if signature is not None and signature.is_directory and signature.mode != target.mode:
            tree.change_mode(item.path, target.mode)
    except (OSError, PathUnsafe, ContentChanged) as error:
        outcome.done.remove(item)
        outcome.failed.append(PathNote(item.path, str(error)))


def _require(item: JournalItem, signature: Signature | None, state: Entry | None) -> None:
    """Go on only if what stands there is what the plan saw."""
    if state != item.now:
        raise ContentChanged(item.path, signature)
