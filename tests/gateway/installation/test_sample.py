"""The sample workspace appears whole, once, and is never touched again."""

import os
import threading

import pytest

from gateway.installation.sample import FILES, ensure_sample


def test_it_holds_every_file_and_nothing_is_left_beside_it(tmp_path):
    path = ensure_sample(str(tmp_path / "sample"))

    assert {name: (tmp_path / "sample" / name).read_text() for name in os.listdir(path)} == FILES
    assert os.listdir(tmp_path) == ["sample"]


@pytest.mark.parametrize("what", ["directory", "file", "dangling link"])
def test_whatever_stands_there_is_left_as_it_is(tmp_path, what):
    path = tmp_path / "sample"
    if what == "directory":
        path.mkdir()
    elif what == "file":
        path.write_text("mine")
    else:
        path.symlink_to("nowhere")

    ensure_sample(str(path))

    assert not (path / "greet.py").exists()
    assert os.listdir(tmp_path) == ["sample"]


def test_many_that_make_it_at_once_get_the_same_one(tmp_path):
    path = str(tmp_path / "sample")
    together = threading.Barrier(8)

    def make():
        together.wait()
        ensure_sample(path)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(os.listdir(path)) == sorted(FILES)
    assert os.listdir(tmp_path) == ["sample"]
