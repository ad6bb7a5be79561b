"""Programs that only read, with the options that make an exception of them.

Most of them write nothing whatever they are told. For the others the table names the options that write a file, those
that run a program or change something else, and how many operands they read before the next one is an output.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.tools.shell.programs.desk import Call, Desk, Judge, label, name_all, write_to
from engine.tools.shell.programs.options import NO_VALUES, Grammar, Options, parse_options
from engine.tools.shell.words import Word


@dataclass(frozen=True, slots=True)
class Reader:
    """How a reading program takes its command line.

    `writes` are options naming a file it writes, `runs` options that do more than read, `most` the number of operands
    it reads (a further one is written). The first `skip` operands are no paths, unless one of `instead` gives what
    they would have given. Options in `texts` have values that are no paths.
    """

    grammar: Grammar = NO_VALUES
    writes: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    most: int | None = None
    skip: int = 0
    instead: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    @property
    def guarded(self) -> bool:
        """Whether any command line makes this program do more than read."""
        return bool(self.writes or self.runs or self.most is not None)

    def __call__(self, call: Call, desk: Desk) -> None:
        """Judge one call."""
        options = parse_options(call.args, self.grammar)
        if self.guarded and options.unsure:
            desk.findings.unknown(f"{call.name} may get an option that is known only when it runs")
        for option in options.find(*self.runs):
            desk.findings.unknown(f"{call.name} {option.name} may do more than read")
        self._name(call, desk, options)
        for option in options.find(*self.writes):
            if option.value is None:
                desk.findings.unknown(f"{call.name} {option.name} may write a file")
            else:
                write_to(desk, call, option.value, f"{call.name} {option.name} writes {label(option.value)}")

    def _name(self, call: Call, desk: Desk, options: Options) -> None:
        for option in options.given:
            value = option.value
            if value and value.sure and "/" in value.text and option.name not in self.texts:
                desk.findings.name_word(value, call.where, writes=False)
        operands = options.operands[0 if options.has(*self.instead) else self.skip :]
        if self.most is None:
            name_all(desk, call, operands, writes=False)
            return
        # Not everywhere may options stand behind operands: there the second word is a file, whatever it looks like.
        if any(word.many for word in operands) or _has_option_behind(call.args, operands):
            desk.findings.unknown(f"{call.name} may get a file to write that is known only when it runs")
        name_all(desk, call, operands[: self.most], writes=False)
        for word in operands[self.most :]:
            write_to(desk, call, word, f"{call.name} writes {label(word)}")


def _has_option_behind(words: Sequence[Word], operands: Sequence[Word]) -> bool:
    """Whether an option stands behind the first operand."""
    behind = words[words.index(operands[0]) + 1 :] if operands else ()
    return any(word.may_be_option for word in behind)


def judge_silent(call: Call, desk: Desk) -> None:
    """A program whose words are no paths and which changes no file."""


def judge_date(call: Call, desk: Desk) -> None:
    """`date` reads the clock; `-s`, or a time without `+`, sets it."""
    options = parse_options(call.args, Grammar(values="dfrs", longs=("date", "file", "reference", "set"), attached="I"))
    moves = [word for word in options.operands if not word.lead.startswith("+")]
    if options.unsure or options.has("-s", "--set") or moves:
        desk.findings.unknown("date may set the clock")


def judge_hostname(call: Call, desk: Desk) -> None:
    """`hostname` shows the name; an operand or a file sets it."""
    options = parse_options(call.args, Grammar(values="F", longs=("file",)))
    if options.operands or options.beyond("AIadfisy", ("fqdn", "long", "short", "domain", "ip-address")):
        desk.findings.unknown("hostname may set the host's name")


def judge_less(call: Call, desk: Desk) -> None:
    """A pager shows text; some options write a log, and `+` gives it commands to start with."""
    options = parse_options(call.args, Grammar(values="ptTxzhjbyDPk"))
    commands = any(word.may_be_option or word.lead.startswith("+") for word in options.operands)
    if commands or options.beyond("RrSXFNnIiEeMmGgJWwKQqsfVap"):
        desk.findings.unknown(f"{call.name} may write or run something")
    name_all(desk, call, options.operands, writes=False)


def judge_man(call: Call, desk: Desk) -> None:
    """`man` shows a page, when it is asked for nothing but a name."""
    options = parse_options(call.args, Grammar(values="sS"))
    plain = all(word.literal and "/" not in word.text for word in options.operands)
    if not plain or options.beyond("kfwasS"):
        desk.findings.unknown(f"{call.name} may run a program to show the page")


def judge_tar(call: Call, desk: Desk) -> None:
    """`tar t` lists an archive; everything else may write or run something."""
    first = call.args[0] if call.args else None
    letters = first.text.removeprefix("-") if first and first.literal else ""
    plain = letters == "-list" or ("t" in letters and set(letters) <= set("tvfzjJa"))
    rest = call.args[1:]
    if not plain or any(word.may_be_option and word.text not in {"-f", "--file"} for word in rest):
        desk.findings.unknown(f"{call.name} may write files")
    elif any(":" in word.text or not word.sure for word in rest):
        desk.findings.unknown("tar may reach another host")
    name_all(desk, call, [word for word in rest if not word.may_be_option], writes=not plain)
    options = parse_options(call.args, Grammar(values="fCTXI", longs=("file", "directory")))
    name_all(desk, call, options.values("-f", "-C", "--file", "--directory"), writes=not plain)


def judge_unzip(call: Call, desk: Desk) -> None:
    """`unzip -l` lists an archive; without it files are written."""
    options = parse_options(call.args, Grammar(values="d"))
    if options.unsure or not options.has("-l", "-v", "-t", "-Z", "-p") or options.beyond("lvtZp1qc"):
        desk.findings.unknown("unzip may write files")
    name_all(desk, call, options.operands[:1], writes=True)
    name_all(desk, call, options.values("-d"), writes=True)


def judge_tree(call: Call, desk: Desk) -> None:
    """`tree` shows a tree; `-o` anywhere in a cluster writes a file, and `-R` may write one in each directory."""
    for index, word in enumerate(call.args):
        if not word.may_be_option:
            desk.findings.name_word(word, call.where, writes=False)
        elif not word.literal:
            desk.findings.unknown("tree may get an option that is known only when it runs")
        elif not word.text.startswith("--") and not {"o", "R"}.isdisjoint(word.text):
            desk.findings.unknown(f"tree {label(word)} may write a file")
            if word.text == "-o" and index + 1 < len(call.args):
                write_to(desk, call, call.args[index + 1], f"tree -o writes {label(call.args[index + 1])}")


XXD_VALUES = frozenset(
    {"-c", "-cols", "-g", "-groupsize", "-l", "-len", "-s", "-seek", "-o", "-offset", "-n", "-name", "-R"}
)


def judge_xxd(call: Call, desk: Desk) -> None:
    """`xxd` reads its first operand and writes its second; its options do not cluster, and end at the first operand."""
    operands: list[Word] = []
    words = iter(call.args)
    for word in words:
        if word.literal and word.text == "--":
            operands.extend(words)
        elif not word.may_be_option:
            operands.extend((word, *words))
        elif not word.literal:
            desk.findings.unknown("xxd may get an option that is known only when it runs")
            operands.append(word)
        elif word.text in XXD_VALUES:
            next(words, None)
    if any(word.many for word in operands):
        desk.findings.unknown("xxd may get a file to write that is known only when it runs")
    name_all(desk, call, operands[:1], writes=False)
    for word in operands[1:]:
        write_to(desk, call, word, f"xxd writes {label(word)}")


JQ_NAMED_VALUES = frozenset({"--arg", "--argjson", "--slurpfile", "--rawfile"})


def judge_jq(call: Call, desk: Desk) -> None:
    """`jq` reads files through a program that can neither write nor run anything."""
    words = list(call.args)
    for index in reversed(range(len(words))):
        if words[index].literal and words[index].text in JQ_NAMED_VALUES:
            del words[index : index + 3]
    options = parse_options(words, Grammar(values="fL", longs=("from-file", "indent")))
    name_all(desk, call, options.values("-f", "--from-file"), writes=False)
    name_all(desk, call, options.operands[0 if options.has("-f", "--from-file") else 1 :], writes=False)


_PATTERN = Reader(
    Grammar(
        values="efmABCdD",
        longs=(
            "regexp", "file", "max-count", "after-context", "before-context", "context", "include", "exclude",
            "exclude-from", "exclude-dir", "label", "directories", "devices", "binary-files", "group-separator",
        ),
    ),
    skip=1,
    instead=("-e", "-f", "--regexp", "--file"),
    texts=("-e", "--regexp", "--include", "--exclude", "--exclude-dir", "--label"),
)  # fmt: skip

_RIPGREP = Reader(
    Grammar(
        values="efgtTABCmjMEdr",
        longs=(
            "regexp", "file", "glob", "iglob", "type", "type-not", "after-context", "before-context", "context",
            "max-count", "threads", "max-columns", "encoding", "max-depth", "replace", "pre", "pre-glob", "sort",
            "sortr", "hostname-bin", "ignore-file", "path-separator", "engine", "color", "colors",
        ),
    ),
    runs=("--pre", "--hostname-bin"),
    skip=1,
    instead=("-e", "-f", "--regexp", "--file", "--files", "--type-list"),
    texts=("-e", "--regexp", "-g", "--glob", "--iglob", "-r", "--replace"),
)  # fmt: skip

_PLAIN_READERS = (
    "dir", "vdir", "cat", "tac", "rev", "wc", "comm", "expand", "unexpand", "pr", "basename", "dirname",
    "realpath", "readlink", "cmp", "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum",
    "b2sum", "cksum", "sum", "shasum", "base32", "basenc", "tsort", "namei", "findmnt", "mountpoint", "pathchk",
    "lsattr", "getfacl", "getfattr", "zcat", "bzcat", "xzcat", "look", "readelf", "zipinfo", "bc",
)  # fmt: skip

_VALUED_READERS = {
    "ls": "ITw",
    "head": "nc",
    "tail": "nc",
    "nl": "bdfhilnsvw",
    "cut": "bcdf",
    "paste": "d",
    "join": "12jtaeov",
    "fold": "w",
    "fmt": "w",
    "column": "sco",
    "od": "AjNtS",
    "hexdump": "nse",
    "hd": "nse",
    "strings": "nte",
    "stat": "cf",
    "du": "dBt",
    "df": "Bt",
    "diff": "UCILFxW",
}
"""Reading programs whose options take values that are no paths."""

_SILENT = (
    "true", "false", ":", "echo", "pwd", "sleep", "seq", "tr", "expr", "factor", "numfmt", "yes", "uname", "arch", "id",
    "whoami", "groups", "logname", "tty", "who", "w", "users", "nproc", "hostid", "free", "lscpu", "lsmem", "lspci",
    "locale", "getconf", "getent", "printenv", "ps", "pgrep", "pidof", "clear", "type", "help", "apropos",
    "whatis", "times", "umask", "ulimit", "shift", "break", "continue", "return", "dirs", "caller",
    "which", "whereis", "locate", "lsblk", "uptime", "cal", "ncal", "vmstat",
)  # fmt: skip

READERS: dict[str, Judge] = {
    **dict.fromkeys(_PLAIN_READERS, Reader()),
    **{name: Reader(Grammar(values=values)) for name, values in _VALUED_READERS.items()},
    **dict.fromkeys(_SILENT, judge_silent),
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep"), _PATTERN),
    "rg": _RIPGREP,
    "ag": Reader(runs=("--pager",), skip=1),
    "jq": judge_jq,
    "sort": Reader(
        Grammar(
            values="kotST",
            longs=("key", "output", "field-separator", "buffer-size", "temporary-directory", "files0-from", "sort",
                   "parallel", "batch-size", "compress-program", "random-source"),
        ),
        writes=("-o", "--output"),
        runs=("--compress-program",),
        texts=("-t", "--field-separator"),
    ),
    "uniq": Reader(Grammar(values="fsw", longs=("skip-fields", "skip-chars", "check-chars")), most=1),
    "xxd": judge_xxd,
    "tree": judge_tree,
    "file": Reader(Grammar(values="efFmP"), runs=("-C", "--compile")),
    "shuf": Reader(
        Grammar(values="ino", longs=("input-range", "head-count", "output", "random-source")),
        writes=("-o", "--output"),
    ),
    "iconv": Reader(Grammar(values="fto", longs=("from-code", "to-code", "output")), writes=("-o", "--output")),
    "base64": Reader(Grammar(values="wo", longs=("wrap", "output")), writes=("-o", "--output")),
    "diff3": Reader(runs=("--diff-program",)),
    "sdiff": Reader(
        Grammar(values="owI", longs=("output", "width")), writes=("-o", "--output"), runs=("--diff-program",)
    ),
    "date": judge_date,
    "hostname": judge_hostname,
    "less": judge_less,
    "more": judge_less,
    "man": judge_man,
    "tar": judge_tar,
    "bsdtar": judge_tar,
    "unzip": judge_unzip,
}  # fmt: skip
"""Programs that only read, unless their judge says otherwise."""

ASK_VERSION = frozenset(
    {"python", "python3", "node", "perl", "ruby", "php", "gcc", "g++", "cc", "c++", "clang", "make", "cmake", "bash",
     "zsh", "git", "docker", "curl", "ssh", "openssl", "java", "pip", "pip3", "uv", "ruff", "mypy", "rm", "cp", "mv",
     "sed", "awk", "gawk", "tar", "dd", "install", "rsync", "jq"}
)  # fmt: skip
"""Programs that answer `--version` and do nothing else. Not those that first look into the workspace for the version
of themselves to run, such as cargo, go, yarn or pnpm."""


def asks_version(call: Call) -> bool:
    """Whether the call is `PROGRAM --version`."""
    return (
        call.name in ASK_VERSION and len(call.args) == 1 and call.args[0].text == "--version" and call.args[0].literal
    )
