"""How the parts of a reply look on a terminal."""

from prompt_toolkit.styles import Style as Sheet

from adapters.console.text import printable, separated, shortened
from adapters.contract import Outbound, Part, Style

LONGEST_BLOCK_LINES = 200

STYLE = Sheet.from_dict(
    {
        "prompt": "bold ansicyan",
        "progress": "ansiyellow",
        "quiet": "ansibrightblack",
        "bold": "bold",
        "code": "ansicyan",
        "added": "ansigreen",
        "removed": "ansired",
        "hunk": "ansicyan",
        "file": "bold",
    }
)

_CLASSES = {Style.PLAIN: "", Style.BOLD: "class:bold", Style.CODE: "class:code", Style.BLOCK: ""}


def styled(message: Outbound) -> list[tuple[str, str]]:
    """Give the text of a reply as runs in a style, safe to print; blocks are cut to what one wants to scroll past."""
    runs: list[tuple[str, str]] = []
    for part in separated(message.parts):
        runs += _runs(part)
    if runs:
        style, text = runs[-1]
        runs[-1] = (style, text.rstrip("\n"))
    return runs


def _runs(part: Part) -> list[tuple[str, str]]:
    text = printable(part.text)
    if part.style in (Style.BLOCK, Style.DIFF):
        text = shortened(text, LONGEST_BLOCK_LINES)
    if part.style is not Style.DIFF:
        return [(_CLASSES[part.style], text)]
    return [(_diff_class(line), line) for line in text.splitlines(keepends=True)]


def _diff_class(line: str) -> str:
    if line.startswith(("diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "old mode", "new mode")):
        return "class:file"
    for mark, name in (("@@", "class:hunk"), ("+", "class:added"), ("-", "class:removed")):
        if line.startswith(mark):
            return name
    return ""
