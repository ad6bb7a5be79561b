"""The gateway's own log: its form, its place, and what never gets into it."""

import json
import logging
import os
import stat
import warnings

import pytest

from gateway.logs import LARGEST_FILE_BYTES, LineFormatter, logging_to

LOG = logging.getLogger("gateway.test")


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "gateway.log")


def lines(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def test_a_line_of_text_has_time_level_logger_event_and_ids(path):
    with logging_to(path):
        LOG.info("a turn ended", extra={"chat": "my chat", "turn": 7})

    (line,) = lines(path)
    assert line[10] == "T"
    assert line.split(" ", 1)[1] == 'info gateway.test: a turn ended chat="my chat" turn=7'


def test_a_line_of_json_has_the_same_as_fields(path):
    with logging_to(path, as_json=True):
        LOG.warning("late by %d s", 3, extra={"turn": 7})

    entry = json.loads(lines(path)[0])
    assert entry.pop("at").endswith("+00:00")
    assert entry == {"level": "warning", "logger": "gateway.test", "event": "late by 3 s", "turn": 7}


def test_an_event_of_several_lines_stays_one_line(path):
    with logging_to(path):
        LOG.info("one\ntwo")

    assert len(lines(path)) == 1


@pytest.mark.parametrize("as_json", [False, True])
def test_no_secret_is_written_wherever_it_stands(path, as_json):
    secrets = ["s3cret", "s3cret-and-more", ""]
    with logging_to(path, as_json=as_json, secrets=secrets):
        LOG.info("sent to https://api/bots3cret-and-more/x", extra={"token": "s3cret"})
        LOG.error("it failed", exc_info=ValueError("s3cret was refused"))

    text = "\n".join(lines(path))
    assert "s3cret" not in text
    assert "and-more" not in text
    assert "ValueError: *** was refused" in text


def test_what_is_below_the_level_is_not_written(path):
    with logging_to(path, level="warning"):
        LOG.info("quiet")
        LOG.warning("loud")

    assert [line.rpartition(" ")[2] for line in lines(path)] == ["loud"]


def test_the_debug_lines_of_libraries_are_never_written(path):
    with logging_to(path, level="debug"):
        logging.getLogger("aiosqlite").debug("INSERT INTO messages VALUES ('what somebody wrote')")
        LOG.debug("ours")

    assert [line.rpartition(" ")[2] for line in lines(path)] == ["ours"]


def test_warnings_of_libraries_are_written(path):
    with logging_to(path), warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("a large checkpoint", UserWarning, stacklevel=1)

    assert "a large checkpoint" in lines(path)[0]


def test_the_file_is_for_its_owner_alone_and_is_added_to(path):
    for _ in range(2):
        with logging_to(path):
            LOG.info("again")

    assert len(lines(path)) == 2
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_large_file_is_set_aside_at_the_next_start(path):
    with open(path, "w") as file:
        file.write("x" * (LARGEST_FILE_BYTES + 1))

    with logging_to(path):
        LOG.info("new")

    assert len(lines(path)) == 1
    assert os.path.getsize(f"{path}.1") == LARGEST_FILE_BYTES + 1


def test_a_log_that_cannot_be_written_is_said_and_does_not_stop_the_program(tmp_path, capsys):
    with logging_to(str(tmp_path)):
        LOG.info("lost")

    assert "cannot be written" in capsys.readouterr().err


def test_the_logging_of_the_process_is_as_before(path):
    before = (list(logging.getLogger().handlers), logging.getLogger().level)
    with logging_to(path):
        pass

    assert (list(logging.getLogger().handlers), logging.getLogger().level) == before


def test_a_record_without_anything_special_can_be_formatted():
    record = logging.makeLogRecord({"name": "x", "levelname": "INFO", "msg": "y"})

    assert LineFormatter(as_json=False).format(record).endswith("info x: y")
