"""Text like source code, made up: as varied within a file and from one to the next, so that it compresses as real code.

A file uses a few names of its own again and again, made of words that all files share, some of them often. What
`LIKE_REAL` holds was measured on 39,000 pieces of 4,000 bytes each, cut from Python modules and C headers; ours is to
compress no better.
"""

import random

LIKE_REAL = {1: 0.340, 6: 0.314}
"""What zlib leaves of real code at its levels, as a share of it."""

_SEED = 20261130
_WORDS = 1500
_NAMES = 24
_SYLLABLES = (
    "ac al an ar at ba be ca ce co con de di ed en er es ex fi for ge in ing is ion it ken la le li lo ly ma me ment "
    "mo nd ne no ny on or out pa per po pre pro ra re ri ro se si sta ste sub ta te ter ti tion to tra un ur us ver vi"
)
_TYPES = ("int", "str", "bytes", "list[str]", "dict[str, int]", "None", "bool")
# Filled with indentation, four names, three words of prose, a type, and a number.
_FORMS = (
    "{0}{1} = {2}({3}, {4})\n",
    "{0}if {1} is not {2}:\n",
    "{0}    return {1}.{2}[{3}]\n",
    "\n\ndef {1}({2}: {8}, {3}: {8}) -> {8}:\n",
    "{0}for {1} in {2}.{3}({4}):\n",
    '{0}    {1}["{5}"] = {2}\n',
    "{0}self.{1} = {2} or {3}\n",
    '{0}raise ValueError(f"{5} {6} {7}: {{{1}}}")\n',
    "{0}# {5} {6} {7} {5}ing {7}s\n",
    '{0}"""The {5} {6} of {7}, {1} or {6} {2}."""\n',
    '{0}{1}.{2}("{5}", {3}={9})\n',
    "{0}assert {1}({9}) == {2}\n",
    "{0}with {1}({2}) as {3}:\n",
)


def _words() -> list[str]:
    numbers = random.Random(_SEED)
    syllables = _SYLLABLES.split()
    found: dict[str, None] = {}
    while len(found) < _WORDS:
        found["".join(numbers.choices(syllables, k=numbers.choice((1, 2, 2, 2, 3, 3))))] = None
    return list(found)


_VOCABULARY = _words()
_FREQUENCIES = [1 / (rank + 8) for rank in range(_WORDS)]  # as words are spread in any language


def source(numbers: random.Random, size_bytes: int) -> bytes:
    """Return about so much of it."""
    lines = size_bytes // 32
    prose = numbers.choices(_VOCABULARY, _FREQUENCIES, k=3 * lines + 3 * _NAMES)
    names = ["_".join(prose.pop() for _word in range(numbers.choice((1, 1, 2, 2, 3)))) for _name in range(_NAMES)]
    used = numbers.choices(names, k=4 * lines)
    forms = numbers.choices(_FORMS, k=lines)
    text: list[str] = []
    size = 0
    for at, form in enumerate(forms):
        indentation = "    " * numbers.choice((1, 1, 1, 2, 2, 3))
        words = prose[3 * at : 3 * at + 3]
        kind, number = numbers.choice(_TYPES), numbers.randrange(1000)
        text.append(form.format(indentation, *used[4 * at : 4 * at + 4], *words, kind, number))
        size += len(text[-1])
        if size >= size_bytes:
            break
    return "".join(text).encode("ascii")
