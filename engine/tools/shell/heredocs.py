"""Here-documents, taken out of a script so that only their redirect is left in it.

`cat <<EOF >out; ls` and two here-documents on one line are everyday shell that the grammar does not read. With each
body cut out and `<<EOF` written as `< MARK0MARK` the rest is ordinary; the mark is a private character no script holds.
"""

from dataclasses import dataclass

from engine.tools.shell.nodes import Node

HEREDOC_MARK = "\ue000"

END_OF_WORD = frozenset(b" \t\n|&;()<>")


@dataclass(frozen=True, slots=True)
class Heredoc:
    """A body, and whether the shell expands it (its delimiter was not quoted)."""

    body: str
    expands: bool


@dataclass(frozen=True, slots=True)
class Cut:
    """A source without one here-document."""

    source: bytes
    heredoc: Heredoc
    doubt: str | None


@dataclass(frozen=True, slots=True)
class _Delimiter:
    text: bytes
    quoted: bool
    end: int


def heredoc_number(path: str) -> int | None:
    """Which here-document a redirect's target stands for; None for an ordinary file."""
    digits = path.strip(HEREDOC_MARK)
    return int(digits) if path.startswith(HEREDOC_MARK) and digits.isascii() and digits.isdigit() else None


def without_bodies(source: bytes) -> bytes:
    """The text without what looks like here-documents: a quick guess, for judging how laborious a text is."""
    kept: list[bytes] = []
    end: bytes | None = None
    for line in source.split(b"\n"):
        if end is not None:
            end = None if line.lstrip(b"\t") == end else end
            continue
        kept.append(line)
        operator = line.find(b"<<")
        delimiter = _read_delimiter(line, operator + len(b"<<")) if operator >= 0 else None
        end = delimiter.text.removeprefix(b"-") if delimiter else None
    return b"\n".join(kept)


def cut_heredoc(source: bytes, operator: Node, number: int) -> Cut | None:
    """Take the here-document of this `<<` out of the source; None where its delimiter cannot be read."""
    # The grammar may hand text before the operator to its token: `x<<EOF` without a blank.
    start = operator.end - len(operator.type)
    delimiter = _read_delimiter(source, operator.end)
    if delimiter is None or source[start : operator.end] != operator.type.encode():
        return None
    line_end = source.find(b"\n", delimiter.end)
    line_end = len(source) if line_end < 0 else line_end
    rest = source[delimiter.end : line_end]
    body_end, next_line, doubt = _find_end(source, line_end + 1, delimiter, tabs=operator.type == "<<-")
    mark = f"< {HEREDOC_MARK}{number}{HEREDOC_MARK}".encode()
    body = source[line_end + 1 : body_end].decode("utf-8", "surrogateescape")
    return Cut(
        source=source[:start] + mark + rest + b"\n" + source[next_line:],
        heredoc=Heredoc(body, expands=not delimiter.quoted),
        doubt=doubt or _line_doubt(rest),
    )


def _read_delimiter(source: bytes, start: int) -> _Delimiter | None:
    at = start
    while source[at : at + 1] in {b" ", b"\t"}:
        at += 1
    text = bytearray()
    quoted = False
    while at < len(source) and source[at] not in END_OF_WORD:
        character = source[at : at + 1]
        if character in {b"'", b'"'}:
            end = source.find(character, at + 1)
            inside = source[at + 1 : end]
            if end < 0 or b"\n" in inside or b"\\" in inside:
                return None
            text += inside
            quoted, at = True, end + 1
        elif character == b"\\":
            text += source[at + 1 : at + 2]
            quoted, at = True, at + 2
        elif character in {b"$", b"`"}:
            return None
        else:
            text += character
            at += 1
    return _Delimiter(bytes(text), quoted, at) if (text or quoted) and b"\n" not in text else None


def _find_end(source: bytes, start: int, delimiter: _Delimiter, *, tabs: bool) -> tuple[int, int, str | None]:
    """Where the body ends, where the script goes on, and any doubt about it."""
    at = min(start, len(source))
    continued = False
    while at < len(source):
        line_end = source.find(b"\n", at)
        line_end = len(source) if line_end < 0 else line_end
        line = source[at:line_end]
        if (line.lstrip(b"\t") if tabs else line) == delimiter.text:
            doubt = "a here-document's last line is continued" if continued else None
            return at, min(line_end + 1, len(source)), doubt
        continued = not delimiter.quoted and line.endswith(b"\\")
        at = line_end + 1
    return len(source), len(source), "a here-document does not end"


def _line_doubt(rest: bytes) -> str | None:
    """Quotes, groups and comments behind `<<EOF` may hold the line end that the body seems to follow."""
    balanced = rest.count(b"(") == rest.count(b")") and all(rest.count(quote) % 2 == 0 for quote in (b"'", b'"', b"`"))
    if balanced and not rest.endswith(b"\\") and b"#" not in rest:
        return None
    return "a here-document starts on a line that is hard to read"
