"""Files from people: which are taken, and under which names."""

import pytest

from adapters.contract import Attachment, Offered, SendFailed
from gateway.access.fetching import MOST_FILES, NAME_BYTES, NAME_CHARACTERS, fetch, safe_names


def offered(name: str, outcome: bytes | Exception, size: int | None = None) -> Offered:
    async def get() -> bytes:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return Offered(name, size, get)


async def test_what_fails_is_said_in_the_platforms_words_and_the_rest_is_taken():
    files = [
        offered("gone.txt", SendFailed("the file is gone", retry_after_s=None)),
        offered("a.txt", b"a"),
        offered("odd\x1b.txt", ZeroDivisionError("secret detail")),
        offered("b.txt", b""),
    ]

    fetched = await fetch(files, largest_bytes=1, limit_s=30)

    assert fetched.in_order == (Attachment("a.txt", b"a"), Attachment("b.txt", b""))
    assert fetched.said == (
        "⚠ gone.txt was not taken: the file is gone.\n⚠ odd\\x1b.txt was not taken: it could not be fetched."
    )


async def test_a_message_brings_so_many_files_and_no_more():
    files = [offered(f"{number}", b"x") for number in range(MOST_FILES + 2)]

    fetched = await fetch(files, largest_bytes=1, limit_s=30)

    assert len(fetched.files) == MOST_FILES
    assert list(fetched.missing) == [MOST_FILES, MOST_FILES + 1]


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("notes.txt", "notes.txt"),
        ("my_file_[1].py", "my_file_[1].py"),
        ("<x>&.txt", "<x>&.txt"),
        ("Übersicht 漢字.md", "Übersicht 漢字.md"),
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("/etc/", "etc"),
        (".bashrc", "bashrc"),
        ("..", "file"),
        ("-rf", "rf"),
        ("~root", "root"),
        ("a\0b\n\x1b.txt", "a_b__.txt"),
        ("bytes \udcff.bin", "bytes _.bin"),
        ("", "file"),
        (" . ", "file"),
        ("x" * 300 + ".tar", "x" * (NAME_CHARACTERS - 4) + ".tar"),
        ("." + "y" * 300, "y" * NAME_CHARACTERS),
        ("x." + "y" * 300, None),
        ("漢" * 99, "漢" * (NAME_BYTES // 3)),
        ("é" + "😀" * 70 + ".gz", "é" + "😀" * ((NAME_BYTES - 5) // 4) + ".gz"),
    ],
)
def test_a_name_is_one_visible_component_of_a_path(given, safe):
    (file,) = safe_names([Attachment(given, b"x")])

    assert safe is None or file.name == safe
    assert 0 < len(file.name) <= NAME_CHARACTERS
    assert len(file.name.encode()) <= NAME_BYTES
    assert "/" not in file.name
    assert file.content == b"x"


def test_no_two_files_of_a_message_have_one_name():
    files = [Attachment(name, name.encode()) for name in ("a.txt", "A.TXT", "dir/a.txt", "a-2.txt")]

    assert [file.name for file in safe_names(files)] == ["a.txt", "A-2.TXT", "a-3.txt", "a-2-2.txt"]
