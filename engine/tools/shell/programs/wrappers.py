"""Programs that run another one: what counts is what they run, and what they add to it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.tools.shell.places import Where
from engine.tools.shell.programs.desk import Call, Desk, Judge, name_all, write_to
from engine.tools.shell.programs.options import NO_VALUES, Grammar, Options, parse_options
from engine.tools.shell.programs.unknown import is_plainly_path, name_likely_paths
from engine.tools.shell.words import Word, hole_word, literal_word


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A program whose operands, after the first `skip`, are a command.

    An option that is neither in the grammar nor among `flags` makes it unknown, since it might do anything. `adds`
    says what the wrapper itself may do, where that is not nothing. The first operand is a path where it `enters` it.
    """

    grammar: Grammar = NO_VALUES
    flags: str = ""
    long_flags: tuple[str, ...] = ()
    skip: int = 0
    adds: str | None = None
    background: bool = False
    enters: bool = False

    def __call__(self, call: Call, desk: Desk) -> None:
        """Judge one call."""
        options = parse_options(call.args, replace(self.grammar, in_order=True))
        self.note(call, desk, options)
        run_rest(call, desk, options.operands[self.skip :])

    def note(self, call: Call, desk: Desk, options: Options) -> None:
        """Report what the wrapper does besides running its command."""
        if self.background:
            desk.findings.background = True
        if self.adds:
            desk.findings.unknown(f"{call.name} {self.adds}")
        values = [option.value for option in options.given if option.value and is_plainly_path(option.value.text)]
        name_all(desk, call, [*values, *options.operands[: int(self.enters)]], writes=True)
        letters = self.flags + self.grammar.values + self.grammar.attached
        odd = options.beyond(letters, (*self.long_flags, *self.grammar.longs))
        if odd or any(word in options.unsure for word in options.operands[: self.skip + 1]):
            desk.findings.unknown(f"{call.name} has an option that is not known here")


def run_rest(call: Call, desk: Desk, words: Sequence[Word], where: Where | None = None) -> None:
    """Judge the command a wrapper runs; it cannot move the shell that started it."""
    if words:
        desk.run_words(words, call.where if where is None else where, call.stdin)


SUDO = Grammar(
    values="CDghpRrtTUu",
    longs=("user", "group", "host", "prompt", "chdir", "chroot", "close-from", "role", "type", "command-timeout"),
    in_order=True,
)
SUDO_FLAGS = "AbEHnPSkKBN"
SUDO_LONGS = ("non-interactive", "preserve-env", "set-home", "stdin", "askpass", "background", "login")


def judge_sudo(call: Call, desk: Desk) -> None:
    """`sudo` and `doas` run a command as somebody else; some of their options do other things."""
    options = parse_options(call.args, SUDO)
    if options.unsure or options.beyond(SUDO_FLAGS + "CDghpTu", (*SUDO_LONGS, *SUDO.longs)) or options.has("--chroot"):
        desk.findings.unknown(f"{call.name} may do more than run a command")
    if options.has("-b", "--background"):
        desk.findings.background = True
    name_all(desk, call, options.values("-R", "--chroot"), writes=True)
    where = _enter(call, desk, options.values("-D", "--chdir"))
    words = take_assignments(call, desk, options.operands)
    if not words:
        desk.findings.unknown(f"{call.name} may open a shell")
    run_rest(call, desk, words, where)


ENV = Grammar(values="uCS", longs=("unset", "chdir", "split-string"), in_order=True)


def judge_env(call: Call, desk: Desk) -> None:
    """`env` sets variables and runs a command, or lists them when there is none."""
    options = parse_options(call.args, ENV)
    if options.unsure or options.beyond("i0uCSv-", ("ignore-environment", "null", "unset", "chdir", "split-string")):
        desk.findings.unknown("env has an option that is not known here")
    for name in options.values("-u", "--unset"):
        desk.assign(name.text, None, call.where, exported=False)
    where = _enter(call, desk, options.values("-C", "--chdir"))
    for text in options.values("-S", "--split-string"):
        # Its own quoting rules are not the shell's: what is found counts, but nothing is proved harmless.
        desk.findings.unknown("env -S splits a text in its own way")
        desk.run_text(text.text, where)
    operands = options.operands[1:] if options.operands and options.operands[0].text == "-" else options.operands
    run_rest(call, desk, take_assignments(call, desk, operands), where)


def _enter(call: Call, desk: Desk, places: Sequence[Word]) -> Where:
    where = call.where
    for place in places:
        desk.findings.name_word(place, call.where, writes=True)
        if place.sure:
            where = desk.findings.workspace.enter(where, place.text)
    return where


def take_assignments(call: Call, desk: Desk, words: Sequence[Word]) -> Sequence[Word]:
    """Judge the leading `NAME=value` words; returns the rest."""
    for index, word in enumerate(words):
        name, equals, value = word.text.partition("=")
        if not equals or name != word.lead[: len(name)]:
            return words[index:]
        desk.assign(name, literal_word(value) if word.literal else None, call.where, exported=True)
    return ()


XARGS = Grammar(
    values="adEILnPs",
    attached="eil",
    longs=("arg-file", "delimiter", "max-args", "max-procs", "max-chars"),
    in_order=True,
)


XARGS_INPUT = "(input of xargs)"
"""What stands for the words `xargs` adds, where people are shown what cannot be known."""


def judge_xargs(call: Call, desk: Desk) -> None:
    """`xargs` adds words from its input to a command; none of them can be known."""
    options = parse_options(call.args, XARGS)
    odd = options.beyond(
        "0rtpxoadEILnPseil",
        (*XARGS.longs, "max-lines", "replace", "null", "no-run-if-empty", "verbose", "exit", "interactive"),
    )
    if odd or options.unsure:
        desk.findings.unknown("xargs has an option that is not known here")
    name_all(desk, call, options.values("-a", "--arg-file"), writes=False)
    words = options.operands or [literal_word("echo")]
    mark = _replaced_mark(options)
    filled = [_filled(word, mark) for word in words] if mark else [*words, hole_word(XARGS_INPUT)]
    desk.run_words(filled, call.where)


def _replaced_mark(options: Options) -> str:
    if not options.has("-I", "-i", "--replace"):
        return ""
    values = options.values("-I", "-i", "--replace")
    return values[-1].text if values else "{}"


def _filled(word: Word, mark: str) -> Word:
    """The word with the mark replaced by text from the input."""
    if mark not in word.text:
        return word
    lead, _mark, _rest = word.text.partition(mark)
    # The text stays readable, so that `sh -c 'rm {}'` is seen for what it certainly does.
    return Word(word.raw, word.text, sure=False, lead=lead)


def judge_parallel(call: Call, desk: Desk) -> None:
    """`parallel` builds commands from its words and the lists behind `:::`; it keeps files of its own."""
    desk.findings.unknown("parallel builds its commands as it runs")
    options = parse_options(call.args, Grammar(values="jNnXaSIL", longs=("jobs", "joblog", "results"), in_order=True))
    texts = [word.text for word in options.operands]
    end = next((index for index, text in enumerate(texts) if text in {":::", "::::", ":::+"}), len(texts))
    if end:
        desk.run_text(" ".join(texts[:end]), call.where)
    else:
        for text in texts[1:]:
            desk.run_text(text, call.where)
    name_all(
        desk, call, [word for word in options.operands[end:] if word.sure and is_plainly_path(word.text)], writes=True
    )


def judge_watch(call: Call, desk: Desk) -> None:
    """`watch` hands its words to a shell, joined, again and again."""
    options = parse_options(call.args, Grammar(values="nqs", longs=("interval", "equexit"), in_order=True))
    odd = options.beyond("nqdtbecgrxpw", ("interval", "differences", "no-title", "beep", "errexit", "color", "exec"))
    if odd or any(not word.literal for word in options.operands):
        desk.findings.unknown("watch runs something that is known only when it runs")
    if options.has("-x", "--exec"):
        run_rest(call, desk, options.operands)
    else:
        desk.run_text(" ".join(word.text for word in options.operands), call.where)


def judge_time(call: Call, desk: Desk) -> None:
    """`time`, keyword or program; the program can write its figures to a file."""
    options = parse_options(call.args, Grammar(values="fo", longs=("format", "output"), in_order=True))
    odd = options.beyond("pvaqfo", ("portability", "verbose", "format", "output"))
    if odd or any(word in options.unsure for word in options.operands[:1]):
        desk.findings.unknown("time has an option that is not known here")
    for target in options.values("-o", "--output"):
        write_to(desk, call, target, f"time -o writes {target.text}")
    run_rest(call, desk, options.operands)


def judge_script(call: Call, desk: Desk) -> None:
    """`script` records what a command prints into a file."""
    options = parse_options(call.args, Grammar(values="cEIOBTmo", longs=("command",)))
    desk.findings.unknown("script writes a record")
    for text in options.values("-c", "--command"):
        desk.run_text(text.text, call.where)
    name_all(desk, call, options.operands, writes=True)


def judge_su(call: Call, desk: Desk) -> None:
    """`su` opens a shell as somebody else, or hands it the text of `-c`."""
    options = parse_options(call.args, Grammar(values="csgGw", longs=("command", "shell", "group")))
    desk.findings.unknown("su opens a shell")
    for text in options.values("-c", "--command"):
        desk.run_text(text.text, call.where)


WRAPPERS: dict[str, Judge] = {
    "sudo": judge_sudo,
    "su": judge_su,
    "runuser": judge_su,
    "doas": Wrapper(Grammar(values="u"), flags="n"),
    "env": judge_env,
    "nice": Wrapper(Grammar(values="n", longs=("adjustment",)), flags="0123456789"),
    "ionice": Wrapper(Grammar(values="cn", longs=("class", "classdata")), flags="t", long_flags=("ignore",)),
    "nohup": Wrapper(adds="may write nohup.out", background=True),
    "setsid": Wrapper(flags="cfw", long_flags=("ctty", "fork", "wait"), background=True),
    "timeout": Wrapper(
        Grammar(values="ks", longs=("kill-after", "signal")),
        flags="v",
        long_flags=("foreground", "preserve-status", "verbose"),
        skip=1,
    ),
    "stdbuf": Wrapper(Grammar(values="ioe", longs=("input", "output", "error"))),
    "chrt": Wrapper(flags="bfior", skip=1),
    "taskset": Wrapper(flags="c", skip=1),
    "time": judge_time,
    "xargs": judge_xargs,
    "parallel": judge_parallel,
    "watch": judge_watch,
    "script": judge_script,
    "caffeinate": Wrapper(Grammar(values="tw"), flags="dimsu"),
    "unbuffer": Wrapper(adds="may run anything"),
    "flock": Wrapper(Grammar(values="wE"), flags="nsuox", skip=1, adds="creates a lock file", enters=True),
    "chroot": Wrapper(skip=1, adds="changes the root", enters=True),
    "strace": Wrapper(Grammar(values="oeEpsPuaI"), flags="fcvqtrTyCk", adds="may write a trace"),
    "busybox": Wrapper(adds="has programs of its own"),
    "toybox": Wrapper(adds="has programs of its own"),
    "systemd-run": Wrapper(Grammar(values="pEtu"), adds="runs it elsewhere"),
    "unshare": Wrapper(adds="changes the surroundings"),
    "fakeroot": Wrapper(adds="changes the surroundings"),
    "npx": Wrapper(adds="may run anything"),
    "pkexec": Wrapper(adds="changes the surroundings"),
    "coproc": Wrapper(adds="starts a coprocess", background=True),
}
"""Programs that run another one."""

RUNNERS = frozenset({"poetry", "uv", "pipenv", "pdm", "hatch", "conda", "bundle", "pixi", "rye"})
"""Tools whose `run` or `exec` runs a command in an environment of theirs."""


def judge_runner(call: Call, desk: Desk) -> None:
    """`poetry run`, `bundle exec` and their like; whatever else they do is unknown."""
    desk.findings.unknown(f"{call.name} is not known to be read-only")
    name_likely_paths(call, desk)
    if call.args and call.args[0].text in {"run", "exec"}:
        rest = parse_options(call.args[1:], Grammar(values="np", longs=("with", "python", "name"), in_order=True))
        run_rest(call, desk, rest.operands)
