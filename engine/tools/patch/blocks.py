"""Search/replace edits: reading the blocks, and applying each where its lines stand exactly once.

A block is a line with the file's name, then ``<<<<<<< SEARCH``, lines, ``=======``, lines, ``>>>>>>> REPLACE``. A block
without a name is for the file of the block before it. Where the lines themselves hold such marks, all three marks of
the block are written longer.
"""

import re
from dataclasses import dataclass

from engine.errors import ToolRefused
from engine.host.paths import display
from engine.tools.patch.draft import Draft
from engine.tools.patch.lines import (
    adapt_newlines,
    describe_nearest,
    describe_places,
    find_runs,
    show_line,
    split_lines,
)

_BEGIN = re.compile(rb"(<{7,}) SEARCH\s*$")
_MARK = re.compile(rb"(?:<{4,} ?SEARCH|={7,}|>{4,} ?REPLACE)\s*$")
_FENCE = re.compile(rb"\s*(?:```|~~~)")


@dataclass(frozen=True, slots=True)
class Block:
    """One edit: these lines of a file, and those to stand there instead. ``number`` counts the blocks from 1."""

    number: int
    named: str
    search: list[bytes]
    replace: list[bytes]


def has_blocks(patch: bytes) -> bool:
    """Whether a line begins a block."""
    return any(_BEGIN.match(line) for line in split_lines(patch))


def parse_blocks(patch: bytes) -> list[Block]:
    """Read every block; ``ToolRefused`` names the line that cannot be understood."""
    lines = split_lines(patch)
    blocks: list[Block] = []
    named: str | None = None
    at = 0
    while at < len(lines):
        begin = _BEGIN.match(lines[at])
        if begin is None:
            named = _read_outside(lines, at) or named
            at += 1
            continue
        if named is None:
            raise _refusal(lines, at, "begins a block, but no line before it names the file")
        divider, end = _find_marks(lines, at, len(begin.group(1)))
        blocks.append(Block(len(blocks) + 1, named, lines[at + 1 : divider], lines[divider + 1 : end]))
        at = end + 1
    return blocks


def apply_blocks(draft: Draft, blocks: list[Block]) -> None:
    """Work every block into a draft; ``ToolRefused`` where one does not stand in its file exactly once."""
    for block in blocks:
        path = draft.find(block.named)
        content = draft.content(path)
        changed = _create(path, content, block) if not block.search else _replace(path, content, block)
        draft.write(path, changed, draft.mode(path))


def _read_outside(lines: list[bytes], at: int) -> str | None:
    """Return the name of a file that a line outside the blocks may be; the last one before a block counts."""
    if _MARK.match(lines[at]):
        raise _refusal(lines, at, "is a mark outside a block; a block is SEARCH, =======, REPLACE, each mark as long")
    name = lines[at].rstrip(b"\r\n")
    if not name.strip() or _FENCE.match(name):
        return None
    return name.decode("utf-8", "surrogateescape")


def _find_marks(lines: list[bytes], begin: int, length: int) -> tuple[int, int]:
    divider, ending = re.compile(rb"={%d}\s*$" % length), re.compile(rb">{%d} REPLACE\s*$" % length)
    dividers: list[int] = []
    for at in range(begin + 1, len(lines)):
        begun = _BEGIN.match(lines[at])
        if begun is not None and len(begun.group(1)) == length:
            raise _refusal(lines, begin, f"begins a block that is not ended before the next one, at line {at + 1}")
        if divider.match(lines[at]):
            dividers.append(at)
        if ending.match(lines[at]):
            if len(dividers) == 1:
                return dividers[0], at
            raise _refusal(lines, begin, _divider_advice(len(dividers), length))
    raise _refusal(lines, begin, f"begins a block that is never ended; end it with {'>' * length} REPLACE")


def _divider_advice(found: int, length: int) -> str:
    if not found:
        return f"begins a block without a line {'=' * length}"
    return (
        f"begins a block with {found} lines {'=' * length}, so that it is not clear which one divides it; "
        f"write its three marks longer: {'<' * (length + 1)} SEARCH, {'=' * (length + 1)}, {'>' * (length + 1)} REPLACE"
    )


def _create(path: str, content: bytes | None, block: Block) -> bytes:
    if content:
        raise ToolRefused(
            f"{display(path)}, block {block.number}",
            "SEARCH is empty, which makes a new file, but this one holds lines",
        )
    return b"".join(block.replace)


def _replace(path: str, content: bytes | None, block: Block) -> bytes:
    if content is None:
        raise ToolRefused(display(path), "there is no such file; an empty SEARCH makes a new one")
    lines = split_lines(content)
    # Marks stand on lines of their own, so a block cannot say that the file's last line has no end: it need not.
    missing = b"" if not lines or content.endswith(b"\n") else adapt_newlines([b"\n"], lines)[0]
    lines[-1:] = [line + missing for line in lines[-1:]]
    index, search, replace = _place(path, lines, block)
    return b"".join([*lines[:index], *replace, *lines[index + len(search) :]]).removesuffix(missing)


def _place(path: str, lines: list[bytes], block: Block) -> tuple[int, list[bytes], list[bytes]]:
    subject = f"{display(path)}, block {block.number}"
    adapted = (adapt_newlines(block.search, lines), adapt_newlines(block.replace, lines))
    for search, replace in ((block.search, block.replace), adapted):
        runs = find_runs(lines, search)
        if len(runs) == 1:
            return runs[0], search, replace
        if runs:
            raise ToolRefused(
                subject, f"SEARCH matches {len(runs)} times ({describe_places(runs)}); give it more lines"
            )
    raise ToolRefused(subject, f"SEARCH matches nothing. {describe_nearest(lines, adapted[0])}")


def _refusal(lines: list[bytes], at: int, reason: str) -> ToolRefused:
    return ToolRefused(f"line {at + 1} of the patch", f"{show_line(lines[at])!r} {reason}. Nothing was changed")
