"""``kquota access``: the agent's user may read what it needs of a broker, by ACLs."""

from __future__ import annotations

import errno
import os
import pwd
import signal
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from kquota.cli import exit_codes
from kquota.cli.output import fail
from kquota.disks.server_properties import BrokerPropertiesError, read_broker_properties
from kquota.host.acl import READ, SEARCH, allow

_HANG_SECONDS = 10.0
_CONFIGURATION_SECONDS = 60.0
"""Without its ACL, the agent would not start."""
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class NotGranted(Exception):
    """An access that the user lacks and is not given; the text names the path and the remedy."""


def access(
    server_properties: Annotated[Path, typer.Argument(help="The broker's server.properties.")],
    user: Annotated[str, typer.Option("--user", help="The agent's user.")] = "kquota",
) -> None:
    """Allow the agent's user to read server.properties and to list the log dirs in it, by ACLs.

    The agent then needs not be in the broker's group, and can read no data. Changes only what the user lacks,
    and prints it. Run it as root, before each start and reload of the agent: a file that was replaced has
    lost its ACL.
    """
    if os.geteuid() != 0:
        fail("only root can give access: run kquota access again as root", exit_codes.USAGE)
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        fail(
            f"--user {user!r}: there is no such user: install the package, which makes kquota, or name one",
            exit_codes.USAGE,
        )
    path = server_properties.absolute()
    if not path.is_file():
        fail(f"{path} is no file")
    problems = _in_time({path: Grants(account).give(path, READ)}, _CONFIGURATION_SECONDS)
    try:
        broker = read_broker_properties(path, node_id=0)  # the directories alone are needed
        owners = distrusted_owners(path)
    except (BrokerPropertiesError, OSError) as error:
        fail("; ".join(problems or [str(error)]))
    grants = Grants(account, owners)
    works = {each: grants.give(each, READ) for each in broker.directories}
    if problems := [*problems, *_in_time(works, _HANG_SECONDS)]:
        fail("; ".join(problems))


class Grants:
    """Gives an account access to paths.

    A path comes from root, or from a file that ``distrusted_owners`` may write. These, and the owner of a
    directory on the way, must not make root open what is not theirs: in one path only root and one other user
    may own anything, and of root's files only those are opened that no other user can replace.
    """

    def __init__(self, account: pwd.struct_passwd, distrusted_owners: frozenset[int] = frozenset()) -> None:
        self._account = account
        self._distrusted_owners = distrusted_owners

    def give(self, path: Path, permissions: int) -> Iterator[str]:
        """Give the permissions for the path, and search permission for what is above; yield each given.

        Raises:
            NotGranted, OSError: it can't or must not be given.
        """
        target = path.resolve(strict=True)
        above = {*path.parents, *(each.resolve() for each in path.parents), *target.parents}
        owners = set(self._distrusted_owners)
        for component in sorted((each.resolve() for each in above), key=lambda each: len(each.parts)):
            yield from self._open(component, SEARCH, owners)
        yield from self._open(target, permissions, owners)

    def _open(self, path: Path, permissions: int, owners: set[int]) -> Iterator[str]:
        """Give the permissions for one path; ``owners`` are those who may have written it so far."""
        # Not a device, which an open may start.
        file = os.open(path, _FLAGS | (0 if stat.S_ISREG(path.stat().st_mode) else os.O_DIRECTORY))
        status = os.fstat(file)
        try:
            if not self._lacks(path, permissions):
                return
            theirs = {*owners, status.st_uid} - {0}
            if len(theirs) > 1 or (status.st_uid == 0 and theirs):
                entry = f"u:{self._account.pw_name}:{_letters(permissions)}"
                raise NotGranted(
                    f"{path} is owned by {_name(status.st_uid)}, and its path comes from"
                    f" {_names(owners - {0})}: if this is right, run setfacl -m {entry} {path}"
                )
            # With the rights of the owner, which the kernel compares with the file that is open.
            with acting_as(status.st_uid, status.st_gid):
                allow(file, self._account.pw_uid, permissions)
            yield f"{self._account.pw_name} has {_letters(permissions)} on {path}"
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            raise NotGranted(
                f"the file system of {path} has no ACLs: give the agent's unit the broker's group"
                " (SupplementaryGroups=)"
            ) from error
        finally:
            os.close(file)
            owners |= writers(status)

    def _lacks(self, path: Path, permissions: int) -> bool:
        with acting_as(self._account.pw_uid, self._account.pw_gid):
            return not os.access(path, permissions)


def writers(status: os.stat_result) -> set[int]:
    """Return who may replace what lies in a directory: its owner, and -1 for others."""
    others = stat.S_IMODE(status.st_mode) & _WRITABLE_BY_OTHERS and not status.st_mode & stat.S_ISVTX
    return {status.st_uid, *([-1] if others else [])}


def distrusted_owners(path: Path) -> frozenset[int]:
    """Return who else than root may write a file, or replace it: users' ids, and -1 for unknown ones."""
    target = path.resolve(strict=True)
    found: set[int] = set()
    for each in (target, *target.parents, *path.parents):
        found |= writers(each.stat())
    return frozenset(found - {0})


@contextmanager
def acting_as(user_id: int, group_id: int) -> Iterator[None]:
    """Have the rights of this user and group alone, as the kernel judges them."""
    groups = os.getgroups()
    os.setgroups([])
    os.setresgid(group_id, group_id, 0)
    os.setresuid(user_id, user_id, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(groups)


def _in_time(works: Mapping[Path, Iterator[str]], seconds: float) -> list[str]:
    """Do each work in a process of its own, which a dead disk may hold for ever; return the problems.

    The sentences of a work are printed.
    """
    begun = {path: _begun(path, work) for path, work in works.items()}
    deadline = time.monotonic() + seconds
    problems = []
    for path, (process, answer) in begun.items():
        while os.waitpid(process, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                os.kill(process, signal.SIGKILL)
                problems.append(f"{path} does not answer")
                break
            time.sleep(0.01)
        else:
            with os.fdopen(answer, "rb") as pipe:
                *given, problem = pipe.read().decode(errors="replace").split("\0")
            for sentence in given:
                typer.echo(sentence)
            problems += filter(None, [problem])
    return problems


def _begun(path: Path, work: Iterator[str]) -> tuple[int, int]:
    """Begin the work; return its process, and a pipe with its sentences and its problem when it has ended."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        # A reader of this command's output must not wait for a process that is held.
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        given: list[str] = []
        problem = f"{path}: failed"
        try:
            given += work
            problem = ""
        except NotGranted as error:
            problem = str(error)
        except OSError as error:
            problem = f"{error.filename or path}: {error.strerror}"
        finally:
            os.write(writing, "\0".join([*given, problem]).encode(errors="surrogateescape"))
            os._exit(0)
    os.close(writing)
    return process, reading


def _letters(permissions: int) -> str:
    return "".join(letter for letter, bit in (("r", READ), ("x", SEARCH)) if permissions & bit)


def _name(user_id: int) -> str:
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return "others" if user_id < 0 else f"user {user_id}"


def _names(user_ids: set[int]) -> str:
    return " and ".join(sorted(map(_name, user_ids)))
