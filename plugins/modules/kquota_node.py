#!/usr/bin/python
"""Look at a node of Kafka once: its configuration, and the unit and the process that run with it.

In one file, because an import of module_utils that works in a clone of the repository does not work in an
installed collection, or not with every strategy. The hosts need nothing but Python.
"""

from __future__ import annotations

import json
import os
import re
import time
from typing import Any

DOCUMENTATION = r"""
---
module: kquota_node
short_description: Look at a node of Kafka once
version_added: "0.1.0"
description:
  - Reads the configuration of a node as Java does, and what kquota has to know of its unit and process.
  - Changes nothing. It returns the properties of kquota and those that kquota has to know, and no others,
    because these may be passwords.
author:
  - The kquota authors (@kquota)
options:
  server_properties:
    description: The node's configuration.
    type: path
    required: true
  host:
    description: The name of the host in messages.
    type: str
    required: true
  optional:
    description:
      - Whether a configuration that does not exist is one without properties. Otherwise, the module fails.
    type: bool
    default: false
  leaves_out_block:
    description: Whether the properties are those without the block of the role kquota_callback.
    type: bool
    default: false
  offered_properties:
    description: A file with the properties that the role offers to the owner of the configuration.
    type: path
  arrival_file:
    description: The file in which the role wrote when these properties arrived.
    type: path
  unit:
    description: The node's unit. Without it, the module looks at no unit.
    type: str
  own_environment_file:
    description: The environment file of the role, whose variables are not those of the unit.
    type: path
attributes:
  check_mode:
    description: The module changes nothing.
    support: full
  diff_mode:
    description: The module changes nothing.
    support: none
"""

EXAMPLES = r"""
- name: Look at the node
  kquota.kquota.kquota_node:
    server_properties: /etc/kafka/server.properties
    host: "{{ inventory_hostname }}"
    unit: kafka.service
  register: node
"""

RETURN = r"""
exists:
  description: Whether the configuration exists.
  type: bool
  returned: always
properties:
  description: The properties of kquota, and those that kquota has to know.
  type: dict
  returned: always
log_dirs:
  description: The log dirs in their order.
  type: list
  elements: str
  returned: always
listeners:
  description: The names of the listeners in capital letters.
  type: list
  elements: str
  returned: always
ends_in_continuation:
  description: Whether a line that follows the last one would be part of it.
  type: bool
  returned: always
modified:
  description: When the configuration was changed, in seconds since 1970.
  type: int
  returned: always
callback_class:
  description: The quota callback that the whole file names, with the block.
  type: str
  returned: always
offered_callback_class:
  description: The quota callback of the offered properties; empty if there are none.
  type: str
  returned: always
offers:
  description: Whether there are offered properties.
  type: bool
  returned: always
arrival:
  description: What the arrival file has; empty if there is none.
  type: dict
  returned: always
unit:
  description: The node's unit and process.
  type: dict
  returned: if a unit is given
  contains:
    load_state:
      description: The state of the unit's file, as systemd names it.
      type: str
    kafka_units:
      description: If that is not loaded, the other units of the host that may be Kafka's.
      type: list
      elements: str
    fails_to_start:
      description: Whether the unit has failed, or systemd starts it again and again.
      type: bool
    is_strict:
      description: Whether the unit has ProtectSystem=strict.
      type: bool
    class_path:
      description: CLASSPATH of the unit and of its environment files.
      type: str
    log4j_options:
      description: KAFKA_LOG4J_OPTS of the same.
      type: str
    started:
      description: When the process was started, in seconds since 1970; 0 if there is none.
      type: int
    started_with:
      description: The fingerprint of the configuration that the process was started with; empty without one.
      type: str
"""

NAMED = (
    "allow.everyone.if.no.acl.found",
    "authorizer.class.name",
    "broker.id",
    "broker.rack",
    "client.quota.callback.class",
    "node.id",
    "process.roles",
    "remote.log.storage.system.enable",
)
CALLBACK = "client.quota.callback.class"
SHOWN = (
    "LoadState",
    "ActiveState",
    "NRestarts",
    "MainPID",
    "Environment",
    "EnvironmentFiles",
    "ProtectSystem",
)
KAFKAS = ("kafka*.service", "confluent-server.service", "confluent-kafka.service", "amq_streams*.service")
FINGERPRINT = re.compile(rb"KQUOTA_BROKER_CONFIGURATION=([0-9a-f]+)")

_BLOCK = re.compile(r"^# BEGIN kquota .*?^# END kquota [^\n]*\n?", re.MULTILINE | re.DOTALL)
_AFTER_THE_END = "kquota.after.the.end"
# Java's String.trim() takes these away, and Python's strip() more.
_BLANKS = "".join(map(chr, range(33)))
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class InvalidProperties(ValueError):
    """A file that Java cannot load; the text has the invalid escape, and nothing else of the file."""


def parse_properties(text: str) -> dict[str, str]:
    """Return keys and values of a text as java.util.Properties loads it.

    Raises InvalidProperties for an escape that Java refuses.
    """
    found = {}
    for line in _logical_lines(text):
        # The key ends at the first separator that has no backslash before it.
        key = re.match(r"(?:\\.|[^\\=: \t\f])*", line, re.DOTALL)
        end = key.end() if key else 0
        separator = re.compile(r"[ \t\f]*[=:]?[ \t\f]*").match(line, end)
        found[_unescaped(line[:end])] = _unescaped(line[separator.end() if separator else end :])
    return found


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    begun: str | None = None
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(" \t\f")
        if begun is None and (not line or line[0] in "#!"):
            continue
        continues = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        begun = (begun or "") + (line[:-1] if continues else line)
        if not continues:
            lines.append(begun)
            begun = None
    # A backslash with nothing behind it is no line.
    return list(filter(None, [*lines, begun]))


def _unescaped(text: str) -> str:
    def character(escape: re.Match[str]) -> str:
        said = escape.group()
        if said[1] != "u":
            return _ESCAPES.get(said[1], said[1])
        if not re.fullmatch(r"\\u[0-9A-Fa-f]{4}", said):
            raise InvalidProperties(f"invalid escape {said!r}, allowed is \\u and four hexadecimal digits")
        return chr(int(said[2:], 16))

    plain = re.sub(r"\\(?:u.{0,4}|[^u])", character, text, flags=re.DOTALL)
    # Java's strings are UTF-16: two escapes may be one character.
    return _PAIR.sub(lambda pair: pair.group().encode("utf-16", "surrogatepass").decode("utf-16"), plain)


def look_at_properties(text: str, leaves_out_block: bool) -> dict[str, Any]:
    """Return what kquota has to know of a configuration; raises InvalidProperties."""
    original = _BLOCK.sub("", text) if leaves_out_block else text
    found = {
        # Half a character has no place in JSON.
        key: value.strip(_BLANKS).encode("utf-8", "replace").decode()
        for key, value in parse_properties(
            f"{original}{'' if original.endswith(chr(10)) else chr(10)}{_AFTER_THE_END}"
        ).items()
    }
    continued = _AFTER_THE_END not in found
    found.pop(_AFTER_THE_END, None)
    dirs = found.get("log.dirs", found.get("log.dir", "/tmp/kafka-logs"))
    return {
        "properties": {key: found[key] for key in found if key in NAMED or key.startswith("kquota.")},
        # As Kafka splits a list, whose pattern takes only the blanks of ASCII away.
        "log_dirs": list(dict.fromkeys(filter(None, re.split(r"\s*,\s*", dirs, flags=re.ASCII)))),
        "listeners": [
            name.upper()
            for name in re.findall(r"([A-Za-z0-9_.-]+)://", found.get("listeners", "PLAINTEXT://:9092"))
        ],
        "ends_in_continuation": continued,
        "callback_class": callback_class(text),
    }


def callback_class(text: str) -> str:
    """Return the quota callback that a configuration names; empty without one."""
    return parse_properties(text).get(CALLBACK, "").strip(_BLANKS)


def environment_files(shown: str) -> list[str]:
    """Return the environment files of a unit in the order in which systemd reads them."""
    return re.findall(r"(?m)^EnvironmentFiles=(\S+)", shown)


def look_at_unit(
    shown: str, files: list[str], seconds: int | None, now: int, running: bytes
) -> dict[str, Any]:
    """Return what kquota has to know of a unit.

    `shown` is what `systemctl show` prints, `files` are the texts of its environment files, `seconds` is the
    age of its process, and `running` the environment of that process.
    """
    of_unit = dict(line.partition("=")[::2] for line in reversed(shown.splitlines()))
    variables = _variables(of_unit.get("Environment", ""), files)
    state, restarts = of_unit.get("ActiveState", ""), int(of_unit.get("NRestarts") or 0)
    fingerprint = next(filter(None, map(FINGERPRINT.match, running.split(b"\0"))), None)
    return {
        "load_state": of_unit.get("LoadState", ""),
        "kafka_units": [],
        # A unit that systemd restarts again and again is active while each of its processes lives.
        "fails_to_start": state in ("failed", "activating")
        or (restarts > 1 and (3600 if seconds is None else seconds) < 60),
        "is_strict": of_unit.get("ProtectSystem") == "strict",
        "class_path": variables["CLASSPATH"],
        "log4j_options": variables["KAFKA_LOG4J_OPTS"],
        "started": 0 if seconds is None else now - seconds,
        "started_with": fingerprint.group(1).decode() if fingerprint else "",
    }


def kafka_units(listed: str, unit: str) -> list[str]:
    """Return the units that systemctl has listed, without a unit and without templates."""
    there = [line.split()[0] for line in listed.splitlines() if line.split() and " not-found " not in line]
    return [name for name in dict.fromkeys(there) if name != unit and not name.endswith("@.service")]


def _variables(of_unit: str, files: list[str]) -> dict[str, str]:
    """Of more than one assignment the last one wins: first those of the unit, then those of its files."""
    # systemctl quotes those of the unit as a whole.
    lines = [
        re.sub(r'^"(.*)"$', r"\1", word) for word in re.findall(r'"[^"]*"|[^\s"=]+="[^"]*"|\S+', of_unit)
    ]
    for text in files:
        without_comments = re.sub(r"(?m)(?<!\\\n)^[ \t]*[#;].*$", "", text)
        lines += without_comments.replace("\\\n", "").split("\n")
    found = {}
    for name in ("CLASSPATH", "KAFKA_LOG4J_OPTS"):
        values = [re.match(rf"[ \t]*{name}=[ \t]*(.*?)[ \t\r]*$", line, re.DOTALL) for line in lines]
        found[name] = _unquoted(([""] + [each.group(1) for each in values if each])[-1])
    return found


def _unquoted(value: str) -> str:
    """Return a value without its quotes and escapes, as systemd reads it."""
    quote = value[0] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else ""
    inner = value[1:-1] if quote else value
    if quote == "'":
        return inner
    return re.sub(r'\\(["\\`$])' if quote else r"\\(.)", r"\1", inner)


def _read(path: str, limit: int = 1 << 20) -> bytes | None:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as the module's argument has it
            return file.read(limit)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None


def _age_of(pid: str) -> int | None:
    """Return for how many seconds a process has run; None without a process."""
    try:
        stat = _read(f"/proc/{pid}/stat")
        uptime = _read("/proc/uptime")
    except OSError:
        return None
    if not stat or not uptime:
        return None
    # The name of a program may have blanks and parentheses.
    ticks = int(stat.rpartition(b")")[2].split()[19])
    return int(float(uptime.split()[0]) - ticks / os.sysconf("SC_CLK_TCK"))


def _environment_of(pid: str) -> bytes:
    try:
        return _read(f"/proc/{pid}/environ") or b""
    except OSError:
        return b""


def _text(content: bytes | None) -> str:
    # The character set of Java's properties.
    return (content or b"").decode("latin-1")


def _arrival(content: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(content or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def look(module: Any) -> dict[str, Any]:
    """Return the results of the module; `module` is Ansible's."""
    given, host = module.params, module.params["host"]
    path = given["server_properties"]
    try:
        content = _read(path)
        modified = 0 if content is None else int(os.stat(path).st_mtime)  # noqa: PTH116
    except OSError as error:
        module.fail_json(msg=f"Reading {path} on {host} failed: {error.strerror}.")
    if content is None and not given["optional"]:
        module.fail_json(
            msg=f"There is no file {path} on {host}: set kquota_server_properties to the broker's "
            "configuration file."
        )
    try:
        found = look_at_properties(_text(content), given["leaves_out_block"])
    except InvalidProperties as error:
        module.fail_json(msg=f"Parsing {path} of {host} failed ({error}): correct the file.")
    offered = _read(given["offered_properties"]) if given["offered_properties"] else None
    found.update(
        exists=content is not None,
        modified=modified,
        offers=offered is not None,
        offered_callback_class=callback_class(_text(offered)),
        arrival=_arrival(_read(given["arrival_file"]) if given["arrival_file"] else None),
    )
    if given["unit"]:
        found["unit"] = _unit(module)
    return found


def _unit(module: Any) -> dict[str, Any]:
    name = module.params["unit"]
    command = ["systemctl", "show", f"--property={','.join(SHOWN)}", name]
    status, shown, said = module.run_command(command)
    if status != 0:
        module.fail_json(
            msg=f"systemctl show {name} on {module.params['host']} failed with {status}: {said.strip()}"
        )
    pid = (re.findall(r"(?m)^MainPID=([0-9]+)$", shown) or ["0"])[0]
    files = []
    for path in environment_files(shown):
        if path != module.params["own_environment_file"]:
            try:
                files.append((_read(path) or b"").decode("utf-8", "replace"))
            except OSError:  # systemd does not read it either
                continue
    found = look_at_unit(shown, files, _age_of(pid), int(time.time()), _environment_of(pid))
    if found["load_state"] != "loaded":
        # Units of a template are not among the files.
        lists = (["list-unit-files"], ["list-units", "--all"])
        listed = [
            module.run_command(["systemctl", *each, "--plain", "--no-legend", *KAFKAS]) for each in lists
        ]
        found["kafka_units"] = kafka_units("".join(out for _, out, _ in listed), name)
    return found


def main() -> None:
    """Look, and return what was found."""
    # Not above: the tests of what this file decides run without Ansible.
    from ansible.module_utils.basic import AnsibleModule  # noqa: PLC0415

    module = AnsibleModule(
        argument_spec={
            "server_properties": {"type": "path", "required": True},
            "host": {"type": "str", "required": True},
            "optional": {"type": "bool", "default": False},
            "leaves_out_block": {"type": "bool", "default": False},
            "offered_properties": {"type": "path"},
            "arrival_file": {"type": "path"},
            "unit": {"type": "str"},
            "own_environment_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    module.exit_json(changed=False, **look(module))


if __name__ == "__main__":
    main()
