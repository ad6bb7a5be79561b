"""What a program's judge is given: the call it judges and the desk it reports to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.tools.shell.heredocs import Heredoc
from engine.tools.shell.places import SINKS, STREAMS, Where
from engine.tools.shell.verdict import Findings, shorten
from engine.tools.shell.words import Word


@dataclass(frozen=True, slots=True)
class Call:
    """One program and its arguments, and where the shell is when it runs.

    `stdin` is the here-document it reads, if it reads one.
    """

    name: str
    args: tuple[Word, ...]
    where: Where
    stdin: Heredoc | None = None


@dataclass(frozen=True, slots=True)
class After:
    """Where the shell may be once a command has succeeded, and once it has failed."""

    ok: Where
    bad: Where

    @classmethod
    def same(cls, where: Where) -> "After":
        """The command leaves the shell where it was."""
        return cls(where, where)

    @property
    def either(self) -> Where:
        """Where the shell may be, whatever came of the command."""
        return self.ok | self.bad


class Desk(Protocol):
    """Takes what a judge finds, and reads further commands that a program runs."""

    @property
    def findings(self) -> Findings:
        """What is known so far."""
        ...

    @property
    def left(self) -> list[Where]:
        """Where each `pushd` so far left from."""
        ...

    def run_words(self, words: Sequence[Word], where: Where, stdin: Heredoc | None = None) -> After:
        """Judge these words as a command that runs in `where`."""
        ...

    def run_text(self, text: str, where: Where, *, in_shell: bool = False) -> After:
        """Judge a text as a script; `in_shell` when the running shell itself reads it, as `eval` does."""
        ...

    def assign(self, name: str, value: Word | None, where: Where, *, exported: bool) -> None:
        """Judge a variable being set; the value is None where it is not known."""
        ...

    def forget_directory(self, raw: str) -> None:
        """Note that the shell's directory now depends on a word nobody can know."""
        ...


Judge = Callable[[Call, Desk], After | None]
"""Reports what one call does; returns where the shell is afterwards, None for where it was."""


def name_all(desk: Desk, call: Call, words: Sequence[Word], *, writes: bool) -> None:
    """Record words that the program uses as paths."""
    for word in words:
        desk.findings.name_word(word, call.where, writes=writes)


def write_to(desk: Desk, call: Call, target: Word, reason: str) -> None:
    """Record a file that is written, unless it is a place that keeps nothing."""
    desk.findings.name_word(target, call.where, writes=True)
    if target.silent or (target.literal and target.text in SINKS):
        return
    if target.literal and target.text in STREAMS:
        desk.findings.reopens_descriptor = True
        return
    desk.findings.destructive(reason)


def label(word: Word) -> str:
    """A word as a reason shows it."""
    return shorten(word.text if word.sure else word.raw)
