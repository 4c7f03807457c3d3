"""The systems under trial: each file here has one, in the class `Tried`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from conformance.system import System


def systems() -> dict[str, type[System]]:
    """Return the class of each system by its name, in the order of the files' names."""
    found: dict[str, type[System]] = {}
    for module in sorted(iter_modules(__path__), key=lambda module: module.name):
        tried: type[System] = import_module(f"{__name__}.{module.name}").Tried
        found[tried.name] = tried
    return found
