"""Whatever a reply holds becomes messages that Slack takes, and changes later on, with nothing of it lost."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.contract import Attachment, Button, Outbound, Part, Place, Style
from adapters.replies import compose, file_name
from tests.adapters.slack.limits import check_message, shown_in

LETTERS = st.sampled_from(["a", "é", "漢", "😀", "👨‍👩‍👧", "*", "`", "_", "<", "&", " ", "\n", "\n\n", "word "])
TEXTS = st.builds(
    lambda pieces, times: "".join(pieces) * times, st.lists(LETTERS, max_size=12), st.sampled_from([1, 1, 7, 250])
)
PARTS = st.builds(Part, TEXTS, st.sampled_from(list(Style)))
FILES = st.builds(Attachment, st.text(max_size=8), st.binary(max_size=3))
BUTTONS = st.lists(st.integers(1, 999), max_size=60, unique=True)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PARTS, max_size=8), st.lists(FILES, max_size=3), BUTTONS)
def test_every_message_is_within_the_limits_and_nothing_is_lost(parts, files, numbers):
    from adapters.slack.rendering import LIMITS, said

    buttons = tuple(Button(f"Button {number}" * 9, "/x", f"t{number}", confirm="?" * number) for number in numbers)
    pieces = compose(Outbound(Place("slack", "T/C"), tuple(parts), tuple(files), buttons), LIMITS)

    shown = ""
    for piece in pieces:
        if piece.file is None:
            message = said(piece.parts, piece.buttons)
            check_message(message["text"], message["blocks"], update=True)
            shown += "".join(map(shown_in, message["blocks"]))
        else:
            assert (piece.parts, piece.buttons) == ((), ())
            assert file_name(piece.file.name)
            shown += piece.file.content.decode() if piece.file.name.startswith("reply.") else ""
    assert [button for piece in pieces for button in piece.buttons] == list(buttons)
    wanted = "".join("".join(part.text for part in parts).split())
    assert wanted in "".join(shown.split())
