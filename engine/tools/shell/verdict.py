"""The answer about a command, and the findings it grows from.

Findings only ever get worse: a verdict rises from read-only over unknown to destructive and never falls back, and
the reason kept is the first one of the highest rank.
"""

from dataclasses import dataclass, field

from engine.model import Understanding, Verdict
from engine.tools.shell.places import Where, Workspace, is_device
from engine.tools.shell.words import Word

REASON_LENGTH = 160  # a reason is one line in a chat


_RANK = {Verdict.READ_ONLY: 0, Verdict.UNKNOWN: 1, Verdict.DESTRUCTIVE: 2}


@dataclass(slots=True)
class Findings:
    """What is known so far about one command."""

    workspace: Workspace
    verdict: Verdict = Verdict.READ_ONLY
    reason: str = "only reads"
    background: bool = False
    # Whether it may change more than the paths it names.
    reaches_further: bool = False
    unwaited_job: bool = False
    # Writing to /dev/stdout opens whatever file descriptor 1 is *again*. That is a terminal or a pipe, unless the
    # command has first put a file it only reads there. Neither half is harmful alone.
    reopens_descriptor: bool = False
    moves_descriptor: bool = False
    # Variables taken for numbers, and those given a text by a command: one that is both may evaluate to anything.
    trusted: set[str] = field(default_factory=set)
    filled: set[str] = field(default_factory=set)
    _paths: dict[str, None] = field(default_factory=dict)
    _outside: dict[str, None] = field(default_factory=dict)
    _unknowable: dict[str, None] = field(default_factory=dict)

    def note(self, verdict: Verdict, reason: str) -> None:
        """Raise the verdict; a lower or equal one changes nothing but how far the command may reach."""
        self.reaches_further |= verdict is Verdict.UNKNOWN
        if _RANK[verdict] > _RANK[self.verdict]:
            self.verdict = verdict
            self.reason = shorten(reason, REASON_LENGTH)

    def unknown(self, reason: str) -> None:
        """Note something that cannot be proved harmless."""
        self.note(Verdict.UNKNOWN, reason)

    def destructive(self, reason: str, *, reaches_further: bool = False) -> None:
        """Note something that certainly changes files, those that it names or others as well."""
        self.reaches_further |= reaches_further
        self.note(Verdict.DESTRUCTIVE, reason)

    def name(self, path: str, where: Where) -> None:
        """Record a path the command names while the shell is in `where`."""
        if not path:
            return
        self._paths[path] = None
        if not is_device(path) and self.workspace.is_outside(path, where):
            self._outside[path] = None

    def name_unknowable(self, raw: str) -> None:
        """Record the text of a word that stands for a path nobody can know yet."""
        self._unknowable[raw] = None

    def name_word(self, word: Word, where: Where, *, writes: bool) -> None:
        """Record a word used as a path; one that cannot be known counts when the command may write there."""
        standard_input = word.literal and word.text == "-" and not writes
        if word.silent or standard_input:
            return
        if word.sure:
            self.name(word.text, where)
        elif writes:
            self.name_unknowable(word.raw)

    def answer(self) -> Understanding:
        """Close the findings into the value the caller gets."""
        if self.reopens_descriptor and self.moves_descriptor:
            self.unknown("writes to a descriptor that may be a file opened for reading")
        if not self.trusted.isdisjoint(self.filled):
            self.unknown("arithmetic may evaluate what it is given")
        outside = dict(self._outside)
        if self.verdict is not Verdict.READ_ONLY:
            outside.update(self._unknowable)
        background = self.background or self.unwaited_job
        confined = self.verdict is Verdict.DESTRUCTIVE and not (self.reaches_further or outside or background)
        return Understanding(self.verdict, self.reason, tuple(self._paths), tuple(outside), background, confined)


def shorten(text: str, length: int = 40) -> str:
    """One printable line of at most `length` characters."""
    line = "".join(character if character.isprintable() else " " for character in text)
    return line if len(line) <= length else line[: length - 1] + "…"
