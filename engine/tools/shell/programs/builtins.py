"""Commands the shell carries out itself: those that move it, change its variables or read more script."""

from engine.tools.shell.conditions import judge_test_words
from engine.tools.shell.places import NOWHERE
from engine.tools.shell.programs.desk import After, Call, Desk, Judge, name_all
from engine.tools.shell.programs.options import Grammar, parse_options
from engine.tools.shell.words import Word, literal_word

SET_LETTERS = frozenset("euxvfCETBH")
SET_NAMES = frozenset(
    {
        "errexit",
        "nounset",
        "pipefail",
        "xtrace",
        "verbose",
        "noglob",
        "noclobber",
        "errtrace",
        "functrace",
        "braceexpand",
    }
)
SHOPT_NAMES = frozenset({"nullglob", "globstar", "dotglob", "failglob", "nocaseglob", "nocasematch", "inherit_errexit"})
DECLARE_LETTERS = frozenset("aArxgpfFlut")


def judge_cd(call: Call, desk: Desk) -> After:
    """`cd` and `pushd` move the shell, if they can."""
    options = parse_options(call.args, Grammar(in_order=True))
    if not options.operands and call.name == "cd":
        target = literal_word(desk.findings.workspace.home) if desk.findings.workspace.home else None
    else:
        target = options.operands[0] if options.operands else None
    if target is None or not target.literal or target.text == "-" or target.text.startswith("+"):
        desk.forget_directory(target.raw if target else call.name)
        return After.same(call.where)
    desk.findings.name_word(target, call.where, writes=True)
    if call.name == "pushd":
        desk.left.append(call.where)
    return After(desk.findings.workspace.enter(call.where, target.text), call.where)


def judge_popd(call: Call, desk: Desk) -> After:
    """`popd` moves the shell back to where `pushd` left from."""
    if call.args or not desk.left:
        desk.forget_directory(call.name)
        return After.same(call.where)
    return After(desk.left.pop(), call.where)


def judge_exit(_call: Call, _desk: Desk) -> After:
    """Nothing comes after `exit`."""
    return After(NOWHERE, NOWHERE)


def judge_eval(call: Call, desk: Desk) -> After:
    """`eval` joins its words and reads them as script, in this shell."""
    if not all(word.literal for word in call.args):
        desk.findings.unknown("eval runs a text that is known only when it runs")
        desk.forget_directory("eval")
    return desk.run_text(" ".join(word.text for word in call.args), call.where, in_shell=True)


def judge_command(call: Call, desk: Desk) -> After | None:
    """`command` and `builtin` run a command past functions; `-v` only looks it up."""
    options = parse_options(call.args, Grammar(in_order=True))
    if options.has("-v", "-V"):
        return None
    if options.beyond("p"):
        desk.findings.unknown(f"{call.name} has an option that is not known here")
    return desk.run_words(options.operands, call.where, call.stdin) if options.operands else None


def judge_exec(call: Call, desk: Desk) -> None:
    """`exec` becomes the command; without one it only moves descriptors."""
    options = parse_options(call.args, Grammar(values="a", in_order=True))
    if options.operands:
        desk.run_words(options.operands, call.where, call.stdin)


def judge_source(call: Call, desk: Desk) -> None:
    """`.` and `source` run a file in this shell."""
    desk.findings.unknown(f"{call.name} runs a script from a file")
    name_all(desk, call, call.args[:1], writes=True)


def judge_trap(call: Call, desk: Desk) -> None:
    """`trap` keeps a text to run later."""
    words = [word for word in call.args if not (word.literal and word.text in {"--", "-p", "-l"})]
    if len(words) <= 1 or (words[0].literal and words[0].text in {"-", ""}):
        return
    if not words[0].literal:
        desk.findings.unknown("trap keeps a text that is known only when it runs")
    desk.run_text(words[0].text, call.where, in_shell=True)


def judge_set(call: Call, desk: Desk) -> None:
    """`set` turns the shell's own options on and off, or sets its positional parameters."""
    words = iter(call.args)
    for word in words:
        if word.literal and word.text in {"--", "-"}:
            return
        if not word.may_be_option and not word.text.startswith("+"):
            return
        letters = word.text[1:] if word.literal else "?"
        if "o" in letters:
            name = next(words, None)
            known = name is None or (name.literal and name.text in SET_NAMES)
            letters = letters.replace("o", "" if known else "?")
        if not SET_LETTERS.issuperset(letters):
            desk.findings.unknown("set changes how the shell reads commands")


def judge_shopt(call: Call, desk: Desk) -> None:
    """`shopt` changes how the shell reads commands; a few of its options only change globs."""
    known = SHOPT_NAMES | {"-s", "-u", "-q", "-p"}
    if not all(word.literal and word.text in known for word in call.args):
        desk.findings.unknown("shopt changes how the shell reads commands")
        desk.forget_directory(call.name)  # one of its options lets `cd NAME` go where a variable says


def judge_declare(call: Call, desk: Desk) -> None:
    """`export`, `declare` and their like set variables; some of what they take is evaluated."""
    exported = call.name == "export" or any(word.literal and _has_letter(word, "x") for word in call.args)
    for word in call.args:
        name, equals, value = word.text.partition("=")
        if word.may_be_option:
            letters = word.text[1:] if word.literal else "?"
            if not DECLARE_LETTERS.issuperset(letters) and not (call.name == "export" and letters == "n"):
                desk.findings.unknown(f"{call.name} has an option that is not known here")
        elif not is_name(name.removesuffix("+")) or not word.lead.startswith(name) or value.startswith("("):
            desk.findings.unknown(f"{call.name} may evaluate what it is given")
        elif equals:
            _fill(name.removesuffix("+"), call, desk, literal_word(value) if word.literal else None, exported=exported)
        elif exported:
            desk.assign(name, None, call.where, exported=True)


def _fill(name: str, call: Call, desk: Desk, value: Word | None = None, *, exported: bool = False) -> None:
    """Report a variable that is given a text; it holds no number for certain any more, whatever the script says."""
    desk.findings.filled.add(name)
    desk.assign(name, value, call.where, exported=exported)


def _has_letter(word: Word, letter: str) -> bool:
    return word.text.startswith("-") and letter in word.text


def is_name(text: str) -> bool:
    """Whether this is the name of a shell variable, and nothing that would be evaluated."""
    return text.isascii() and text.isidentifier()


def judge_unset(call: Call, desk: Desk) -> None:
    """`unset` forgets variables."""
    for word in call.args:
        if not word.literal or not (word.text in {"-v", "-f"} or is_name(word.text)):
            desk.findings.unknown("unset may evaluate what it is given")
        elif is_name(word.text):
            _fill(word.text, call, desk)


READ_VALUES = Grammar(values="dinNptua", in_order=True)


def judge_read(call: Call, desk: Desk) -> None:
    """`read` and `mapfile` fill variables from their input."""
    options = parse_options(call.args, READ_VALUES if call.name == "read" else Grammar(values="dnOsuCc"))
    names = [*options.operands, *(options.values("-a") if call.name == "read" else [])]
    if options.unsure or options.has("-C") or any(not (word.literal and is_name(word.text)) for word in names):
        desk.findings.unknown(f"{call.name} may evaluate what it is given")
    for word in names:
        _fill(word.text, call, desk)


def judge_printf(call: Call, desk: Desk) -> None:
    """`printf` prints; `-v`, and `%n` in its format, set a variable whose name may be evaluated."""
    words = list(call.args)
    if words and words[0].literal and words[0].text == "-v":
        name = words[1] if len(words) > 1 else literal_word("")
        if not (name.literal and is_name(name.text)):
            desk.findings.unknown("printf may evaluate what it is given")
        _fill(name.text, call, desk)
        words = words[2:]
    if words and words[0].literal and words[0].text == "--":
        words = words[1:]
    elif words and words[0].may_be_option:
        desk.findings.unknown("printf may get an option that is known only when it runs")
    named = len(words) > 1 or any(word.many for word in words)
    if named and (not words[0].sure or _counts_characters(words[0].text)):
        desk.findings.unknown("printf's format may set a variable")


def _counts_characters(template: str) -> bool:
    """Whether a format holds `%n`, which sets a variable to the number of characters printed so far."""
    parts = template.replace("%%", "").split("%")[1:]
    return any(part.lstrip("0123456789 +-#.*'hlLjzt")[:1] in {"n", ""} for part in parts)


def judge_getopts(call: Call, desk: Desk) -> None:
    """`getopts` sets the variable its second word names."""
    for word in parse_options(call.args, Grammar(in_order=True)).operands[1:2]:
        if not (word.literal and is_name(word.text)):
            desk.findings.unknown("getopts may evaluate what it is given")
        _fill(word.text, call, desk)


def judge_wait(call: Call, desk: Desk) -> None:
    """`wait` sees background jobs to their end."""
    desk.findings.unwaited_job = False
    if any(word.may_be_option and word.text != "-n" and word.raw.strip('"') != "$!" for word in call.args):
        desk.findings.unknown("wait may set a variable")


def judge_jobs(call: Call, desk: Desk) -> None:
    """`jobs` lists what runs in the background; `-x` runs a command."""
    options = parse_options(call.args, Grammar(in_order=True))
    if options.has("-x"):
        desk.findings.unknown("jobs -x runs a command")
        desk.run_words(options.operands, call.where, call.stdin)


def judge_disown(_call: Call, desk: Desk) -> None:
    """`disown` lets a job outlive the shell."""
    desk.findings.background = True


def judge_hash(call: Call, desk: Desk) -> None:
    """`hash` remembers where programs are; `-p` says where, whatever is there."""
    if any(word.may_be_option and word.text != "-r" for word in call.args):
        desk.findings.unknown("hash may put another program in place of one")


def judge_test(call: Call, desk: Desk) -> None:
    """`test` compares; what it compares is judged as the words of any test are."""
    doubt = judge_test_words(call.args)
    if doubt:
        desk.findings.unknown(doubt)


BUILTINS: dict[str, Judge] = {
    "cd": judge_cd,
    "chdir": judge_cd,
    "pushd": judge_cd,
    "popd": judge_popd,
    "exit": judge_exit,
    "eval": judge_eval,
    "command": judge_command,
    "builtin": judge_command,
    "exec": judge_exec,
    "source": judge_source,
    ".": judge_source,
    "trap": judge_trap,
    "set": judge_set,
    "shopt": judge_shopt,
    **dict.fromkeys(("export", "declare", "typeset", "local", "readonly"), judge_declare),
    "unset": judge_unset,
    "read": judge_read,
    "mapfile": judge_read,
    "readarray": judge_read,
    "printf": judge_printf,
    "getopts": judge_getopts,
    "wait": judge_wait,
    "jobs": judge_jobs,
    "disown": judge_disown,
    "hash": judge_hash,
    "test": judge_test,
    "[": judge_test,
}
"""Commands of the shell itself."""
