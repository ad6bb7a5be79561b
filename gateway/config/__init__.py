"""The configuration: what can be set, where it comes from, and what is wrong with it."""

from gateway.config.agent import Agent
from gateway.config.backend import Backend
from gateway.config.load import Configuration, load_configuration
from gateway.config.problems import ConfigInvalid, Problem
from gateway.config.settings import Checkpoints, Settings, Workspace

__all__ = [
    "Agent",
    "Backend",
    "Checkpoints",
    "ConfigInvalid",
    "Configuration",
    "Problem",
    "Settings",
    "Workspace",
    "load_configuration",
]
