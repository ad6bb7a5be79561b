"""Whatever a reply holds becomes messages that Telegram takes, with nothing of it lost."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.contract import Attachment, Button, Outbound, Part, Place, Style
from adapters.replies import compose, file_name
from tests.adapters.telegram import limits

LETTERS = st.sampled_from(["a", "é", "漢", "😀", "👨‍👩‍👧", "*", "`", "_", "<", "&", " ", "\n", "\n\n", "word "])
TEXTS = st.builds(
    lambda pieces, times: "".join(pieces) * times, st.lists(LETTERS, max_size=12), st.sampled_from([1, 1, 7, 400])
)
PARTS = st.builds(Part, TEXTS, st.sampled_from(list(Style)))
FILES = st.builds(Attachment, st.text(max_size=8), st.binary(max_size=3))
BUTTONS = st.builds(lambda number: Button(f"Button {number}", "/x", f"t{number}"), st.integers(0, 999))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PARTS, max_size=8), st.lists(FILES, max_size=3), st.lists(BUTTONS, max_size=120))
def test_every_message_is_within_the_limits_and_nothing_is_lost(parts, files, buttons):
    from adapters.telegram.rendering import LIMITS, keyboard, rendered

    pieces = compose(Outbound(Place("telegram", "1"), tuple(parts), tuple(files), tuple(buttons)), LIMITS)

    shown = ""
    for piece in pieces:
        text, entities = rendered(piece.parts)
        longest = limits.LONGEST_TEXT if piece.file is None else limits.LONGEST_CAPTION
        limits.check_text(text, longest, "message")
        limits.check_entities(text, [entity.model_dump(exclude_none=True) for entity in entities])
        assert text.strip() or piece.file is not None
        if piece.buttons:
            limits.check_buttons(json.loads(keyboard(piece.buttons).model_dump_json(exclude_none=True)))
        if piece.file is not None:
            limits.check_file(piece.file.content, 50 * 1024 * 1024)
            assert file_name(piece.file.name)
        shown += text
        shown += piece.file.content.decode() if piece.file is not None and piece.file.name.startswith("reply.") else ""
    assert [button for piece in pieces for button in piece.buttons] == list(buttons)
    wanted = "".join("".join(part.text for part in parts).split())
    assert wanted in "".join(shown.split())
