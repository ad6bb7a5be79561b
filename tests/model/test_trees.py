"""What the model takes for granted: its own tree changes as a real one does."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.model.acts import filled, gestures
from tests.model.trees import Gesture, look, perform, perform_really


@given(st.lists(gestures(), max_size=8))
def test_gesture_does_in_memory_what_it_does_on_disk(performed: list[Gesture]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root, tree = Path(directory), look(Path(directory))
        for gesture in performed:
            perform(tree, filled(gesture, "a"))
            perform_really(root, filled(gesture, "a"))

        assert look(root) == tree
