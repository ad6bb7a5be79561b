"""What the configuration accepts, where each value comes from, and how it says what is wrong."""

import os
import stat

import pytest

from engine.model import Limits
from gateway.app import make_engine
from gateway.config import ConfigInvalid, Configuration, load_configuration
from gateway.home import Home, HomeUnusable


@pytest.fixture
def home(tmp_path):
    return Home(str(tmp_path / "home"))


def load(home: Home, text: str | bytes = "", environment=None, overrides=None) -> Configuration:
    home.ensure()
    with open(home.config, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return load_configuration(home, environment or {}, overrides)


def problems(home: Home, text: str | bytes = "", environment=None) -> str:
    with pytest.raises(ConfigInvalid) as caught:
        load(home, text, environment)
    return str(caught.value)


def test_no_file_and_no_environment_give_the_documented_defaults(home):
    settings = load_configuration(home, {}).settings

    checkpoints = settings.checkpoints
    assert checkpoints.enabled is False
    assert (checkpoints.max_snapshots, checkpoints.max_total_size_mb, checkpoints.max_file_size_mb) == (
        20,
        500,
        10,
    )
    assert (checkpoints.auto_prune, checkpoints.retention_days, checkpoints.min_interval_hours) == (
        True,
        7,
        24,
    )
    assert checkpoints.change_feed is True
    assert settings.approvals == "outside"
    assert settings.agent.kind == "direct"
    assert settings.default_workspace is None
    assert (settings.telegram, settings.slack) == (None, None)


def test_the_documented_example_is_valid(home, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    text = """
checkpoints:
  enabled: false
  max_snapshots: 20
  max_total_size_mb: 500
  max_file_size_mb: 10
  auto_prune: true
  retention_days: 7
  min_interval_hours: 24
default_workspace: app
workspaces:
  app: {path: ~/code/app}
  box: {path: /srv/box, backend: {kind: docker, cli: podman, image: "dev:latest", args: ["--network=none"]}}
agent: {kind: direct}
approvals: outside
telegram: {token: abc, allow: [12345], mode: polling, api_base: "http://127.0.0.1:8081"}
slack: {bot_token: x, app_token: y, signing_secret: z, allow: [U123], mode: socket, api_base: "http://127.0.0.1:9"}
"""
    settings = load(home, text).settings

    assert settings.workspaces["app"].path == str(tmp_path / "code" / "app")
    assert settings.backend_of("box").kind == "docker"
    assert settings.backend_of("box").args == ("--network=none",)
    assert settings.telegram is not None
    assert settings.telegram.allow == (12345,)


def test_command_line_beats_environment_beats_file(home):
    text = "checkpoints: {max_snapshots: 1, retention_days: 1, max_file_size_mb: 1}"
    environment = {"TAKEBACK_CHECKPOINTS__MAX_SNAPSHOTS": "2", "TAKEBACK_CHECKPOINTS__RETENTION_DAYS": "2"}

    checkpoints = load(home, text, environment, {"checkpoints": {"max_snapshots": 3}}).settings.checkpoints

    assert (checkpoints.max_snapshots, checkpoints.retention_days, checkpoints.max_file_size_mb) == (3, 2, 1)


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("TAKEBACK_CHECKPOINTS__ENABLED", "1", lambda s: s.checkpoints.enabled is True),
        ("TAKEBACK_CHECKPOINTS__ENABLED", "off", lambda s: s.checkpoints.enabled is False),
        ("TAKEBACK_APPROVALS", "all", lambda s: s.approvals == "all"),
        ("TAKEBACK_DEFAULT_WORKSPACE", "my-app", lambda s: s.default_workspace == "my-app"),
        ("TAKEBACK_WORKSPACES__MY_APP__PATH", "/other", lambda s: s.workspaces["my-app"].path == "/other"),
        ("TAKEBACK_WORKSPACES__NEW__PATH", "/new", lambda s: s.workspaces["new"].path == "/new"),
        (
            "TAKEBACK_WORKSPACES",
            '{"new": {"path": "/new"}}',
            lambda s: set(s.workspaces) == {"my-app", "new"},
        ),
        ("TAKEBACK_TELEGRAM__ALLOW", "1, 2", lambda s: s.telegram.allow == (1, 2)),
        ("TAKEBACK_TELEGRAM__ALLOW", "[3]", lambda s: s.telegram.allow == (3,)),
        ("TAKEBACK_TELEGRAM__ALLOW_GROUPS", "-100", lambda s: s.telegram.allow_groups == (-100,)),
        ("TAKEBACK_TELEGRAM__TOKEN", "new", lambda s: s.telegram.token.get_secret_value() == "new"),
        ("TAKEBACK_TELEGRAM__TOKEN", "", lambda s: s.telegram.token.get_secret_value() == "old"),
        ("TAKEBACK_LOGS__LEVEL", "debug", lambda s: s.logs.level == "debug"),
    ],
)
def test_a_variable_overrides_its_key(home, name, value, read):
    text = "workspaces: {my-app: {path: /x}}\ntelegram: {token: old}"

    assert read(load(home, text, {name: value}).settings)


def test_a_secret_is_read_from_a_file_without_its_last_newline(home, tmp_path):
    (tmp_path / "token").write_text("s3cret\n")

    settings = load(home, "", {"TAKEBACK_TELEGRAM__TOKEN_FILE": str(tmp_path / "token")}).settings

    assert settings.telegram is not None
    assert settings.telegram.token.get_secret_value() == "s3cret"


def test_a_variable_beside_its_file_form_is_refused(home, tmp_path):
    (tmp_path / "token").write_text("s3cret")
    environment = {"TAKEBACK_TELEGRAM__TOKEN": "a", "TAKEBACK_TELEGRAM__TOKEN_FILE": str(tmp_path / "token")}

    assert problems(home, "", environment) == (
        "TAKEBACK_TELEGRAM__TOKEN_FILE: TAKEBACK_TELEGRAM__TOKEN is set too; keep one of them"
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "checkpoints:\n  enabeld: true",
            "{file}:2: checkpoints.enabeld is not a known key; the nearest valid key is checkpoints.enabled",
        ),
        (
            "max_snapshots: 3",
            "{file}:1: max_snapshots is not a known key; the nearest valid key is checkpoints.max_snapshots",
        ),
        ("telegramm: {}", "{file}:1: telegramm is not a known key; the nearest valid key is telegram"),
        (
            "workspaces:\n  app:\n    path: /x\n    backend: {knd: local}",
            (
                "{file}:4: workspaces.app.backend.knd is not a known key; "
                "the nearest valid key is workspaces.app.backend.kind"
            ),
        ),
        (
            "checkpoints: {max_snapshots: 0}",
            "{file}:1: checkpoints.max_snapshots must be greater than 0, not '0'",
        ),
        (
            "checkpoints: {max_snapshots: 1.5}",
            "{file}:1: checkpoints.max_snapshots must be a whole number, not '1.5'",
        ),
        ("checkpoints: {max_snapshots: true}", "{file}:1: checkpoints.max_snapshots must be a number"),
        (
            "checkpoints: {retention_days: -1}",
            "{file}:1: checkpoints.retention_days must be greater than 0, not '-1'",
        ),
        (
            "checkpoints: {retention_days: .inf}",
            "{file}:1: checkpoints.retention_days must not be greater than 1000000000, not 'inf'",
        ),
        ("checkpoints: {enabled: maybe}", "{file}:1: checkpoints.enabled must be true or false, not 'maybe'"),
        ("checkpoints: on", "{file}:1: checkpoints must be a section with keys of its own, not 'on'"),
        ("approvers: none", "{file}:1: approvers must be anyone or admins, not 'none'"),
        ("approval_timeout_s: 0", "{file}:1: approval_timeout_s must be greater than 0, not '0'"),
        ("agent: {history_characters: 10}", "{file}:1: agent.history_characters must not be less than 2000, not '10'"),
        ("approvals: some", "{file}:1: approvals must be off, outside, destructive or all, not 'some'"),
        ("agent: {kind: modle}", "{file}:1: agent.kind must be direct, model or acp, not 'modle'"),
        ("agent: {kind: model}", "{file}:1: agent needs the key model when its kind is model"),
        (
            "default_workspace: app",
            "{file}:1: default_workspace is 'app', which is none of the workspaces (none)",
        ),
        (
            "workspaces: {app: {path: code}}",
            "{file}:1: workspaces.app.path must be an absolute path, or begin with ~",
        ),
        (
            "workspaces: {app: {}}",
            "{file}:1: workspaces.app.path is missing (it can also be set as TAKEBACK_WORKSPACES__APP__PATH)",
        ),
        (
            "workspaces: {a/b: {path: /x}}",
            (
                "{file}:1: workspaces.a/b is no name for a workspace: "
                "up to 64 letters, digits, '.', '_' or '-', a letter or digit first"
            ),
        ),
        ("telegram: {token: t, allow: [me]}", "{file}:1: telegram.allow[0] must be a whole number, not 'me'"),
        (
            "telegram: {token: t, mode: webhook}",
            "{file}:1: telegram needs the key webhook_url when its mode is webhook",
        ),
        ("telegram: {token: t, admins: [true]}", "{file}:1: telegram.admins[0] must be a number"),
        ("telegram: {token: t, groups: some}", "{file}:1: telegram.groups must be addressed or all, not 'some'"),
        ("slack: {bot_token: t, app_token: t, admins: ['']}", "{file}:1: slack.admins[0] must not be empty, not ''"),
        ("slack: {bot_token: t}", "{file}:1: slack needs the key app_token when its mode is socket"),
        (
            "telegram: {token: t, api_base: 'ftp://x'}",
            "{file}:1: telegram.api_base must begin with http:// or https://",
        ),
        (
            "http: {host: 0.0.0.0}",
            "{file}:1: http has a host that other machines can reach; allow that with public: true",
        ),
        ("http: {host: example.org}", "{file}:1: http has a host that is no IP address; use 127.0.0.1"),
        ("http: {port: 65536}", "{file}:1: http.port must not be greater than 65535, not '65536'"),
        ("a: [1\nb: c", "{file}, line 2, column 2: YAML syntax: expected ',' or ']', but got ':'"),
        ("approvals: off\napprovals: all", "{file}:2: approvals stands twice"),
        ("1: x", "{file}:1: a key must be a word; put it in quotes"),
        ("- a", "{file}: must hold keys and values, one 'key: value' a line"),
        ("a: &a {b: *a}", "{file}: is nested too deeply"),
        (b"approvals: \xff", "{file}: is not UTF-8 text (byte 11)"),
    ],
)
def test_a_mistake_in_the_file_is_said_with_its_place(home, text, wanted):
    assert problems(home, text) == wanted.format(file=home.config)


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        (
            {"TAKEBACK_CHECKPOINT__ENABLED": "1"},
            "TAKEBACK_CHECKPOINT__ENABLED: no such key; the nearest is TAKEBACK_CHECKPOINTS__ENABLED",
        ),
        ({"TAKEBACK_APPROVAL": "all"}, "TAKEBACK_APPROVAL: no such key; the nearest is TAKEBACK_APPROVALS"),
        (
            {"TAKEBACK_APPROVALS": "some"},
            "TAKEBACK_APPROVALS: approvals must be off, outside, destructive or all, not 'some'",
        ),
        ({"TAKEBACK_TELEGRAM": "x"}, "TAKEBACK_TELEGRAM: must be JSON, because it sets more than one value"),
        (
            {"TAKEBACK_TELEGRAM__ALLOW": "[1"},
            "TAKEBACK_TELEGRAM__ALLOW: must be JSON, because it sets more than one value",
        ),
        ({"TAKEBACK_WORKSPACES": "[]"}, "TAKEBACK_WORKSPACES: must be a JSON object"),
        (
            {"TAKEBACK_AGENT__KIND": "model", "TAKEBACK_AGENT__MODEL": "gpt"},
            (
                "TAKEBACK_AGENT__MODEL: agent has a model that is none of agent.models (none are configured); "
                "a provider's own is written provider:name, for example openai:gpt-5"
            ),
        ),
        (
            {"TAKEBACK_DEFAULT_WORKSPACE": "app"},
            "TAKEBACK_DEFAULT_WORKSPACE: default_workspace is 'app', which is none of the workspaces (none)",
        ),
        ({"TAKEBACK_HTTP__HOST": "x"}, "TAKEBACK_HTTP__HOST: http has a host that is no IP address; use 127.0.0.1"),
        (
            {"TAKEBACK_SLACK__BOT_TOKEN": "xoxb-1"},
            "TAKEBACK_SLACK__BOT_TOKEN: slack needs the key app_token when its mode is socket",
        ),
        (
            {"TAKEBACK_SLACK__ALLOW": '["U1"]'},
            ("TAKEBACK_SLACK__ALLOW: slack.bot_token is missing (it can also be set as TAKEBACK_SLACK__BOT_TOKEN)"),
        ),
        (
            {"TAKEBACK_AGENT__MODEL_FILE": "/nonexistent"},
            "TAKEBACK_AGENT__MODEL_FILE: /nonexistent cannot be read: No such file or directory",
        ),
    ],
)
def test_a_mistake_in_the_environment_is_said_with_the_variable(home, environment, wanted):
    assert problems(home, "", environment) == wanted


def test_all_mistakes_are_said_at_once(home):
    said = problems(home, "approvals: some\nchekpoints: {}\n")

    assert said.splitlines()[0] == "the configuration has 2 problems:"
    assert "approvals must be" in said
    assert "chekpoints is not a known key" in said


@pytest.mark.parametrize(
    "text",
    [
        "telegram: 123:SECRET",
        "telegram: {token: SECRET, allow: yes}",
        "telegram: {token: *SECRET}",
        "telegram: {token: !SECRET x}",
        "telegram: {token: 'SECRET}",
        "telegram: {token: SECRET, api_base: SECRET}",
        "slack: {bot_token: [SECRET], app_token: 5}",
        "agent: {model: [SECRET]}",
        "telegram: {token: &SECRET a, mode: &SECRET b}",
    ],
)
def test_no_secret_reaches_an_error(home, text):
    assert "SECRET" not in problems(home, text)


def test_a_loaded_secret_is_not_shown(home):
    configuration = load(home, "telegram: {token: SECRET}")

    assert "SECRET" not in repr(configuration) + str(configuration.settings)


def test_variables_of_other_programs_are_left_alone(home):
    assert load(home, "", {"TAKEBACK_PORT": "tcp://10.0.0.1:80", "TAKEBACK_SERVICE_HOST": "10.0.0.1"})


def test_words_that_older_yaml_took_for_booleans_are_words(home):
    settings = load(home, "approvals: off\ncheckpoints: {enabled: yes}").settings

    assert settings.approvals == "off"
    assert settings.checkpoints.enabled is True


def test_a_section_with_nothing_in_it_keeps_its_defaults(home):
    settings = load(home, "checkpoints:\n  # enabled: true\ntelegram:\nworkspaces:\nagent: {kind: }\n").settings

    assert settings == load(home, "").settings


def test_delete_orphans_is_accepted_with_a_warning_and_no_effect(home):
    text = "checkpoints: {delete_orphans: true}\nworkspaces: {a: {path: /x, checkpoints: {delete_orphans: 1}}}"

    configuration = load(home, text)

    assert [warning.split(": ", 1)[1] for warning in configuration.warnings] == [
        "checkpoints.delete_orphans is ignored; orphans go only by: gateway prune --orphans",
        "workspaces.a.checkpoints.delete_orphans is ignored; orphans go only by: gateway prune --orphans",
    ]


@pytest.mark.parametrize(("key", "value"), [("max_total_size_mb", "5"), ("change_feed", "false")])
def test_what_holds_for_the_whole_store_has_no_effect_in_a_workspace_and_is_said(home, key, value):
    configuration = load(home, f"workspaces: {{a: {{path: /x, checkpoints: {{{key}: {value}, enabled: true}}}}}}")

    assert [warning.split(": ", 1)[1] for warning in configuration.warnings] == [
        f"workspaces.a.checkpoints.{key} has no effect: it holds for the whole store"
    ]


@pytest.mark.parametrize("wanted", [True, False])
def test_the_engine_listens_for_changes_unless_it_is_told_not_to(home, wanted):
    configuration = load(home, "", {"TAKEBACK_CHECKPOINTS__CHANGE_FEED": str(wanted)})

    assert make_engine(configuration)._feed.enabled is wanted


def test_a_workspace_overrides_only_the_keys_it_names(home):
    text = """
checkpoints: {enabled: true, max_snapshots: 5}
agent: {kind: direct}
workspaces:
  small: {path: /x, checkpoints: {max_file_size_mb: 0.5}, agent: {kind: model, model: "a:b"}}
  plain: {path: /y}
"""
    settings = load(home, text).settings

    small = settings.checkpoints_of("small")
    assert (small.enabled, small.max_snapshots) == (True, 5)
    assert small.limits() == Limits(max_snapshots=5, max_file_size_bytes=512 * 1024)
    assert settings.checkpoints_of("plain") == settings.checkpoints
    assert settings.agent_of("small").kind == "model"
    assert settings.agent_of("plain").kind == "direct"


def test_commands_inherit_only_what_is_listed(home):
    environment = {
        "PATH": "/bin",
        "HOME": "/h",
        "LC_ALL": "C",
        "AWS_SECRET_ACCESS_KEY": "x",
        "TAKEBACK_AGENT__KIND": "direct",
    }

    configuration = load(home, "", environment)

    assert configuration.command_environment == {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C"}
    assert configuration.search_path == "/bin"


def test_the_home_is_made_for_its_owner_alone(tmp_path):
    home = Home.from_environment({"TAKEBACK_HOME": str(tmp_path / "a" / "b")})

    home.ensure()
    home.ensure()

    assert stat.S_IMODE(os.stat(home.path).st_mode) == 0o700


def test_a_file_where_the_home_should_be_is_said(tmp_path):
    (tmp_path / "home").write_text("")

    with pytest.raises(HomeUnusable, match=r"is not a directory.*TAKEBACK_HOME"):
        Home(str(tmp_path / "home")).ensure()


def test_without_a_variable_the_home_is_below_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))

    assert Home.from_environment({}).path == str(tmp_path / ".takeback")


MODELS = """
agent:
  kind: model
  model: fast
  max_steps: 7
  models:
    fast: {model: "openai:mini"}
    at-home: {model: "openai:qwen", base_url: "http://127.0.0.1:8000/v1"}
workspaces:
  slow: {path: /x, agent: {model: "anthropic:large"}}
  plain: {path: /y, agent: {kind: direct}}
"""


def test_a_workspace_has_the_common_models_beside_its_own(home):
    settings = load(home, MODELS).settings

    assert [*settings.agent.choices()] == ["fast", "at-home"]
    slow = settings.agent_of("slow")
    assert (slow.kind, slow.max_steps) == ("model", 7)
    assert [choice.shown for choice in slow.choices().values()] == [
        "default (anthropic:large)",
        "fast (openai:mini)",
        "at-home (openai:qwen at http://127.0.0.1:8000/v1)",
    ]
    assert settings.agent_of("plain").kind == "direct"


def test_the_key_and_address_of_one_model_are_not_sent_with_another(home):
    text = """
agent: {kind: model, model: "openai:m", base_url: "http://127.0.0.1:1/v1", api_key: hidden}
workspaces: {other: {path: /x, agent: {model: "anthropic:n"}}}
"""
    choice = load(home, text).settings.agent_of("other").choice(None)

    assert (choice.base_url, choice.api_key) == (None, None)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "agent: {kind: model, model: fast, models: {slow: {model: 'a:b'}}}",
            "agent has a model that is none of agent.models (slow); a provider's own is written provider:name",
        ),
        (
            "agent: {kind: model, model: fast, base_url: 'http://h', models: {fast: {model: 'a:b'}}}",
            "agent has no use for base_url when its model is one of models; set it there",
        ),
        ("agent: {models: {fast: {model: b}}}", "agent.models.fast needs the key model as provider:name"),
        ("agent: {models: {default: {model: 'a:b'}}}", "is no name for a model"),
        ("agent: {max_steps: 0}", "agent.max_steps must be greater than 0, not '0'"),
    ],
)
def test_a_wrong_model_is_named_with_its_place(home, text, wanted):
    assert wanted in problems(home, text)


def test_keys_of_models_come_from_variables_and_files_and_are_known_as_secrets(home, tmp_path):
    (tmp_path / "key").write_text("of-the-default\n")
    environment = {
        "TAKEBACK_AGENT__API_KEY_FILE": str(tmp_path / "key"),
        "TAKEBACK_AGENT__MODELS__AT_HOME__API_KEY": "of-at-home",
        "OPENAI_API_KEY": "usual",
        "OTHER_API_KEY": "foreign-1",
        "OTHER_API_KEY_FILE": "/run/secrets/other",
        "TOKEN_TYPE": "bearer-of-all",
        "MONKEY_BUSINESS": "no-secret-1",
        "PASSWORD": "short",
    }
    text = 'agent: {kind: model, model: "openai:m", models: {at-home: {model: "openai:q"}}}'

    configuration = load(home, text, environment)

    keys = {name: choice.api_key for name, choice in configuration.settings.agent.choices().items()}
    assert {name: key.get_secret_value() for name, key in keys.items() if key} == {
        "default": "of-the-default",
        "at-home": "of-at-home",
    }
    assert sorted(configuration.secrets()) == ["foreign-1", "of-at-home", "of-the-default", "usual"]
    assert "usual" not in repr(configuration)
