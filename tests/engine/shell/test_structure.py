"""Commands wherever the shell's grammar can put them, and scripts that are no shell."""

import time

import pytest

from tests.engine.shell.tables.places import INSIDE, NEVER_READ_ONLY

DESTRUCTIVE = ["rm x", "sed -i s/a/b/ x", "git reset --hard"]


@pytest.mark.parametrize("command", DESTRUCTIVE)
@pytest.mark.parametrize("place", INSIDE)
def test_a_destructive_command_is_seen_wherever_it_stands(judge, place, command):
    assert judge(place.format(command)).verdict == "destructive", judge(place.format(command)).reason


@pytest.mark.parametrize("place", INSIDE)
def test_an_unknown_command_is_never_read_only_wherever_it_stands(judge, place):
    assert judge(place.format("make")).verdict != "read-only"


def test_a_here_document_that_does_not_end_still_has_its_redirect(judge):
    assert judge("cat > file <<'EOF'").verdict == "destructive"
    assert judge("cat <<EOF > file\nx\nEOF").verdict == "destructive"
    assert judge("sh <<EOF\nrm x\nEOF").verdict == "destructive"


def test_a_word_right_before_a_here_document_is_read(judge):
    assert judge("rm x<<EOF\ny\nEOF").paths == ("x",)
    assert judge("cat x<<EOF\ny\nEOF").verdict == "read-only"


def test_backticks_in_an_expansion_are_never_read_only(judge):
    assert judge("echo ${x:+`rm x`}").verdict != "read-only"


@pytest.mark.parametrize("place", [place for place in INSIDE if place not in NEVER_READ_ONLY])
def test_a_reading_command_stays_read_only_wherever_it_stands(judge, place):
    assert judge(place.format("ls")).verdict == "read-only", judge(place.format("ls")).reason


@pytest.mark.parametrize("command", ["", " ", "\n", "\t\n", "# comment", "  # a\n# b\n", ";" * 0, ": # rm x"])
def test_nothing_and_comments_are_read_only(judge, command):
    assert judge(command).verdict == "read-only"


@pytest.mark.parametrize(
    "command",
    [
        "(",
        ")",
        "ls (",
        "ls )",
        "'",
        '"',
        "`",
        "$(",
        "${",
        "if",
        "if ls",
        "fi",
        "for",
        "ls |",
        "ls &&",
        "&& ls",
        "; ls",
        ";;",
        "ls > ",
        "cat <<EOF",
        "cat <<EOF\nx",
        "ls \\",
        "ls 'x",
        'echo "$(ls"',
        "ls\x00",
        "ls\r\n",
        "ls\x0b-l",
        "ls\x07",
        "\x1b[31mls",
        "ls \ud800",
        "ls !(x)",
        "echo @(a|b)",
        "((i++))",
        "((a > b))",
        "echo $[1+1]",
        "((x)) && ls",
        "$'l\\'s'",
        "echo $'a\\'b'",
        'echo $"text"',
        "ls\u00a0x\u00a0;\u00a0ls",
        "{ls;}",
        "[x]",
        "[ -f x",
        "function",
        "case x in",
        "a=(",
        "ls }; {",
    ],
)
def test_what_is_not_plainly_shell_is_not_read_only(judge, command):
    assert judge(command).verdict != "read-only"


def test_a_certain_destructive_part_wins_over_what_cannot_be_read(judge):
    assert judge("rm x; (").verdict == "destructive"
    assert judge("make; rm x").verdict == "destructive"
    assert judge("rm x\r\n").verdict == "destructive"


@pytest.mark.parametrize(
    "command",
    [
        "ls() { echo hi; }; ls",
        "cat() { ./evil; }; cat x",
        "function grep { :; }",
        "cd() { :; }",
        "rm() { :; }",
        "alias ls='echo'",
        "command_not_found_handle() { ./evil; }; nothing",
    ],
)
def test_redefining_a_known_name_is_not_read_only(judge, command):
    assert judge(command).verdict != "read-only"


def test_calling_a_function_is_judged_by_its_body(judge):
    assert judge('show() { cat "$1"; }; show x').verdict == "read-only"
    assert judge("build() { make; }; build").verdict == "unknown"
    assert judge("f() { f; }; f").verdict == "read-only"
    assert judge("f() { g; }; g() { f; }; f").verdict == "unknown"


DOUBLING = "f0() { ls; }; " + "; ".join(f"f{n}() {{ f{n - 1}; f{n - 1}; }}" for n in range(1, 60)) + "; f59"


@pytest.mark.parametrize(
    "command",
    [
        "(" * 5000 + "ls" + ")" * 5000,
        "$(" * 3000 + "ls",
        "ls && " * 4000 + "ls",
        "ls; " * 10_000,
        "a|" * 20_000,
        "a|" * 1500,
        "echo '<<A'\n" + "a|" * 6000 + "\nA",
        "cat <<A " * 5000,
        "cat <<A " * 300,
        "cat <<A\nx\nA\n" * 500,
        "echo " + "{a,b}" * 40,
        "echo " + "{" * 3000,
        "echo " + "{a," * 3000 + "}" * 3000,
        "ls " + "x" * 2_000_000,
        DOUBLING,
        "sh -c " * 100 + "ls",
        "eval " * 3000 + "ls",
        "<" * 5000,
        "if ls; then " * 2000,
        "cat <<EOF\n" + '"$(ls)" ' * 2000 + "\nEOF",
    ],
    ids=lambda command: command[:12],
)
def test_deep_and_long_commands_are_answered_within_seconds(judge, command):
    started = time.monotonic()

    judge(command)

    assert time.monotonic() - started < 10


def test_a_long_here_document_is_read(judge):
    body = "x = 'a' | \"b\" > c; $(d) `e`\n" * 5000

    assert judge(f"cat > big.py <<'EOF'\n{body}EOF\n").paths == ("big.py",)
    assert judge(f"cat <<'EOF'\n{body}EOF\n").verdict == "read-only"
    assert judge(f"cat <<'EOF'\n{body}EOF\nrm x").verdict == "destructive"


def test_a_here_document_full_of_tables_is_read(judge):
    table = "| a | b | c |\n" * 1400

    assert judge(f"cat > table.md <<'EOF'\n{table}EOF\n").paths == ("table.md",)


def test_a_command_that_cannot_be_read_at_all_is_named_as_outside(judge):
    assert judge("a|" * 20_000).outside
