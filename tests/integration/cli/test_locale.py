"""Commands in a locale that can't write all letters, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.unit.cli.command import Host

# Python takes the locale C for UTF-8 without these two variables; with them it has ASCII alone.
ASCII_ALONE = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def finished(host: Host, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kquota", *arguments, "--config", str(host.config)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **ASCII_ALONE}
    )


@pytest.mark.parametrize("arguments", [("run",), ("volumes",), ("config", "check")])
def test_a_path_that_the_locale_can_not_write_is_refused_with_what_to_do(
    host: Host, arguments: tuple[str, ...]
) -> None:
    said = "holds a letter that the locale's encoding (ascii) can't write; allowed"
    host.server_properties.write_text(f"node.id=1\nlog.dirs={host.log_dir}-\\u20ac\n", "ascii")
    ended = finished(host, *arguments)
    assert (ended.returncode, ended.stdout) == (78, "")
    assert f"server.properties: log.dirs = '{host.log_dir}-\\u20ac': {said} is any path in a" in ended.stderr
    assert "Traceback" not in ended.stderr

    host.configure(state_dir="/var/lib/kquota-\u20ac")
    ended = finished(host, *arguments)
    assert (ended.returncode, ended.stdout) == (78, "")
    assert f"state_dir {said}: any path in a locale with UTF-8, such as LC_ALL=C.UTF-8" in ended.stderr


def test_json_is_json_in_any_locale(host: Host) -> None:
    host.configure(kafka={"bootstrap.servers": "x:1", "client.rack": "r\u00e4ck \U0001f600 \x9b"})
    ended = finished(host, "config", "show", "--json")
    assert ended.returncode == 0
    assert json.loads(ended.stdout)["kafka"]["client.rack"] == "r\u00e4ck \U0001f600 \x9b"
    assert ended.stdout.isascii()
