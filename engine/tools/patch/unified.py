"""Reading unified diffs, as git and diff(1) write them, to the byte.

Of our own, because the maintained parser (unidiff) drops what follows a hunk whose header counts too few lines, leaves
git's quoted names quoted, knows no modes, and wants every ``@@`` numbered; here nothing may be lost without a word.
"""

import re
from dataclasses import dataclass, field

from engine.errors import ToolRefused
from engine.tools.patch.lines import show_line, split_lines

_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_UNNUMBERED = re.compile(rb"@@( \.\.\.)?( @@.*)?$", re.DOTALL)
_MODE = re.compile(rb"(old mode|new mode|deleted file mode|new file mode) ([0-7]{6})$")
_MOVE = re.compile(rb"(rename|copy) (from|to) (.+)$", re.DOTALL)
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_ESCAPE = re.compile(rb'\\(?:([0-7]{3})|([abfnrtv"\\]))')
_ESCAPED = {b"a": 7, b"b": 8, b"f": 12, b"n": 10, b"r": 13, b"t": 9, b"v": 11, b'"': 34, b"\\": 92}
_SIGNATURE = b"-- "  # what git format-patch ends with
_MODES = {b"100644", b"100755"}


@dataclass(frozen=True, slots=True)
class Hunk:
    r"""The lines that have to stand in the file and those that come there instead.

    ``start`` is the index of the first one by the header, ``None`` where the header has no numbers. ``windows`` says
    that the header itself ends in ``\r\n``: the text of the diff was converted, so its line ends mean nothing.
    """

    header: str
    start: int | None
    old: list[bytes]
    new: list[bytes]
    windows: bool = False


@dataclass(slots=True)
class FilePatch:
    """What a diff says of one file; a side that is no file (``/dev/null``) is ``None``.

    Names from git are without its prefixes; of those from a plain diff nothing is known, they are as written.
    ``moves`` is ``rename`` or ``copy``, ``executable`` what a mode line asks for. ``part`` counts the mails that the
    patch consists of: git means the content before the whole of a part by a file that is renamed or copied.
    """

    git: bool
    old: str | None = None
    new: str | None = None
    creates: bool = False
    deletes: bool = False
    moves: str | None = None
    executable: bool | None = None
    hunks: list[Hunk] = field(default_factory=list)
    prefixed: bool = False
    part: int = 0


def has_headers(patch: bytes) -> bool:
    """Whether this looks like a unified diff at all."""
    return re.search(rb"^(diff --git |--- [^\n]*\n\+\+\+ )", patch, re.MULTILINE) is not None


def parse_diff(patch: bytes) -> list[FilePatch]:
    """Read every file of a diff; ``ToolRefused`` names the line that cannot be understood."""
    return _Reader(split_lines(patch)).read()


class _Reader:
    """Walks the lines of a diff once."""

    def __init__(self, lines: list[bytes]) -> None:
        self._lines = lines
        self._at = 0
        self._files: list[FilePatch] = []
        self._part = 0
        self._between = True  # before the first file, and after a mail's signature: any text may stand there

    def read(self) -> list[FilePatch]:
        while self._at < len(self._lines):
            self._read_outside()
        return self._files

    def _read_outside(self) -> None:
        """Read one thing that is not inside a hunk."""
        line = _bare(self._lines[self._at])
        if self._is_header():
            self._read_names()
        elif line.startswith(b"@@") and not self._between:
            self._read_hunk(line)
        else:
            if line.startswith(b"diff --git "):
                self._between = False
                self._add(_from_git_line(line[len(b"diff --git ") :]))
            elif line == _SIGNATURE:
                self._between = True
                self._part += 1
            elif not self._between:
                self._read_extended(line)
            self._at += 1

    def _add(self, patch: FilePatch) -> None:
        patch.part = self._part
        self._files.append(patch)

    def _is_header(self) -> bool:
        following = self._lines[self._at + 1 : self._at + 2]
        return self._lines[self._at].startswith(b"--- ") and bool(following) and following[0].startswith(b"+++ ")

    def _read_names(self) -> None:
        old, new = (_bare(line)[4:] for line in self._lines[self._at : self._at + 2])
        self._at += 2
        current = self._files[-1] if self._files else None
        if current is None or self._between or not current.git or current.hunks:
            current = FilePatch(git=False)
            self._add(current)
        self._between = False
        names = [_header_name(name) for name in (old, new)]
        if names == [None, None]:
            raise self._refusal("and the line before it name no file")
        current.creates = current.creates or names[0] is None
        current.deletes = current.deletes or names[1] is None
        if current.moves is None:  # the names in rename and copy lines are the same, without prefixes
            current.old, current.new = (_strip_prefix(name) if current.prefixed else name for name in names)

    def _read_extended(self, line: bytes) -> None:
        """Read a line of git's between the header and the hunks, or something that means nothing."""
        current = self._files[-1]
        mode, move = _MODE.match(line), _MOVE.match(line)
        if current.git and mode:
            self._read_mode(current, mode.group(1), mode.group(2))
        elif current.git and move:
            name = _plain_name(move.group(3))
            current.moves = move.group(1).decode()
            current.old, current.new = (name, current.new) if move.group(2) == b"from" else (current.old, name)
        elif line.startswith((b"GIT binary patch", b"Binary files ")):
            raise self._refusal("is a binary patch, which cannot be applied here; use a command")
        elif line.startswith((b"+", b"-", b" ", b"\\")) and line.strip():
            raise self._refusal("belongs to no hunk; are the numbers in the @@ line before it right?")

    def _read_mode(self, current: FilePatch, what: bytes, mode: bytes) -> None:
        if mode not in _MODES:
            raise self._refusal("is no ordinary file's mode; symbolic links and submodules are not patched")
        current.creates = current.creates or what == b"new file mode"
        current.deletes = current.deletes or what == b"deleted file mode"
        if what.startswith(b"new"):
            current.executable = mode == b"100755"

    def _read_hunk(self, header: bytes) -> None:
        if not self._files or (self._files[-1].old is None and self._files[-1].new is None):
            raise self._refusal("comes before any file is named (--- and +++ lines)")
        numbers = _HUNK.match(header)
        if numbers is None and not _UNNUMBERED.match(header):
            raise self._refusal("is no hunk header; write @@ -LINE,COUNT +LINE,COUNT @@, or only @@ @@")
        counts = None if numbers is None else [int(numbers.group(2) or 1), int(numbers.group(4) or 1)]
        windows = self._lines[self._at].endswith(b"\r\n")
        old, new = self._read_body(counts)
        # An empty side is numbered by the line before it (POSIX diff, "Unified Output").
        start = None if numbers is None else int(numbers.group(1)) - (1 if old else 0)
        self._files[-1].hunks.append(Hunk(show_line(header), start, old, new, windows))

    def _read_body(self, counts: list[int] | None) -> tuple[list[bytes], list[bytes]]:
        """Read the lines of a hunk, as many as its header counts, or as there are."""
        begun = self._at
        self._at += 1
        sides: tuple[list[bytes], list[bytes]] = ([], [])
        touched: tuple[int, ...] = ()
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith(b"\\"):
                for side in touched:
                    sides[side][-1] = sides[side][-1].removesuffix(b"\n")
                self._at += 1
                continue
            if counts is not None and [len(sides[0]), len(sides[1])] == counts:
                break
            found = self._sides_of(line, numbered=counts is not None)
            if found is None:
                break
            touched = found
            for side in touched:
                sides[side].append(_content(line))
            self._at += 1
        if counts is None:
            _drop_blank_end(sides)
        elif [len(sides[0]), len(sides[1])] != counts:
            self._at = begun
            raise self._refusal(
                f"says {counts[0]} old and {counts[1]} new lines, but {len(sides[0])} and {len(sides[1])} follow; "
                "correct the numbers, or write only @@ @@"
            )
        return sides

    def _sides_of(self, line: bytes, *, numbered: bool) -> tuple[int, ...] | None:
        """Say on which sides of a hunk a line stands, 0 old and 1 new; ``None`` where it is no line of a hunk."""
        if not numbered and self._is_header():
            return None
        first = line[:1]
        if first == b" " or not _bare(line):  # mailers and editors take the blank of an empty line away
            return (0, 1)
        if first == b"-":
            return None if not numbered and _bare(line) == _SIGNATURE else (0,)
        return (1,) if first == b"+" else None

    def _refusal(self, reason: str) -> ToolRefused:
        number = min(self._at, len(self._lines) - 1)
        shown = show_line(self._lines[number])
        return ToolRefused(f"line {number + 1} of the patch", f"{shown!r} {reason}. Nothing was changed")


def _bare(line: bytes) -> bytes:
    return line.rstrip(b"\r\n")


def _content(line: bytes) -> bytes:
    """Take the mark off a line of a hunk; the last line of the patch may lack its end, as pasted text does."""
    content = line if not _bare(line) else line[1:]
    return content if content.endswith(b"\n") else content + b"\n"


def _drop_blank_end(sides: tuple[list[bytes], list[bytes]]) -> None:
    while all(side and not _bare(side[-1]) for side in sides):
        for side in sides:
            side.pop()


def _from_git_line(rest: bytes) -> FilePatch:
    """Take the names from ``diff --git``, needed where no ``---`` line follows: empty files, modes alone."""
    quoted = _quoted_pair(rest)
    middle = len(rest) // 2
    if quoted is not None:
        old, new = quoted
    elif rest[middle : middle + 1] == b" ":
        # The names are the same but for prefixes of one length: the blank that parts them is in the middle.
        old, new = rest[:middle], rest[middle + 1 :]
    else:  # two different names: lines that say which is which follow
        return FilePatch(git=True, prefixed=rest.startswith(b"a/"))
    names = _plain_name(old), _plain_name(new)
    # git's prefixes differ (a/ b/, i/ w/, …); the same letter on both sides is a directory, under --no-prefix.
    prefixed = all(name[1:2] == "/" for name in names) and names[0][0] != names[1][0]
    stripped = [_strip_prefix(name) if prefixed else name for name in names]
    return FilePatch(git=True, old=stripped[0], new=stripped[1], prefixed=prefixed)


def _quoted_pair(rest: bytes) -> tuple[bytes, bytes] | None:
    """Part two names of which one at least is quoted; the other holds no quote then. ``None`` where that is not so."""
    first = _QUOTED.match(rest)
    if first is not None:
        old, blank, new = first.group(), rest[first.end() : first.end() + 1], rest[first.end() + 1 :]
    else:
        before, quote, inside = rest.partition(b'"')
        old, blank, new = before[:-1], before[-1:], quote + inside
    whole = _QUOTED.fullmatch(new) if new.startswith(b'"') else new and b'"' not in new
    return (old, new) if old and blank == b" " and whole else None


def _strip_prefix(name: str | None) -> str | None:
    return name and name[2:]


def _header_name(name: bytes) -> str | None:
    plain = _plain_name(name.split(b"\t")[0] if not name.startswith(b'"') else name)
    return None if plain == "/dev/null" else plain


def _plain_name(name: bytes) -> str:
    """Undo the quoting that git gives to odd names (git-config(1), core.quotePath)."""
    if name.startswith(b'"') and b'"' in name[1:]:
        name = _ESCAPE.sub(_unescape, name[1 : name.rindex(b'"')])
    return name.decode("utf-8", "surrogateescape")


def _unescape(match: re.Match[bytes]) -> bytes:
    octal, letter = match.groups()
    return bytes([int(octal, 8) & 0xFF if octal else _ESCAPED[letter]])
