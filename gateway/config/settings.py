"""Every key of the configuration: its type, its default, its bounds, and what it means.

The descriptions are the documentation: the example file and what ``gateway init`` writes are made from them.
Secrets are ``SecretStr``, so that no ``repr`` shows them.
"""

import ipaddress
import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from engine.model import Limits
from gateway.config.agent import Agent
from gateway.config.backend import Backend
from gateway.config.values import AbsolutePath, Address, Amount, Count, Interval, KeyWrong, Port, Section, number

MIB = 1024 * 1024
WORKSPACE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _workspace_name(value: str) -> str:
    if not WORKSPACE_NAME.fullmatch(value):
        raise ValueError(
            "is no name for a workspace: up to 64 letters, digits, '.', '_' or '-', a letter or digit first"
        )
    return value


TelegramId = Annotated[int, BeforeValidator(number)]
SlackId = Annotated[str, Field(min_length=1)]
AnswersInGroups = Annotated[
    Literal["addressed", "all"],
    Field(description="In groups, answer what names the bot or replies to it (addressed), or everything (all)."),
]
LargestFile = Annotated[Amount, Field(description="A larger file that somebody sends is not taken; it is said.")]
WorkspaceName = Annotated[str, AfterValidator(_workspace_name)]
Approvals = Literal["off", "outside", "destructive", "all"]


class Checkpoints(Section):
    """When checkpoints are taken and how long they are kept; a workspace may override any of these."""

    enabled: bool = Field(default=False, description="Master switch. When off, no git runs at all.")
    max_snapshots: Count = Field(default=20, description="Checkpoints kept per workspace; the oldest goes first.")
    max_total_size_mb: Amount = Field(default=500, description="Hard cap on the whole store.")
    max_file_size_mb: Amount = Field(default=10, description="A larger file is not captured; the gap is said.")
    max_source_files: Count = Field(
        default=50_000,
        description="A workspace with more source files than this is not captured; it is said.",
    )
    large_checkpoint_mb: Amount = Field(
        default=256, description="A warning names the largest path when one checkpoint adds more than this."
    )
    change_feed: bool = Field(
        default=True,
        description="Hear of changes from the system instead of looking at every file, where that can be trusted.",
    )
    auto_prune: bool = Field(default=True, description="Whether the running gateway prunes by itself.")
    retention_days: Amount = Field(
        default=7, description="A workspace not touched for longer loses its checkpoints when pruning."
    )
    min_interval_hours: Interval = Field(default=24, description="The gateway prunes at most once in this time.")

    def limits(self) -> Limits:
        """What of this the engine holds a workspace to."""
        return Limits(
            max_snapshots=self.max_snapshots,
            max_file_size_bytes=int(self.max_file_size_mb * MIB),
            max_source_files=self.max_source_files,
            large_checkpoint_bytes=int(self.large_checkpoint_mb * MIB),
        )


class Workspace(Section):
    """A directory tree that chats may work in."""

    path: AbsolutePath = Field(description="The directory: absolute, or beginning with ~.", examples=["~/code/app"])
    backend: Backend = Field(default=Backend(), description="Where its commands run.")
    checkpoints: Checkpoints = Field(
        default=Checkpoints(),
        description="Overrides for this workspace alone: any of the keys of checkpoints.",
        examples=[{"enabled": True, "max_snapshots": 50}],
    )
    agent: Agent | None = Field(
        default=None,
        description="Overrides for this workspace alone: any of the keys of agent. model, base_url and api_key go "
        "together; models are added.",
        examples=[{"kind": "direct"}],
    )
    approvals: Approvals | None = Field(
        default=None, description="Another rule for what waits for a person here.", examples=["all"]
    )


class Telegram(Section):
    """The Telegram bot."""

    token: SecretStr = Field(
        min_length=1,
        description="The bot's token; better in TAKEBACK_TELEGRAM__TOKEN_FILE.",
        examples=["123456:from-botfather"],
    )
    allow: tuple[TelegramId, ...] = Field(
        default=(), description="Numeric ids of admitted people; empty admits nobody.", examples=[[12345]]
    )
    allow_groups: tuple[TelegramId, ...] = Field(
        default=(),
        description="Numeric ids of groups in which everybody is admitted; /whoami shows them.",
        examples=[[-100123456]],
    )
    admins: tuple[TelegramId, ...] = Field(
        default=(), description="Ids of people who are admitted and may admit others by /pair.", examples=[[12345]]
    )
    groups: AnswersInGroups = "addressed"
    max_attachment_mb: LargestFile = 20
    mode: Literal["polling", "webhook"] = Field(default="polling", description="polling needs no public address.")
    api_base: Address = Field(default="https://api.telegram.org", description="Another Bot API server.")
    webhook_url: Address | None = Field(
        default=None,
        description="For mode webhook: the public address, which a reverse proxy leads here with its path.",
        examples=["https://bot.example.org/telegram"],
    )
    webhook_host: str = Field(default="127.0.0.1", description="For mode webhook: where to listen for the proxy.")
    webhook_port: Port = Field(default=8081, description="For mode webhook: the port to listen on.")
    webhook_secret: SecretStr | None = Field(
        default=None,
        description="For mode webhook: what Telegram proves itself with. Not set: a new one at each start.",
        examples=["letters-digits_"],
    )

    @model_validator(mode="after")
    def _mode_has_its_address(self) -> Self:
        if self.mode == "webhook" and self.webhook_url is None:
            raise KeyWrong("needs the key webhook_url when its mode is webhook", "mode")
        return self


class Slack(Section):
    """The Slack app."""

    bot_token: SecretStr = Field(min_length=1, description="Begins with xoxb-.", examples=["xoxb-…"])
    app_token: SecretStr | None = Field(
        default=None, description="For mode socket; begins with xapp-.", examples=["xapp-…"]
    )
    signing_secret: SecretStr | None = Field(default=None, description="For mode http.", examples=["0123abcd"])
    allow: tuple[SlackId, ...] = Field(
        default=(), description="Ids of admitted people; empty admits nobody.", examples=[["U123"]]
    )
    allow_groups: tuple[SlackId, ...] = Field(
        default=(),
        description="Ids of channels or teams in which everybody is admitted; /whoami shows them.",
        examples=[["C123", "T123"]],
    )
    admins: tuple[SlackId, ...] = Field(
        default=(), description="Ids of people who are admitted and may admit others by /pair.", examples=[["U123"]]
    )
    groups: AnswersInGroups = "addressed"
    max_attachment_mb: LargestFile = 20
    mode: Literal["socket", "http"] = Field(default="socket", description="socket needs no public address.")
    api_base: Address = Field(default="https://slack.com/api", description="Another Slack server.")
    http_host: str = Field(default="127.0.0.1", description="For mode http: where to listen for the reverse proxy.")
    http_port: Port = Field(default=8082, description="For mode http: the port to listen on, at /slack/events.")

    @model_validator(mode="after")
    def _mode_has_its_secret(self) -> Self:
        if self.mode == "socket" and self.app_token is None:
            raise KeyWrong("needs the key app_token when its mode is socket", "mode")
        if self.mode == "http" and self.signing_secret is None:
            raise KeyWrong("needs the key signing_secret when its mode is http", "mode")
        return self


class Logs(Section):
    """What the gateway writes about its own work; never the content of a message."""

    level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="The least that is logged.")
    format: Literal["text", "json"] = Field(default="text", description="text for people, json for collectors.")


class Http(Section):
    """Where the running service shows how it is: /healthz, /readyz, and /metrics for Prometheus."""

    port: Port | None = Field(
        default=None,
        description="The port; 0 takes any free one, which the log names. Not set: nothing is served.",
        examples=[9471],
    )
    host: str = Field(default="127.0.0.1", description="The address of this machine to listen on.")
    public: bool = Field(
        default=False,
        description="Allows a host that other machines can reach. Whoever reaches it may look: there is no password.",
    )

    @model_validator(mode="after")
    def _host_is_allowed(self) -> Self:
        try:
            loopback = self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            raise KeyWrong("has a host that is no IP address; use 127.0.0.1", "host") from None
        if not (loopback or self.public):
            raise KeyWrong("has a host that other machines can reach; allow that with public: true", "host")
        return self


class Settings(Section):
    """The whole configuration."""

    checkpoints: Checkpoints = Field(default=Checkpoints(), description="Checkpoints and their store.")
    default_workspace: WorkspaceName | None = Field(
        default=None, description="Where a new chat begins; one of the workspaces below.", examples=["app"]
    )
    workspaces: dict[WorkspaceName, Workspace] = Field(
        default_factory=dict, description="The directories that chats may work in, each under a name."
    )
    agent: Agent = Field(default=Agent(), description="What answers a turn; a workspace may override it.")
    approvals: Approvals = Field(
        default="outside",
        description="Which commands of an agent wait for a person: off, outside (those that may change files and name "
        "a path outside the workspace), destructive (all that may change files) or all (files it writes, too). "
        "Never those that a person typed.",
    )
    approvers: Literal["anyone", "admins"] = Field(
        default="anyone", description="Who may let a waiting command run: anyone admitted in its chat, or admins only."
    )
    approval_timeout_s: Amount = Field(
        default=300, description="A command that waits for a person longer than this is not run."
    )
    button_days: Amount = Field(default=30, description="A button below a message can be pressed for so many days.")
    session_idle_days: Amount = Field(
        default=30,
        description="A session in which nothing is said for so many days ends; the next message begins another. "
        "Nothing is deleted but what /diff session compares with.",
    )
    telegram: Telegram | None = Field(default=None, description="The Telegram bot.")
    slack: Slack | None = Field(default=None, description="The Slack app.")
    logs: Logs = Field(default=Logs(), description="The gateway's own log.")
    http: Http = Field(default=Http(), description="Where the running service shows how it is; loopback only.")

    @model_validator(mode="after")
    def _default_is_known(self) -> Self:
        if self.default_workspace is not None and self.default_workspace not in self.workspaces:
            known = ", ".join(sorted(self.workspaces)) or "none"
            raise KeyWrong(
                f"default_workspace is {self.default_workspace!r}, which is none of the workspaces ({known})",
                "default_workspace",
            )
        return self

    @model_validator(mode="after")
    def _models_are_known(self) -> Self:
        for section, agent in self.agents().items():
            if problem := agent.problem():
                raise KeyWrong(f"{'.'.join(section)} {problem}", *section, "model")
        return self

    def agents(self) -> dict[tuple[str, ...], Agent]:
        """Every agent that is configured, by the section that says so."""
        return {("agent",): self.agent} | {
            ("workspaces", name, "agent"): self.agent_of(name)
            for name, workspace in self.workspaces.items()
            if workspace.agent is not None
        }

    def with_workspace(self, name: str, path: str) -> Self:
        """The same settings with one more workspace; one of that name stays as it is."""
        return self.model_copy(update={"workspaces": {name: Workspace(path=path), **self.workspaces}})

    def with_checkpoints(self, *, on: bool) -> Self:
        """The same settings with checkpoints on or off everywhere."""
        switched = {
            name: workspace.model_copy(
                update={
                    "checkpoints": Checkpoints(
                        **{**workspace.checkpoints.model_dump(exclude_unset=True), "enabled": on}
                    )
                }
            )
            for name, workspace in self.workspaces.items()
        }
        common = self.checkpoints.model_copy(update={"enabled": on})
        return self.model_copy(update={"checkpoints": common, "workspaces": switched})

    def secrets(self) -> list[str]:
        """Every secret value, for whoever has to keep them out of what is written."""
        values = [
            getattr(section, field)
            for section in (self.telegram, self.slack, *(workspace.backend for workspace in self.workspaces.values()))
            if section is not None
            for field in type(section).model_fields
        ]
        agents = [self.agent, *(workspace.agent for workspace in self.workspaces.values() if workspace.agent)]
        keys = [key for agent in agents for key in agent.secrets()]
        return [*(value.get_secret_value() for value in values if isinstance(value, SecretStr)), *keys]

    def checkpoints_of(self, workspace: str) -> Checkpoints:
        """The checkpoint settings that hold in a workspace: its own keys over the common ones."""
        own = self.workspaces[workspace].checkpoints if workspace in self.workspaces else Checkpoints()
        return self.checkpoints.model_copy(update={key: getattr(own, key) for key in own.model_fields_set})

    def agent_of(self, workspace: str) -> Agent:
        """The agent that answers in a workspace: its own keys over the common ones."""
        own = self.workspaces[workspace].agent if workspace in self.workspaces else None
        return self.agent if own is None else own.over(self.agent)

    def approvals_of(self, workspace: str) -> Approvals:
        """Which commands of an agent wait for a person in a workspace."""
        own = self.workspaces[workspace].approvals if workspace in self.workspaces else None
        return own or self.approvals

    def backend_of(self, workspace: str) -> Backend:
        """Where a workspace's commands run."""
        return self.workspaces[workspace].backend if workspace in self.workspaces else Backend()
