"""The specification of hosts."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
"""Of a fleet or a host: small letters, digits and dashes."""


def _below_the_root(path: str) -> str:
    pure = PurePosixPath(path)
    if not pure.is_absolute() or ".." in pure.parts or pure == PurePosixPath("/"):
        raise ValueError(f"{path} has to be an absolute path below /")
    return str(pure)


HostPath = Annotated[str, AfterValidator(_below_the_root)]

Suite = Literal["bookworm", "trixie"]
"""Debian 12 or 13."""


class _Spec(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class VolumeSpec(_Spec):
    """A file system of its own, mounted at `path` on the host."""

    path: HostPath
    filesystem: Literal["ext4", "xfs"] = "ext4"
    size_mebibytes: Annotated[int, Field(ge=16, le=65536)] = 128
    """ext4 needs 16 MiB, xfs 300 MiB."""


class HostSpec(_Spec):
    """One host. `shows` maps paths of the host to files or directories of this machine, read-only there."""

    name: Name
    suite: Suite = "bookworm"
    volumes: tuple[VolumeSpec, ...] = ()
    shows: dict[HostPath, Path] = Field(default_factory=dict)
