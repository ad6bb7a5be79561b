r"""The text of `$'…'`, where a backslash writes characters that are hard to type."""

from engine.tools.shell.braces import Atom, Kind

SIMPLE = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "?": "?",
}

HEX_LENGTH = {"x": 2, "u": 4, "U": 8}

LAST_ASCII = 0x7F


def decode_ansi(body: str) -> Atom:
    r"""The quoted text of a `$'…'` body, or a hole where it holds an escape with an unusual meaning.

    Bytes above ASCII and control characters written as `\c…` are left to the shell: what they make depends on the
    locale, and no path or option of interest needs them.
    """
    out: list[str] = []
    at = 0
    while at < len(body):
        if body[at] != "\\":
            out.append(body[at])
            at += 1
            continue
        character, at = _escape(body, at + 1)
        if character is None:
            return Atom("", Kind.HOLE)
        out.append(character)
    return Atom("".join(out), Kind.QUOTED)


def _escape(body: str, at: int) -> tuple[str | None, int]:
    letter = body[at : at + 1]
    if letter in SIMPLE:
        return SIMPLE[letter], at + 1
    if letter in HEX_LENGTH:
        return _code_point(body, at + 1, "0123456789abcdefABCDEF", HEX_LENGTH[letter], 16)
    return _code_point(body, at, "01234567", 3, 8)


def _code_point(body: str, start: int, alphabet: str, longest: int, base: int) -> tuple[str | None, int]:
    end = start
    while end < min(len(body), start + longest) and body[end] in alphabet:
        end += 1
    value = int(body[start:end], base) if end > start else 0
    return (chr(value) if 0 < value <= LAST_ASCII else None), end
