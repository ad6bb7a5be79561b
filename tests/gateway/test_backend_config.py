"""The keys of services that rent out sandboxes: which are needed, and that none of the secret ones is shown."""

import pytest

from gateway.config import ConfigInvalid, load_configuration
from gateway.config.backend import NEEDED_BY
from gateway.home import Home

NEEDED = [(kind, name) for kind, names in NEEDED_BY.items() for name in names]


def load(tmp_path, backend, environment=None):
    home = Home(str(tmp_path / "home"))
    home.ensure()
    text = "".join(f"      {name}: {value}\n" for name, value in backend.items())
    with open(home.config, "w", encoding="utf-8") as file:
        file.write(f"workspaces:\n  app:\n    path: {tmp_path}\n    backend:\n{text}")
    return load_configuration(home, environment or {}).settings


def known_by(kind):
    return {"kind": kind} | {name: f"hidden-{name}" for name in NEEDED_BY[kind]}


@pytest.mark.parametrize(("kind", "name"), NEEDED)
def test_what_a_service_knows_somebody_by_is_needed(tmp_path, kind, name):
    backend = known_by(kind)
    del backend[name]

    with pytest.raises(ConfigInvalid, match=f"needs the key {name} when its kind is {kind}"):
        load(tmp_path, backend)


@pytest.mark.parametrize("kind", NEEDED_BY)
def test_the_engine_is_told_the_keys_as_they_are_and_shows_none(tmp_path, kind):
    settings = load(tmp_path, {**known_by(kind), "network": "all"})

    choice = settings.backend_of("app").choice()

    assert (choice.kind, choice.options) == (
        kind,
        {"network": "all", **{name: f"hidden-{name}" for name in NEEDED_BY[kind]}},
    )
    assert "hidden" not in repr(choice)


def test_a_services_secret_is_read_from_a_file_and_kept_out_of_what_is_written(tmp_path):
    (tmp_path / "key").write_text("hidden\n")
    settings = load(
        tmp_path, {"kind": "daytona"}, {"TAKEBACK_WORKSPACES__APP__BACKEND__API_KEY_FILE": str(tmp_path / "key")}
    )

    assert settings.backend_of("app").choice().options == {"api_key": "hidden"}
    assert settings.secrets() == ["hidden"]
    assert "hidden" not in repr(settings)


def test_a_key_of_another_service_is_refused(tmp_path):
    with pytest.raises(ConfigInvalid, match="has no use for team_id when its kind is daytona; it takes api_key, "):
        load(tmp_path, {**known_by("daytona"), "team_id": "x"})
