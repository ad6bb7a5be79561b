"""Variables: which of them change what later commands do, and what is safe to calculate with.

Setting `PATH`, `LD_PRELOAD` or `PAGER` turns a reading command into another one. And the shell evaluates more than it
seems to: in arithmetic a variable's *value* is read as an expression, and a subscript in it runs the commands it
holds. So calculating is harmless only with variables that hold nothing but numbers.
"""

from engine.tools.shell.nodes import Node
from engine.tools.shell.words import Word

HARMLESS_EXPORTS = frozenset(
    {"LANG", "LANGUAGE", "TZ", "COLUMNS", "LINES", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "TERM",
     "COLORTERM", "IFS", "DEBUG", "CI", "VERBOSE", "GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT", "OPTIND", "OLDPWD"}
)  # fmt: skip
"""Names that may be given to any program."""

PAGERS = frozenset({"PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER"})
HARMLESS_PAGERS = frozenset({"", "cat"})

POWERFUL = frozenset(
    {"ENV", "HOME", "SHELL", "SHELLOPTS", "EDITOR", "VISUAL", "BROWSER", "PROMPT_COMMAND", "ZDOTDIR", "TERMINFO",
     "POSIXLY_CORRECT", "PWD", "PS0", "PS1", "PS2", "PS3", "PS4"}
)  # fmt: skip
POWERFUL_STARTS = (
    "LD_", "DYLD_", "GIT_", "BASH", "LESS", "PERL5", "PYTHON", "RUBY", "NODE_", "GREP_", "MANP", "MANR", "XDG_",
    "GCONV_", "RIPGREP_", "TAR_", "MALLOC_", "GLIBC_", "SSH_", "SUDO_", "JAVA_",
)  # fmt: skip
READ_BY_SHELLS = ("BASH_FUNC_", "fish_")
"""What a shell that is started takes for more than a variable: `BASH_FUNC_ls%%` is a function, in bash."""

POWERFUL_ENDS = ("PATH", "PAGER", "EDITOR", "OPTIONS", "OPTS", "FLAGS", "COMMAND", "CMD")


def is_harmless_assignment(name: str, value: Word | None, *, exported: bool) -> bool:
    """Whether setting this variable leaves every later command what it was.

    A name with a lower-case letter is the author's own. Among the others, those handed to programs must be known
    harmless; those kept in the shell must not be known powerful, since a program never sees them.
    """
    if exported and (not name.isidentifier() or name.startswith(READ_BY_SHELLS)):
        return False
    if name.upper() != name:
        return True
    if name in PAGERS:
        return value is not None and value.literal and value.text in HARMLESS_PAGERS
    if exported:
        return name in HARMLESS_EXPORTS or (name.startswith("LC_") and name.isidentifier())
    powerful = name in POWERFUL or name.startswith(POWERFUL_STARTS) or name.endswith(POWERFUL_ENDS)
    return not powerful or name in HARMLESS_EXPORTS


NUMERIC_VALUES = frozenset(
    {"number", "arithmetic_expansion", "binary_expression", "unary_expression", "postfix_expression",
     "parenthesized_expression", "ternary_expression", "brace_expression"}
)  # fmt: skip

ASSIGNING_OPERATORS = frozenset({"=", ":="})

SET_BY_SHELL = frozenset({"_", "REPLY", "MAPFILE", "OPTARG", "PWD", "OLDPWD", "DIRSTACK", "FUNCNAME"})
"""Variables that the shell gives other values than those a script shows."""

NUMERIC_PARAMETERS = frozenset({"#", "?", "$"})


def find_numeric_variables(root: Node, source: bytes) -> frozenset[str]:
    """The variables a script sets to numbers and to nothing else, in no way that could hold anything else."""
    numeric: set[str] = set()
    other: set[str] = set()
    for node in root.walk():
        if node.type in {"variable_assignment", "for_statement"}:
            name, values = _assignment(node, source)
            (numeric if name and all(map(_is_numeric, values)) else other).add(name)
        elif node.type in {"command", "declaration_command", "unset_command"}:
            other.update(_text(child, source) for child in node.children if child.type in {"word", "variable_name"})
        elif node.type == "expansion" and any(_text(child, source) in ASSIGNING_OPERATORS for child in node.children):
            other.update(_text(child, source) for child in node.children if child.type == "variable_name")
    return frozenset(numeric - other - SET_BY_SHELL)


def _assignment(node: Node, source: bytes) -> tuple[str, list[Node]]:
    if node.type == "variable_assignment":
        name, values = node.child("name"), node.all("value")
    else:
        name, values = node.child("variable"), node.all("value")
        if not values or source[node.start : node.start + 3] != b"for":
            return (_text(name, source) if name else ""), [node]
    if name is not None and name.type == "subscript":  # the first element is what the bare name means
        return _text(name.child("name") or name, source), [name]
    plain = name is not None and name.type == "variable_name"
    return (_text(name, source) if name and plain else ""), values


def _is_numeric(value: Node) -> bool:
    return value.type in NUMERIC_VALUES and (value.type != "number" or not value.children)


def _text(node: Node, source: bytes) -> str:
    return source[node.start : node.end].decode("utf-8", "replace")


def is_calculable(node: Node, source: bytes, numeric: frozenset[str]) -> bool:
    """Whether evaluating this arithmetic can only calculate."""
    if node.type in {"subscript", "command_substitution", "process_substitution", "string", "concatenation"}:
        return False
    if node.type == "expansion":
        inside = source[node.start + 2 : node.end - 1].decode("utf-8", "replace")
        return inside in numeric or (inside.startswith("#") and inside[1:].isidentifier())
    if node.type in {"variable_name", "word"}:
        return _text(node, source) in numeric
    if node.type == "special_variable_name":
        return _text(node, source) in NUMERIC_PARAMETERS
    if not node.children:
        return not node.named or node.type == "number"
    return all(is_calculable(child, source, numeric) for child in node.children)


SAFE_OPERATORS = frozenset(
    {":-", "-", ":+", "+", ":?", "?", "=", ":=", "#", "##", "%", "%%", "/", "//", "/#", "/%", "^", "^^", ",", ",,", ":"}
)

ALL_ELEMENTS = frozenset({"@", "*"})


def is_plain_expansion(node: Node, source: bytes, numeric: frozenset[str]) -> bool:
    """Whether `${…}` only yields text: no indirection, no prompt expansion, no subscript that is evaluated."""
    indirect = False
    lengths = False
    for child in node.children:
        text = _text(child, source)
        if child.role == "operator":
            indirect = indirect or text == "!"
            lengths = lengths or text == ":"
            if text not in SAFE_OPERATORS and text != "!":
                return False
        elif child.type == "subscript":
            index = child.child("index")
            every = index is not None and _text(index, source) in ALL_ELEMENTS
            if indirect and not every:
                return False
            indirect = False
            if not every and (index is None or not is_calculable(index, source, numeric)):
                return False
        elif lengths and not is_calculable(child, source, numeric) and text != "}":
            return False
    return not indirect
