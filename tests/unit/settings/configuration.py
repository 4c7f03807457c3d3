"""A minimal configuration that tests extend."""

from collections.abc import Mapping
from pathlib import Path

from kquota.settings import Problem, Settings, SettingsError, load_text

PATH = Path("/etc/kquota/agent.yml")
MINIMAL = """\
broker:
  server_properties: /etc/kafka/server.properties
kafka:
  bootstrap.servers: localhost:9093
"""


def loaded(more: str = "", environ: Mapping[str, str] | None = None) -> Settings:
    return load_text(MINIMAL + more, PATH, environ or {})


def problems(text: str, environ: Mapping[str, str] | None = None) -> tuple[Problem, ...]:
    try:
        settings = load_text(text, PATH, environ or {})
    except SettingsError as error:
        return error.problems
    raise AssertionError(f"accepted: {settings}")


def problems_of(more: str, environ: Mapping[str, str] | None = None) -> dict[str, Problem]:
    """Return the problems of the minimal configuration and ``more``, by key."""
    return {problem.key: problem for problem in problems(MINIMAL + more, environ)}
