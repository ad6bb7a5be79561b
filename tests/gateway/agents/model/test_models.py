"""Which model answers: the configuration's, or the one a session chose; and what is said where it cannot."""

import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from gateway.agents.model.agent import ModelAgent
from gateway.app import make_agents
from gateway.config import Agent, ConfigInvalid, load_configuration
from gateway.config.agent import ModelChoice
from gateway.config.providers import PROVIDERS, key_of, problem_of
from gateway.home import Home
from tests.gateway.agents.model.desk import AT_ONCE, chat_with
from tests.gateway.agents.model.server import KEY, ModelServer, Says, model_server
from tests.gateway.commands.kit import running_gateway, settings_for

OTHER_KEY = "sk-of-the-other"


async def test_a_session_keeps_the_model_it_chose_over_a_restart_and_new(
    openai: ModelServer, home: Path, app: Path
) -> None:
    async with model_server("openai") as other:
        models = {"small": {"model": "openai:mini", "base_url": other.base_url, "api_key": OTHER_KEY}}
        openai.will(Says("I am the first."), Says("The first again."))
        other.will(Says("I am small."), Says("Still small."), Says("Small as ever."))

        async with chat_with(openai, home, app, models=models) as chat:
            await chat.say("who?")
            shown = await chat.say("/model")
            switched = await chat.say("/model SMALL")
            second = await chat.say("who?")
            status = await chat.say("/status")
        async with chat_with(openai, home, app, models=models) as chat:
            third = await chat.say("who?")
            await chat.say("/new")
            fourth = await chat.say("who?")
            back = await chat.say("/model default")
            fifth = await chat.say("who?")

    assert shown.lines[0] == f"default ({openai.model} at {openai.base_url}) answers in this session."
    assert shown.lines[2] == f"  small (openai:mini at {other.base_url})"
    assert "small (openai:mini" in switched.text
    assert "/model default goes back." in switched.text
    assert f"Agent: model, small (openai:mini at {other.base_url})" in status.lines
    assert [answer.lines[0] for answer in (second, third, fourth, fifth)] == [
        "I am small.",
        "Still small.",
        "Small as ever.",
        "The first again.",
    ]
    assert "goes back" not in back.text
    assert set(other.keys) == {OTHER_KEY}
    assert set(openai.keys) == {KEY}
    # The conversation goes along.
    assert other.heard(0)[:2] == [("user", "who?"), ("assistant", "I am the first.")]


async def test_a_model_that_is_not_configured_cannot_be_chosen(openai: ModelServer, home: Path, app: Path) -> None:
    async with chat_with(openai, home, app, models={"small": {"model": "openai:mini"}}) as chat:
        answer = await chat.say("/model smal")

    assert answer.text == (
        "There is no model smal; only config.yaml names them. Did you mean /model small? /model lists them."
    )


async def test_without_a_model_the_command_says_how_to_connect_one(home: Path, app: Path) -> None:
    async with running_gateway(home, settings_for(app)) as gateway:
        shown = await gateway.chat().say("/model")
        compacted = await gateway.chat().say("/compact")

    assert "the agent of this workspace is direct" in shown.text
    assert "nothing to sum up" in compacted.text


async def test_a_model_without_a_key_is_said_in_the_chat(home: Path, app: Path) -> None:
    settings = settings_for(app, agent={"kind": "model", "model": "openai:gpt-5"})

    async with running_gateway(home, settings, agents={"model": ModelAgent(settings.agent)}) as gateway:
        answer = await gateway.chat().say("hello")

    assert answer.text.startswith("✖ default has no key; set OPENAI_API_KEY, or agent.api_key")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_usual_key_goes_to_its_provider_and_to_no_other_address(provider: str) -> None:
    keys = {name: SecretStr(f"of {name}") for known in PROVIDERS.values() for name in known.variables}

    own = key_of(ModelChoice("x", f"{provider}:m"), keys)
    elsewhere = key_of(ModelChoice("x", f"{provider}:m", base_url="http://127.0.0.1:9"), keys)

    assert own is not None
    assert own.get_secret_value() == f"of {PROVIDERS[provider].variables[0]}"
    assert elsewhere is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("openal:gpt-5", "openal is no provider that this version knows; it has: openai, "),
        ("openai:", "openai needs the name of a model behind its colon"),
    ],
)
def test_a_model_that_cannot_be_is_refused_at_the_start(tmp_path: Path, text: str, wanted: str) -> None:
    error = refused(Home(str(tmp_path)), {"TAKEBACK_AGENT__KIND": "model", "TAKEBACK_AGENT__MODEL": text})

    assert str(error).startswith(f"TAKEBACK_AGENT__MODEL: agent.model: {wanted}")


def test_a_wrong_model_is_named_by_the_variable_or_the_line_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "agent:\n  kind: model\n  model: openal:a\n"
        "workspaces:\n  slow:\n    path: /x\n    agent: {model: 'opanai:b'}\n"
        "  fast: {path: /y, agent: {kind: model, model: 'openal:c'}}\n"
    )
    file = tmp_path / "config.yaml"

    found = {
        variable: [problem.where for problem in refused(Home(str(tmp_path)), variables).problems]
        for variable, variables in {"none": {}, "one": {"TAKEBACK_AGENT__MODEL": "openal:c"}}.items()
    }

    assert found == {"none": [f"{file}:3", f"{file}:7"], "one": ["TAKEBACK_AGENT__MODEL", f"{file}:7"]}


def refused(home: Home, variables: dict[str, str]) -> ConfigInvalid:
    with pytest.raises(ConfigInvalid) as caught:
        make_agents(load_configuration(home, variables))
    return caught.value


@pytest.mark.parametrize(("provider", "extra"), [("openai", "openai"), ("ollama", "openai"), ("google", "google")])
def test_a_missing_library_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, provider: str, extra: str
) -> None:
    choice = ModelChoice("x", f"{provider}:m")
    assert problem_of(choice) is None
    monkeypatch.setitem(sys.modules, "google.genai" if extra == "google" else "openai", None)

    assert f"install it: TAKEBACK_EXTRAS={extra} sh deploy/run version" in str(problem_of(choice))
    assert f"pip install 'takeback[{extra}]'" in str(problem_of(choice))


async def test_what_an_earlier_choice_names_may_be_gone_by_now(openai: ModelServer, home: Path, app: Path) -> None:
    openai.will(Says("Here."))

    async with chat_with(openai, home, app, models={"small": {"model": "openai:mini"}}) as chat:
        await chat.say("/model small")
    async with chat_with(openai, home, app) as chat:
        answer = await chat.say("who?")

    assert answer.lines[0] == "Here."


def test_settings_make_an_agent_for_each_workspace() -> None:
    agent = ModelAgent(Agent(kind="model", model="a:b"), patience=AT_ONCE)

    other = agent.using(Agent(kind="model", model="c:d"), "small")

    assert (other.settings.model, other.label, other.patience) == ("c:d", "small", AT_ONCE)
