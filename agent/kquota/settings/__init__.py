"""Settings: the operator's configuration, from ``agent.yml``, the environment and credentials."""

from kquota.settings.layers import RESERVED_VARIABLES
from kquota.settings.load import load, load_document, load_text
from kquota.settings.model import Settings
from kquota.settings.problems import Problem, SettingsError

__all__ = ["RESERVED_VARIABLES", "Problem", "Settings", "SettingsError", "load", "load_document", "load_text"]
