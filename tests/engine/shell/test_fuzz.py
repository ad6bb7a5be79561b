"""Whatever text it is given, the understanding answers, and keeps its promises about the answer."""

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.tools.shell import Understanding, Verdict, understand
from tests.engine.shell.tables.hostile import HOSTILE
from tests.engine.shell.tables.places import INSIDE

# A row of tokens each; a token may hold white space, so they are parted by a character that no token needs.
TOKENS = [
    *"; | & \n ' \" \\ $ ` ( ) { } < > # ! [ ] * ? = ~ , @ % ^ : - + / . a x 1 é".split(" "),  # noqa: SIM905
    *"rm cat ls sort -o echo sed find -delete tee xargs git reset eval exec cd sh -c test".split(),  # noqa: SIM905
    *"if then else fi for in do done while case esac function time coproc [[ ]] (( )) ${ :-".split(),  # noqa: SIM905
    *"$( $(( << <<- <<< >> >| &> 2>&1 <> && || ;; |& $' <( >( \\\n EOF \nEOF\n".split(" "),  # noqa: SIM905
    " ",
    "  ",
    "\t",
    "\r",
    "\x00",
    "\ue000",
    "\udcff",
]

SEEDS = [
    *[command for group in HOSTILE.values() for command in group],
    *[place.format(command) for place in INSIDE for command in ("rm x", "ls")],
]

token_soup = st.lists(st.sampled_from(TOKENS), max_size=30).map("".join)

spaced_soup = st.lists(st.sampled_from(TOKENS), max_size=30).map(" ".join)


@st.composite
def spliced_commands(draw: st.DrawFn) -> str:
    """The beginning of one command, a token, and the end of another."""
    first, second = draw(st.sampled_from(SEEDS)), draw(st.sampled_from(SEEDS))
    head = first[: draw(st.integers(0, len(first)))]
    tail = second[draw(st.integers(0, len(second))) :]
    return head + draw(st.sampled_from(TOKENS)) + tail


commands = st.one_of(st.text(max_size=80), token_soup, spaced_soup, spliced_commands())


def understand_there(command: str) -> Understanding:
    return understand(command, cwd="/w/app/sub", root="/w/app", home="/home/user")


@settings(max_examples=300, derandomize=True, deadline=None)
@given(commands)
def test_any_text_gets_an_answer(command):
    understood = understand_there(command)

    assert understood.verdict in set(Verdict)
    assert understood.reason.isprintable()
    assert 0 < len(understood.reason) <= 160
    assert len(set(understood.paths)) == len(understood.paths)
    assert len(set(understood.outside)) == len(understood.outside)
    if understood.verdict is Verdict.READ_ONLY:
        assert set(understood.outside) <= set(understood.paths)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.text(), st.text(), st.one_of(st.none(), st.text()))
def test_any_place_gets_an_answer(cwd, root, home):
    assert understand("rm ~/x ../y z; cd a; > b", cwd=cwd, root=root, home=home).verdict is Verdict.DESTRUCTIVE


@settings(max_examples=300, derandomize=True, deadline=None)
@given(commands)
def test_a_read_only_command_hides_nothing_that_follows_it(command):
    """A line after a complete command is another command; only an open quote or here-document could swallow it."""
    if understand_there(command).verdict is Verdict.READ_ONLY:
        assert understand_there(f"{command}\nrm x").verdict is Verdict.DESTRUCTIVE


@settings(max_examples=300, derandomize=True, deadline=None)
@given(commands)
def test_a_destructive_command_in_front_is_always_seen(command):
    assert understand_there(f"rm x\n{command}").verdict is not Verdict.READ_ONLY


@settings(max_examples=300, derandomize=True, deadline=None)
@given(commands, st.sampled_from(["({}\n)", "{{ {}\n}}", "if true; then {}\nfi", "sh -c '{}'"]))
def test_a_command_that_is_not_read_only_is_not_made_so_by_what_stands_round_it(command, place):
    if "'" not in command and understand_there(command).verdict is not Verdict.READ_ONLY:
        assert understand_there(place.format(command)).verdict is not Verdict.READ_ONLY
