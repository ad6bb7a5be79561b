"""Gestures on a directory tree, the same for a person's hand, for a script of the agent's, and for the prediction.

This file is also the text of the scripts that the agent runs (``python3 - <<EOF``), so it imports the standard library
alone. A gesture is a tuple of a word and its arguments; each does something sensible in every state of the tree:
whatever stands in the way of a new path is replaced. Paths are bytes below the current directory.
"""

import os
import shutil

FILE_MODES = (0o644, 0o755, 0o600, 0o444)
DIRECTORY_MODES = (0o755, 0o700, 0o750)
# What makes git, and Takeback, take a directory for a repository.
REPOSITORY = {b"HEAD": b"ref: refs/heads/main\n", b"config": b"[core]\n\tbare = false\n"}
REPOSITORY_DIRECTORIES = (b"objects", b"refs")


def perform(gesture):
    """Do one gesture in the current directory."""
    word, path, *rest = gesture
    globals()["do_" + word](path, *rest)


def do_write(path, content):
    make_room(path)
    if is_directory(path) or os.path.islink(path):
        do_remove(path)
    elif os.path.lexists(path):
        # A file that may not be written by its mode is written by its owner all the same; the mode stays.
        mode = os.stat(path).st_mode & 0o7777
        os.chmod(path, mode | 0o200)
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, mode)
        return
    with open(path, "wb") as file:
        file.write(content)


def do_remove(path):
    if reaches_through(path):
        return
    if is_directory(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def do_mkdir(path):
    make_room(path + b"/.")


def do_link(path, target):
    make_room(path)
    do_remove(path)
    os.symlink(target, path)


def do_chmod(path, number):
    if reaches_through(path):
        return
    if is_directory(path):
        os.chmod(path, DIRECTORY_MODES[number % len(DIRECTORY_MODES)])
    elif os.path.isfile(path) and not os.path.islink(path):
        os.chmod(path, FILE_MODES[number % len(FILE_MODES)])


def do_move(path, to):
    if not os.path.lexists(path) or path == to or (to + b"/").startswith(path + b"/") or reaches_through(path):
        return
    if (path + b"/").startswith(to + b"/"):
        return
    make_room(to)
    do_remove(to)
    os.rename(path, to)


def do_nest(path):
    do_mkdir(path)
    do_mkdir(path + b"/.git")
    for name, content in REPOSITORY.items():
        do_write(path + b"/.git/" + name, content)
    for name in REPOSITORY_DIRECTORIES:
        do_mkdir(path + b"/.git/" + name)


def make_room(path):
    """Make every directory above a path, in place of whatever else stands there."""
    parts = path.split(b"/")
    for depth in range(1, len(parts)):
        parent = b"/".join(parts[:depth])
        if not is_directory(parent):
            if os.path.lexists(parent):
                os.unlink(parent)
            os.mkdir(parent)


def is_directory(path):
    return os.path.isdir(path) and not os.path.islink(path)


def reaches_through(path):
    """Whether a path leads through a symlink."""
    parts = path.split(b"/")
    return any(os.path.islink(b"/".join(parts[:depth])) for depth in range(1, len(parts)))
