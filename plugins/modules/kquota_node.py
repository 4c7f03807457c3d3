#!/usr/bin/python
"""Look at a node of Kafka once: its configuration, the unit and process that run with it, and its problems.

In one file, because an import of module_utils that works in a clone of the repository does not work in an
installed collection, or not with every strategy. The hosts need nothing but Python 3.7 or later.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import stat
import time
from typing import Any

DOCUMENTATION = r"""
---
module: kquota_node
short_description: Look at a node of Kafka once
version_added: "0.1.0"
description:
  - Reads the configuration of a node as Java does, and what kquota has to know of its unit and process.
  - Names all problems for which the agent or the plug-in cannot be installed on the node.
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
  agent:
    description: What the agent needs of the node. Without it, the module does not look for it.
    type: dict
    suboptions:
      python:
        description: The Python of the agent.
        type: path
        required: true
      from_wheels:
        description: Whether the agent is installed from wheels, into a virtual environment of that Python.
        type: bool
        default: false
      secret_files:
        description: The files with secrets.
        type: list
        elements: path
        default: []
      listener:
        description: The listener through which agents connect; empty for any.
        type: str
        default: ""
      clock_synchronized:
        description: Whether the clock must be synchronized.
        type: bool
        default: false
      control_clock:
        description: The control host's time, in seconds since 1970.
        type: float
        required: true
      log_dirs_on_root:
        description: Whether log dirs may be on the root file system.
        type: bool
        default: false
  plug_in:
    description: What the plug-in needs of the node. Without it, the module does not look for it.
    type: dict
    suboptions:
      kafka_home:
        description: Kafka's directory.
        type: path
        required: true
      kafka_libs:
        description: The directories that may have Kafka's jars.
        type: list
        elements: path
        required: true
      java:
        description: The broker's Java.
        type: path
        required: true
      as_broker:
        description: The words before a command that run it as the broker's user.
        type: list
        elements: str
        default: []
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
node_id:
  description: The node's id; empty without one.
  type: str
  returned: always
rack:
  description: The broker's rack; empty without one.
  type: str
  returned: always
votes:
  description: Whether the node is a controller.
  type: bool
  returned: always
allows_everyone:
  description: Whether clients may use what no ACL names.
  type: bool
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
problems:
  description: Sentences that each name what the agent or the plug-in cannot run with, and what is allowed.
  type: list
  elements: str
  returned: always
python:
  description: The agent's Python.
  type: dict
  returned: if the agent's needs are given
  contains:
    version:
      description: The first two numbers of its version; empty if it cannot be run.
      type: str
    has_venv:
      description: Whether it has the modules for virtual environments.
      type: bool
clock:
  description: The node's time and the control host's time of the arguments, in seconds since 1970.
  type: dict
  returned: if the agent's needs are given
  contains:
    control:
      description: The control host's time, which is the earlier one.
      type: float
    node:
      description: The node's time.
      type: float
kafka_version:
  description: The version of Kafka, as a vendor's jars say; 0 if there are no jars.
  type: str
  returned: if the plug-in's needs are given
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

AGENT = {
    "python": {"type": "path", "required": True},
    "from_wheels": {"type": "bool", "default": False},
    "secret_files": {"type": "list", "elements": "path", "default": []},
    "listener": {"type": "str", "default": ""},
    "clock_synchronized": {"type": "bool", "default": False},
    "control_clock": {"type": "float", "required": True},
    "log_dirs_on_root": {"type": "bool", "default": False},
}
PLUG_IN = {
    "kafka_home": {"type": "path", "required": True},
    "kafka_libs": {"type": "list", "elements": "path", "required": True},
    "java": {"type": "path", "required": True},
    "as_broker": {"type": "list", "elements": "str", "default": []},
}
NAMED = (
    "authorizer.class.name",
    "client.quota.callback.class",
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
KAFKA_LINES = ((4, 0), (4, 4))
LEAST_PYTHON, LEAST_JAVA = (3, 11), 17
# A Python of any version can run it.
ASK_PYTHON = """\
import sys
print('%d.%d' % sys.version_info[:2])
try:
    import ensurepip, venv
    print('venv')
except ImportError:
    pass
"""
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
        "node_id": found.get("node.id", found.get("broker.id", "")),
        "rack": found.get("broker.rack", ""),
        "votes": "controller" in map(str.strip, found.get("process.roles", "broker").split(",")),
        "allows_everyone": found.get("allow.everyone.if.no.acl.found", "").lower() == "true",
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


def node_problems(found: dict[str, Any], file: str, host: str, listener: str) -> list[str]:
    """Return what is wrong with the node id and the listeners of a configuration."""
    node_id, listeners = found["node_id"], found["listeners"]
    if re.fullmatch("[0-9]+", node_id) and (not listener or listener.upper() in listeners):
        return []
    return [
        f"{file} on {host} has node.id '{node_id}' and the listeners {', '.join(listeners)}: node.id must "
        f"be a number, and the listeners must include {listener or 'any'} (kquota_agent_preflight_listener), "
        "through which the agents connect."
    ]


def secret_file_problems(paths: list[str], host: str) -> list[str]:
    """Return which files with secrets are none, or can be read by every user."""

    def is_kept(path: str) -> bool:
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            return False
        return stat.S_ISREG(mode) and not mode & stat.S_IROTH

    return [
        f"{path} on {host} must be a file that is not world-readable: create it, or run chmod o-r on it."
        for path in paths
        if not is_kept(path)
    ]


def mount_points(mountinfo: str) -> list[str]:
    """Return the mount points of /proc/self/mountinfo, which writes blanks as octal numbers."""
    return [
        re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), line.split(" ")[4])
        for line in mountinfo.splitlines()
    ]


def log_dir_problems(dirs: list[str], points: list[str], file: str, host: str, on_root: bool) -> list[str]:
    """Return which log dirs are not there, or are on the root file system where they must not be."""
    problems, of_root = [], []
    for path in dirs:
        real = os.path.realpath(path)
        try:
            os.stat(real)  # noqa: PTH116
        except OSError as error:
            problems.append(
                f"log.dirs in {file} on {host} names {path}, which cannot be found ({error.strerror}): "
                "create it, or mount its volume."
            )
            continue
        around = [point for point in points if f"{real}/".startswith(f"{point.rstrip('/')}/")]
        if max(around, key=len, default="/") == "/":
            of_root.append(path)
    if of_root and not on_root:
        problems.append(
            f"The log dir {', '.join(of_root)} on {host} is on the root file system: mount its volume, or "
            "set kquota_agent_preflight_log_dirs_on_root to true to apply the limits to the root file system."
        )
    return problems


def kafka_version(jars: list[str], mapping: str) -> str:
    """Return the version of Kafka, by the names of its jars, or by what a vendor's jars say of themselves."""
    # The jars know which metadata they write.
    said = re.search(r"metadata[.]version=[0-9]+ [(]([0-9]+[.][0-9]+)", mapping)
    named = [re.search(r"([0-9]+\.[0-9]+\.[0-9]+)[^/]*\.jar$", jar) for jar in jars]
    return said[1] if said else next((each[1] for each in named if each), "0")


def kafka_problems(version: str, jars: list[str], home: str, libs: list[str], host: str) -> list[str]:
    """Return whether the plug-in does not support a version of Kafka."""
    oldest, newest = KAFKA_LINES
    if oldest <= tuple(map(int, (*version.split("."), "0")[:2])) <= newest:
        return []
    names = ", ".join(map(os.path.basename, jars)) or f"no kafka-clients-*.jar in {' or '.join(libs)}"
    return [
        f"Kafka in {home} on {host} ({names}) is {version}, but the plug-in supports "
        f"{oldest[0]}.{oldest[1]} to {newest[0]}.{newest[1]}: set kquota_kafka_home to the directory with "
        "its bin and libs, or upgrade Kafka."
    ]


def java_problems(java: str, status: int, said: str, host: str) -> list[str]:
    """Return whether `java -version`, with this status and text, is of no Java that the plug-in can use."""
    version = re.search(r'"([0-9]+)', said)
    if status == 0 and version and int(version[1]) >= LEAST_JAVA:
        return []
    is_what = (said.strip().splitlines() or ["a program that says no version"])[0]
    is_wrong = f"is {is_what}" if status == 0 else f"cannot be run ({is_what})"
    return [
        f"{java} on {host} {is_wrong}, but the plug-in needs Java {LEAST_JAVA} or later: set "
        "kquota_callback_java to a newer one."
    ]


def python_problems(
    python: str, status: int, version: str, said: str, from_wheels: bool, host: str
) -> list[str]:
    """Return whether the agent cannot run with a Python."""
    is_known = status == 0 and re.fullmatch(r"[0-9]+\.[0-9]+", version)
    # The package requires the Python that it was made for.
    if is_known and (not from_wheels or tuple(map(int, version.split("."))) >= LEAST_PYTHON):
        return []
    is_wrong = f"is Python {version}" if is_known else f"cannot be run ({said or version})"
    return [
        f"{python} on {host} {is_wrong}, but the agent needs {LEAST_PYTHON[0]}.{LEAST_PYTHON[1]} or later: "
        "set kquota_agent_python to a newer one."
    ]


def _read(path: str, limit: int = 1 << 20) -> bytes | None:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as the module's argument has it
            return file.read(limit)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None


def _age_of(pid: str) -> int | None:
    """Return for how many seconds a process has run; None without a process."""
    try:
        status = _read(f"/proc/{pid}/stat")
        uptime = _read("/proc/uptime")
    except OSError:
        return None
    if not status or not uptime:
        return None
    # The name of a program may have blanks and parentheses.
    ticks = int(status.rpartition(b")")[2].split()[19])
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
    found["problems"] = []
    if given["agent"]:
        results, problems = look_for_agent(module, given["agent"], found)
        found.update(results, problems=problems)
    if given["plug_in"]:
        results, problems = look_for_plug_in(module, given["plug_in"])
        found.update(results, problems=found["problems"] + problems)
    return found


def _run(module: Any, command: list[str]) -> tuple[int, str, str]:
    """Run a program; one that is not there fails as in a shell. Arguments stay as given: one is a script."""
    try:
        status, out, said = module.run_command(command, handle_exceptions=False, expand_user_and_vars=False)
    except OSError as error:
        return 127, "", error.strerror or ""
    return status, out, said.strip()


def look_for_agent(
    module: Any, needs: dict[str, Any], found: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return the results that need the agent's arguments, and what the agent cannot run with."""
    node = time.time()
    file, host = module.params["server_properties"], module.params["host"]
    status, answer, said = _run(module, [needs["python"], "-c", ASK_PYTHON])
    version, *modules = answer.split() or [""]
    problems = [
        *secret_file_problems(needs["secret_files"], host),
        *python_problems(needs["python"], status, version, said, needs["from_wheels"], host),
        *node_problems(found, file, host, needs["listener"]),
    ]
    if needs["clock_synchronized"]:
        command = ["timedatectl", "show", "--property=NTPSynchronized", "--value"]
        _, synchronized, said = _run(module, command)
        if synchronized.strip() != "yes":
            why = ": ".join(filter(None, ["timedatectl show", " ".join(said.split())]))
            problems.append(
                f"The clock of {host} is not synchronized ({why}): run chrony or systemd-timesyncd, or set "
                "kquota_agent_preflight_clock_synchronized to false if another service sets the clock."
            )
    points = mount_points((_read("/proc/self/mountinfo", 1 << 24) or b"").decode("utf-8", "surrogateescape"))
    problems += log_dir_problems(found["log_dirs"], points, file, host, needs["log_dirs_on_root"])
    results = {
        "python": {"version": "" if status else version, "has_venv": "venv" in modules},
        "clock": {"control": needs["control_clock"], "node": node},
    }
    return results, problems


def look_for_plug_in(module: Any, needs: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the results that need the plug-in's arguments, and what the plug-in cannot run with."""
    host, libs = module.params["host"], needs["kafka_libs"]
    as_broker = [*needs["as_broker"], needs["java"]]
    jars = [path for folder in libs for path in _jars(folder)]
    mapping = ""
    # Vendors number their versions in other ways: 8.1.0-ccs is Kafka 4.1.
    if jars and not re.search(r"/kafka-clients-[34][.][0-9]+[.][0-9]+[.]jar$", jars[0]):
        class_path = ":".join(f"{folder}/*" for folder in libs)
        tool = ["-Xmx64m", "-cp", class_path, "kafka.tools.StorageTool", "version-mapping"]
        mapping = _run(module, [*as_broker, *tool])[1]
    version = kafka_version(jars, mapping)
    status, out, said = _run(module, [*as_broker, "-version"])
    problems = [
        *kafka_problems(version, jars, needs["kafka_home"], libs, host),
        *java_problems(needs["java"], status, said or out, host),
    ]
    return {"kafka_version": version}, problems


def _jars(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return []
    return [f"{folder}/{name}" for name in fnmatch.filter(names, "kafka-clients-*.jar")]


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
            "agent": {"type": "dict", "options": AGENT},
            "plug_in": {"type": "dict", "options": PLUG_IN},
        },
        supports_check_mode=True,
    )
    module.exit_json(changed=False, **look(module))


if __name__ == "__main__":
    main()
