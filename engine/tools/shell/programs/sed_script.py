"""sed's own language, read just far enough to know what a script does besides editing its stream.

`w` and `W` write files, `e` runs a program, and each can hide behind an address, in a group or as a flag of `s`.
A script that is not understood to its end is not harmless.
"""

from dataclasses import dataclass, field

SIMPLE = frozenset("=dDgGhHnNpPxzF")
NUMBERED = frozenset("lLqQ")
TEXT = frozenset("aic")
LABELLED = frozenset("btT:v")
READS = frozenset("rR")
WRITES = frozenset("wW")
UNDERSTOOD = SIMPLE | NUMBERED | LABELLED | READS | WRITES | {"{"}
SUBSTITUTE_FLAGS = frozenset("gpiImM0123456789")


@dataclass(slots=True)
class SedScript:
    """What a script reads and writes; `understood` is false where it may do anything."""

    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    understood: bool = True


def read_sed_script(text: str) -> SedScript:
    """Read a script; never fails."""
    script = SedScript()
    reader = _Reader(text, script)
    script.understood = reader.run()
    return script


class _Reader:
    """A place in a script that moves forward, command by command."""

    def __init__(self, text: str, script: SedScript) -> None:
        self._text = text
        self._at = 0
        self._script = script

    def run(self) -> bool:
        while True:
            self._skip(" \t\n;}")
            if self._at >= len(self._text):
                return True
            if self._peek() == "#":
                self._line()
            elif not (self._addresses() and self._command()):
                return False

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        character = self._peek()
        self._at += 1
        return character

    def _skip(self, characters: str) -> None:
        while self._peek() and self._peek() in characters:
            self._at += 1

    def _line(self) -> str:
        end = self._text.find("\n", self._at)
        end = len(self._text) if end < 0 else end
        line, self._at = self._text[self._at : end], end
        return line

    def _text_lines(self) -> bool:
        """The text of `a`, `i` or `c`: to the end of the line, and on while lines end in a backslash."""
        line = self._line()
        while line.endswith("\\") and self._at < len(self._text):
            if line.endswith("\\\\"):
                return False  # whether the next line is text or a command depends on who counts the backslashes
            self._at += 1
            line = self._line()
        return True

    def _addresses(self) -> bool:
        if not self._address():
            return False
        self._skip(" \t")
        if self._peek() == ",":
            self._at += 1
            self._skip(" \t+~")
            if not self._address():
                return False
        self._skip(" \t!")
        return True

    def _address(self) -> bool:
        character = self._peek()
        if character == "\\":
            self._at += 1
            character = self._peek()
        elif character != "/":
            self._skip("0123456789$~")
            return True
        if not character or character in "\\\n":
            return False
        self._at += 1
        if not self._delimited(character, pattern=True):
            return False
        self._skip("IM")
        return True

    def _delimited(self, delimiter: str, *, pattern: bool) -> bool:
        """Move past a delimiter that no backslash quotes, and in a pattern no bracket expression holds."""
        while self._at < len(self._text):
            character = self._take()
            if character == delimiter:
                return True
            if character == "\\":
                self._at += 1
            elif character == "[" and pattern:
                inside = self._bracket()
                if delimiter in _without_escapes(inside):
                    if "[" in inside:
                        return False
                    self._at += len(inside)
        return False

    def _bracket(self) -> str:
        """The inside of a bracket expression that has just been opened; "" when it is never closed."""
        start = self._at + 1 if self._peek() == "^" else self._at
        end = self._text.find("]", start + 1)
        return self._text[self._at : end] if end >= 0 else ""

    def _command(self) -> bool:
        letter = self._take()
        if letter in TEXT:
            return self._text_lines()
        if letter == "s":
            return self._two_parts(pattern=True) and self._substitute_flags()
        if letter == "y":
            return self._two_parts(pattern=False)
        if letter in NUMBERED:
            self._skip(" \t0123456789")
        elif letter in LABELLED:
            self._label()
        elif letter in READS | WRITES:
            (self._script.reads if letter in READS else self._script.writes).append(self._line().strip(" \t"))
        return bool(letter) and letter in UNDERSTOOD

    def _label(self) -> None:
        """A label ends at a blank or a semicolon, in some versions only with the line: the rest is read as commands."""
        self._skip(" \t")
        while self._peek() and self._peek() not in " \t;\n}":
            self._at += 1

    def _two_parts(self, *, pattern: bool) -> bool:
        delimiter = self._take()
        if not delimiter or delimiter in "\\\n":
            return False
        return self._delimited(delimiter, pattern=pattern) and self._delimited(delimiter, pattern=False)

    def _substitute_flags(self) -> bool:
        while self._peek() and self._peek() in SUBSTITUTE_FLAGS:
            self._at += 1
        if self._peek() == "w":
            self._at += 1
            self._script.writes.append(self._line().strip(" \t"))
        return self._peek() == "" or self._peek() in " \t\n;}#"


def _without_escapes(text: str) -> str:
    kept: list[str] = []
    at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        else:
            kept.append(text[at])
        at += 1
    return "".join(kept)
