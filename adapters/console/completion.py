"""Completes what begins like a command."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A command to offer, as it is typed, and what it does."""

    text: str
    meaning: str


class CommandCompleter(Completer):
    """Offers the commands that begin with what was typed, one word further than it goes."""

    def __init__(self, suggestions: Sequence[Suggestion]) -> None:
        self._suggestions = suggestions

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002
        """Give the completions of the text before the cursor; none for anything that is no command."""
        typed = document.text_before_cursor
        if not typed.startswith("/") or "\n" in typed:
            return
        words = typed.count(" ") + 1
        seen: set[str] = set()
        for suggestion in self._suggestions:
            offered = " ".join(suggestion.text.split(" ")[:words])
            if not offered.startswith(typed) or offered in seen or any(mark in offered for mark in "<[…|"):
                continue
            seen.add(offered)
            yield Completion(offered, start_position=-len(typed), display_meta=suggestion.meaning)
