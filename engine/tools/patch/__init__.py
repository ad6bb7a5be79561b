"""The tool ``patch``: a unified diff, or search/replace edits, becomes file edits; nothing is written here.

Exact: the lines that a patch expects must stand in the file byte for byte, in one place. Everything is worked out, over
all files, before ``edits.apply_edits`` writes anything.
"""

from collections.abc import Callable

from engine.errors import ToolRefused
from engine.tools.edits import Edit
from engine.tools.filetree import FileTree
from engine.tools.patch.blocks import apply_blocks, has_blocks, parse_blocks
from engine.tools.patch.draft import Draft
from engine.tools.patch.files import apply_diff
from engine.tools.patch.unified import has_headers, parse_diff

__all__ = ["prepare_patch"]

_HELP = """\
is neither a unified diff nor a search/replace edit. Nothing was changed. Write a diff with its ---, +++ and
@@ lines, or:

path/to/file
<<<<<<< SEARCH
lines as they are in the file
=======
lines to stand there instead
>>>>>>> REPLACE"""


def prepare_patch(tree: FileTree, text: str, resolve: Callable[[str], str]) -> list[Edit]:
    """Work out what a patch changes; ``resolve`` turns a name in it into a path below the root.

    Raises ``ToolRefused`` where it cannot be applied exactly, saying why and where it nearly fits; ``PathUnsafe`` for a
    name that leads elsewhere; ``OSError`` from reading.
    """
    patch = text.encode("utf-8", "surrogateescape")
    draft = Draft(tree, resolve)
    if has_blocks(patch):
        apply_blocks(draft, parse_blocks(patch))
    elif has_headers(patch):
        apply_diff(draft, parse_diff(patch))
    else:
        raise ToolRefused("this patch", _HELP)
    edits = draft.edits()
    if not edits:
        raise ToolRefused("this patch", "changes nothing: what it would write stands there already")
    return edits
