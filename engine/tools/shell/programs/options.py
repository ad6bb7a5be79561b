"""Command lines taken apart the way getopt does it.

Short options cluster and may carry their value; long ones may be shortened to any prefix and may stand behind
operands. Where a word may turn out to be an option only when the command runs, it is kept as unsure.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.tools.shell.words import Word, hole_word


@dataclass(frozen=True, slots=True)
class Grammar:
    """Which options of a program take a value: letters, and long names without their dashes.

    `attached` are letters whose value, if any, is the rest of the word. `in_order` says that options end at the first
    operand.
    """

    values: str = ""
    longs: tuple[str, ...] = ()
    attached: str = ""
    in_order: bool = False


NO_VALUES = Grammar()
"""No option takes a value."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option as given: "-o" or "--outp", with its value where it has one."""

    name: str
    value: Word | None


@dataclass(slots=True)
class Options:
    """A command line taken apart."""

    given: list[Option] = field(default_factory=list)
    operands: list[Word] = field(default_factory=list)
    unsure: list[Word] = field(default_factory=list)

    def find(self, *names: str) -> list[Option]:
        """The options given under one of these names, or under a prefix of a long one."""
        return [option for option in self.given if any(_means(option.name, name) for name in names)]

    def has(self, *names: str) -> bool:
        """Whether one of these options is given."""
        return bool(self.find(*names))

    def values(self, *names: str) -> list[Word]:
        """The values given to these options."""
        return [option.value for option in self.find(*names) if option.value is not None]

    def beyond(self, letters: str, longs: Sequence[str] = ()) -> Option | None:
        """The first option that is none of these letters and none of these long names."""
        known = {f"-{letter}" for letter in letters} | {f"--{long}" for long in longs}
        return next((option for option in self.given if option.name not in known), None)


def _means(given: str, name: str) -> bool:
    return given == name or (given.startswith("--") and name.startswith(given))


def parse_options(args: Sequence[Word], grammar: Grammar) -> Options:
    """Take a command line apart; never fails, and keeps what it cannot tell in `unsure`."""
    options = Options()
    rest = deque(args)
    while rest:
        word = rest.popleft()
        if word.literal and word.text == "--":
            options.operands.extend(rest)
            break
        if word.may_be_option and (found := _read_option(word, rest, grammar)):
            options.given.extend(found)
            options.unsure.extend(option.value for option in found if option.value and option.value.many)
            continue
        if word.may_be_option:
            options.unsure.append(word)
        options.operands.append(word)
        if grammar.in_order:
            options.operands.extend(rest)
            break
    return options


def _read_option(word: Word, rest: deque[Word], grammar: Grammar) -> list[Option]:
    """The options this word holds; none where it is not known to be one."""
    if word.literal:
        return [_long(word, rest, grammar)] if word.text.startswith("--") else _cluster(word, rest, grammar)
    name, equals, _value = word.lead.partition("=")
    if equals and name.startswith("--") and not word.many:
        return [Option(name, hole_word(word.raw, many=False))]
    return []


def _long(word: Word, rest: deque[Word], grammar: Grammar) -> Option:
    name, equals, value = word.text.partition("=")
    if equals:
        return Option(name, Word(word.raw, value, lead=value))
    exact = name[2:] in grammar.longs
    shortened = len(name) > len("--") and any(long.startswith(name[2:]) for long in grammar.longs)
    # A shortened name may be another option without a value: never let it swallow what may be an option itself.
    takes_value = rest and (exact or (shortened and not rest[0].may_be_option))
    return Option(name, rest.popleft() if takes_value else None)


def _cluster(word: Word, rest: deque[Word], grammar: Grammar) -> list[Option]:
    found: list[Option] = []
    letters = word.text[1:]
    for index, letter in enumerate(letters):
        remainder = letters[index + 1 :]
        attached = Word(word.raw, remainder, lead=remainder) if remainder else None
        if letter in grammar.values:
            value = attached or (rest.popleft() if rest else None)
            return [*found, Option(f"-{letter}", value)]
        if letter in grammar.attached:
            return [*found, Option(f"-{letter}", attached)]
        found.append(Option(f"-{letter}", None))
    return found
