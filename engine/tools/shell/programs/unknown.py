"""Programs nobody here knows: unknown, with the words that look like paths named."""

import re

from engine.tools.shell.programs.desk import Call, Desk
from engine.tools.shell.verdict import shorten
from engine.tools.shell.words import Word, literal_word

FILE_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+*?[]")
LONGEST_PATH = 4096
LONGEST_ENDING = 8

CODE_OPTIONS = frozenset({"-c", "-e", "-E", "-m", "--message", "--eval", "--command", "-p", "--print"})
"""After these stands code or prose, in most programs; a slash in it makes no path of it."""

INTERPRETERS = frozenset({"python", "pypy", "node", "perl", "ruby", "php", "deno", "bun", "lua", "Rscript"})
"""Without the version that some of them carry in their name: `python3.11`."""

_QUOTED_PATH = re.compile(r"""(?P<quote>["'`])(?:file://)?(?P<path>(?:/|~/|\.\.(?:/|(?=["'`])))[^"'`\n]*)(?P=quote)""")
"""A path from the root, the home or upwards that stands as a text in code of nearly any language."""


def judge_unknown(call: Call, desk: Desk) -> None:
    """A program that may do anything."""
    desk.findings.unknown(f"{shorten(call.name)} is not known to be read-only")
    name_likely_paths(call, desk)
    if call.stdin is not None:
        name_paths_in_code(call.stdin.body, call, desk)


def name_likely_paths(call: Call, desk: Desk) -> None:
    """Record the words of an unknown program that are plainly paths."""
    code_follows = False
    takes_code = call.name.rstrip("0123456789.") in INTERPRETERS or call.name == "git"
    for word in call.args:
        path = None if code_follows and takes_code else find_path(word)
        if path:
            desk.findings.name_word(path, call.where, writes=True)
        if call.name != "git":  # what git is given there is prose
            name_paths_in_code(word.text, call, desk)
        code_follows = word.literal and word.text in CODE_OPTIONS


def name_paths_in_code(code: str, call: Call, desk: Desk) -> None:
    """Record what code plainly names beyond the directory that it runs in."""
    for found in _QUOTED_PATH.finditer(code):
        desk.findings.name_word(literal_word(found["path"]), call.where, writes=True)


def find_path(word: Word) -> Word | None:
    """The path an argument is or carries; None where it is plainly something else."""
    text = word.text
    if word.sure and text.startswith("file:///"):
        return literal_word(text.removeprefix("file://"))
    if "://" in text or len(text) > LONGEST_PATH or "\n" in text:
        return None
    if text.startswith("-"):
        value = _option_value(text)
        return Word(word.raw, value, word.sure, glob=word.glob, silent=word.silent) if value else None
    key, equals, value = text.partition("=")
    if equals and key.isidentifier() and "/" in value:
        return Word(word.raw, value, word.sure, glob=word.glob, silent=word.silent)
    if "/" in text:
        return None if _is_prose(text) else word
    return word if word.sure and _is_file_name(text) else None


def _option_value(text: str) -> str:
    """The path in `--opt=/path`, `-C/path`; "" for none."""
    _name, equals, value = text.partition("=")
    if not equals:
        value = text[2:] if not text.startswith("--") else ""
    return value if is_plainly_path(value) and not _is_prose(value) else ""


def is_plainly_path(text: str) -> bool:
    """Whether a text can hardly be anything but a path: it has a slash in it, or leads upwards."""
    return "/" in text or text == ".."


def _is_prose(text: str) -> bool:
    """Whether a text with a slash in it reads like a sentence rather than a path."""
    rooted = text.startswith(("/", "./", "../", "~")) or "../" in text
    return " " in text and not rooted


def _is_file_name(text: str) -> bool:
    if text in {".", ".."}:
        return True
    stem, dot, ending = text.rpartition(".")
    short = 0 < len(ending) <= LONGEST_ENDING and ending[0].isalpha()
    return bool(dot and stem) and short and FILE_NAME_CHARACTERS.issuperset(text)
