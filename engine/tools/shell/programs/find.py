"""`find` and `fd`: they walk trees, and run or delete on the way when told to."""

from collections.abc import Sequence

from engine.tools.shell.programs.desk import Call, Desk, label, name_all, write_to
from engine.tools.shell.programs.options import Grammar, parse_options
from engine.tools.shell.words import Word

RUNNERS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
FILE_WRITERS = frozenset({"-fprint", "-fprint0", "-fls", "-fprintf"})
TAKE_VALUE = frozenset(
    {"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-type", "-xtype", "-size",
     "-mtime", "-atime", "-ctime", "-mmin", "-amin", "-cmin", "-newer", "-anewer", "-cnewer", "-user", "-group", "-uid",
     "-gid", "-perm", "-maxdepth", "-mindepth", "-links", "-inum", "-samefile", "-fstype", "-lname", "-ilname",
     "-printf", "-regextype", "-used", "-newermt", "-newerct", "-context"}
)  # fmt: skip
"""Tests whose next word is a value, whatever it looks like."""

FOUND = "{}"


def judge_find(call: Call, desk: Desk) -> None:
    """Judge one `find` command line."""
    words = _after_options(call.args)
    count = next((index for index, word in enumerate(words) if _starts_expression(word)), len(words))
    starts = words[:count]
    unsure = any(word.may_be_option and not word.literal for word in starts)
    if unsure:
        desk.findings.unknown("find may get an action that is known only when it runs")
    changes = any(word.literal and word.text in {"-delete", *RUNNERS} for word in words[count:])
    name_all(desk, call, starts, writes=changes)
    _judge_expression(call, desk, words[count:], starts)


def _after_options(args: Sequence[Word]) -> Sequence[Word]:
    index = 0
    while index < len(args) and args[index].literal:
        text = args[index].text
        if text == "-D":
            index += 1
        elif text not in {"-H", "-L", "-P"} and not text.startswith("-O"):
            break
        index += 1
    return args[index:]


def _starts_expression(word: Word) -> bool:
    return word.literal and (word.text in {"(", ")", "!", ","} or word.may_be_option)


def _judge_expression(call: Call, desk: Desk, words: Sequence[Word], starts: Sequence[Word]) -> None:
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if not word.literal:
            desk.findings.unknown("find may get an action that is known only when it runs")
        elif word.text in RUNNERS:
            end = _command_end(words, at)
            _run(call, desk, words[at:end], starts, in_place=word.text in {"-execdir", "-okdir"})
            at = end + 1
        elif word.text in FILE_WRITERS and at < len(words):
            write_to(desk, call, words[at], f"find {word.text} writes {label(words[at])}")
            at += 1
        elif word.text == "-delete":
            desk.findings.destructive("find -delete deletes what it finds")
        elif word.text == "-files0-from":
            desk.findings.unknown("find reads where to look from a file")
        elif word.text in TAKE_VALUE and at < len(words) and not words[at].many:
            at += 1


def _command_end(words: Sequence[Word], start: int) -> int:
    """Where the command after `-exec` ends: at `;`, or at a `+` right behind `{}`."""
    for index in range(start, len(words)):
        text = words[index].text
        if text == ";" or (text == "+" and index > start and words[index - 1].text == FOUND):
            return index
    return len(words)


def _run(call: Call, desk: Desk, command: Sequence[Word], starts: Sequence[Word], *, in_place: bool) -> None:
    if not command:
        return
    unsure = next((index for index, word in enumerate(command) if not word.literal), None)
    if unsure is not None:
        # It may turn out to be the end of the command, and what follows it an action.
        _judge_expression(call, desk, command[unsure + 1 :], starts)
        if any(word.many for word in command):
            desk.findings.unknown("find may get an action that is known only when it runs")
    if any(FOUND in word.text and word.text != FOUND for word in command):
        desk.findings.reaches_further = True  # `{}.bak` lies beside what was found
    lead = "" if in_place or not all(word.literal for word in starts) else _common_lead(starts)
    found = [_found(word, lead) for word in command]
    desk.run_words(found, call.where)


def _common_lead(starts: Sequence[Word]) -> str:
    """What every found path begins with for certain, as far as telling options from paths needs it."""
    firsts = {word.text[:1] for word in starts} or {"."}
    return "/" if "-" not in firsts and "" not in firsts else ""


def _found(word: Word, lead: str) -> Word:
    """A word of the command with `{}` standing for what was found."""
    if FOUND not in word.text:
        return word
    if word.text == FOUND:  # many paths with `+`, and all of them lie below the starting points
        return Word(word.raw, word.text, sure=False, many=True, lead=lead, silent=True)
    before, _found_text, after = word.text.partition(FOUND)
    return Word(word.raw, word.text, sure=False, lead=before or lead, silent=not before and "/" not in after)


def judge_fd(call: Call, desk: Desk) -> None:
    """`fd` lists files; `-x` and `-X` run a command on them."""
    grammar = Grammar(values="detSEocj", longs=("max-depth", "extension", "type", "exclude", "color", "threads"))
    for index, word in enumerate(call.args):
        text = word.text if word.literal else ""
        clustered = text.startswith("-") and not text.startswith("--") and bool({"x", "X"} & set(text))
        if clustered or text.startswith("--exec"):
            desk.findings.unknown("fd runs a command on what it finds")
            name_all(desk, call, parse_options(call.args[:index], grammar).operands[1:], writes=True)
            if index + 1 < len(call.args):
                desk.run_words([_found(inner, "") for inner in call.args[index + 1 :]], call.where)
            return
    options = parse_options(call.args, grammar)
    if options.unsure:
        desk.findings.unknown("fd may get an option that is known only when it runs")
    name_all(desk, call, options.operands[1:], writes=False)
