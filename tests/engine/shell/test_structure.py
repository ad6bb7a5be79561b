"""Commands wherever the shell's grammar can put them, and scripts that are no shell."""

import pytest

INSIDE = [
    "{}",
    "{};",
    "  {}  ",
    "\n{}\n",
    "# a comment\n{}",
    "{} # a comment",
    "ls; {}",
    "ls;{}",
    "ls\n{}",
    "ls && {}",
    "ls&&{}",
    "ls || {}",
    "ls &&\n{}",
    "{} && ls",
    "! {}",
    "ls | {}",
    "ls |& {}",
    "{} | cat",
    "ls |\n{}",
    "a=1; {}",
    "ls & {}",
    "({})",
    "( ls; {} )",
    "{{ {}; }}",
    "{{\n{}\n}}",
    "$({})",
    "echo $({})",
    "echo $(echo $({}))",
    "echo `{}`",
    "echo `echo \\`{}\\``",
    'echo "$({})"',
    'echo "a $(ls "b $({}) c") d"',
    'echo "`{}`"',
    "x=$({})",
    "x=`{}`",
    "x=$({}) ls",
    "x=(a $({}) b)",
    "export x=$({})",
    "declare x=$({})",
    "local x=$({})",
    "echo ${{x:-$({})}}",
    'echo "${{x:-$({})}}"',
    "echo ${{x/$({})/b}}",
    "echo ${{x:=$({})}}",
    "echo $(( $({}) + 1 ))",
    "echo $((`{}`))",
    "cat <({})",
    "ls > >({})",
    "tee >({}) < in",
    "diff <(ls) <({})",
    "cat <<< $({})",
    'cat <<< "$({})"',
    "cat <<EOF\n$({})\nEOF",
    "cat <<EOF\n`{}`\nEOF",
    'cat <<EOF\nsay "hi" $({})\nEOF',
    "cat <<EOF\n${{x:-$({})}}\nEOF",
    "cat <<-EOF\n\t$({})\n\tEOF",
    "cat <<A <<B\n$({})\nA\nx\nB",
    "cat <<A <<B\nx\nA\n$({})\nB",
    "cat <<EOF; {}\nx\nEOF",
    "cat <<EOF && {}\nx\nEOF",
    "cat <<EOF | {}\nx\nEOF",
    "cat <<'EOF'\nx\nEOF\n{}",
    "sh <<'EOF'\n{}\nEOF",
    "bash -s <<'EOF'\nls\n{}\nEOF",
    "if {}; then ls; fi",
    "if ls; then {}; fi",
    "if ls; then ls; else {}; fi",
    "if ls; then ls; elif {}; then ls; fi",
    "if ls; then ls; elif ls; then {}; fi",
    "if ls\nthen\n{}\nfi",
    "if [ -f x ]; then {}; fi",
    "while {}; do ls; done",
    "while ls; do {}; done",
    "until ls; do {}; done",
    "while read l; do {}; done < in",
    "ls | while read l; do {}; done",
    "for i in a b; do {}; done",
    "for i in $({}); do ls; done",
    "for i; do {}; done",
    "for ((i=0; i<3; i++)); do {}; done",
    "select i in a; do {}; done",
    "case x in a) ls;; *) {};; esac",
    "case x in a) {} ;& b) ls;; esac",
    "case $({}) in a) ls;; esac",
    "case x in $({})) ls;; esac",
    "f() {{ {}; }}",
    "f() {{ {}; }}; f",
    "function f {{ {}; }}; f",
    "f() ( {} )",
    "f() {{ ls; }}; {}",
    "time {}",
    "time {{ {}; }}",
    "time -p ( {} )",
    "coproc {}",
    "coproc {{ {}; }}",
    "coproc NAME {{ {}; }}",
    "ls > $({})",
    'ls "$({})"',
    "ls < <({})",
    "[ -f $({}) ]",
    '[ "$({})" = x ]',
    "[[ -n $({}) ]]",
    "[[ a == $({}) ]]",
    "a[$({})]=1",
    "echo ${{a[$({})]}}",
    "eval '{}'",
    "sh -c '{}'",
    "trap '{}' EXIT",
    "ls \\\n  -l; {}",
    "echo 'a\nb'; {}",
    'echo "a\nb"; {}',
    "ls 2>/dev/null; {}",
    "X=1 {}",
    "</dev/null {}",
    "2>/dev/null {}",
    "{} &",
    "(cd sub && ({}))",
    "while :; do for i in a; do if ls; then {}; fi; done; done",
]

DESTRUCTIVE = ["rm x", "sed -i s/a/b/ x", "git reset --hard"]


@pytest.mark.parametrize("command", DESTRUCTIVE)
@pytest.mark.parametrize("place", INSIDE)
def test_a_destructive_command_is_seen_wherever_it_stands(judge, place, command):
    assert judge(place.format(command)).verdict == "destructive", judge(place.format(command)).reason


@pytest.mark.parametrize("place", INSIDE)
def test_an_unknown_command_is_never_read_only_wherever_it_stands(judge, place):
    assert judge(place.format("make")).verdict != "read-only"


def test_backticks_in_an_expansion_are_never_read_only(judge):
    assert judge("echo ${x:+`rm x`}").verdict != "read-only"


NEVER_READ_ONLY = {
    "coproc {}",
    "coproc {{ {}; }}",
    "coproc NAME {{ {}; }}",
    "X=1 {}",
    "echo $(( $({}) + 1 ))",
    "echo $((`{}`))",
    "a[$({})]=1",
    "echo ${{a[$({})]}}",
    "$({})",
    "ls > $({})",
    "[ -f $({}) ]",  # what is printed may be several words, and an operator among them
}


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


def test_deep_and_long_commands_are_unknown_and_answered_quickly(judge):
    doubling = "f0() { ls; }; " + "; ".join(f"f{n}() {{ f{n - 1}; f{n - 1}; }}" for n in range(1, 60)) + "; f59"
    for command in (
        "(" * 5000 + "ls" + ")" * 5000,
        "$(" * 3000 + "ls",
        "ls && " * 4000 + "ls",
        "a|" * 20000,
        "cat <<A " * 5000,
        "echo " + "{a,b}" * 40,
        "echo " + "{" * 3000,
        "ls " + "x" * 2_000_000,
        doubling,
        "sh -c " * 100 + "ls",
        "<" * 5000,
        "if ls; then " * 2000,
    ):
        assert judge(command).verdict != "destructive"


def test_a_long_here_document_is_read(judge):
    body = "x = 'a' | \"b\" > c; $(d) `e`\n" * 10_000

    assert judge(f"cat > big.py <<'EOF'\n{body}EOF\n").paths == ("big.py",)
    assert judge(f"cat <<'EOF'\n{body}EOF\n").verdict == "read-only"
    assert judge(f"cat <<'EOF'\n{body}EOF\nrm x").verdict == "destructive"
