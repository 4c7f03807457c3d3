"""The threat model of ``docs/attacks.yml``: its page, and its table in SECURITY.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, model_validator

from tools.acceptance.statements import Line
from tools.reference.markdown import code, table

_TABLE = "<!-- Written by `python -m tools.reference` from docs/attacks.yml. Do not edit. -->\n"
_END = "<!-- End of that table. -->"
NOTHING = "nothing"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Attacker(_Strict):
    """Someone who attacks, and what it holds."""

    name: Line
    holds: Line


class Attack(_Strict):
    """One attack; its outcomes are what it achieves at most, by the mode of signing."""

    attacker: str
    tries: Line
    off: str
    required: str
    long: bool = False
    played: bool = True
    shown: tuple[str, ...] = ()


class ThreatModel(_Strict):
    """The whole file, by names."""

    outcomes: dict[str, Line]
    attackers: dict[str, Attacker]
    attacks: dict[str, Attack]

    @model_validator(mode="after")
    def _is_whole(self) -> ThreatModel:
        for name, attack in self.attacks.items():
            if attack.attacker not in self.attackers:
                raise ValueError(f"{name}: {attack.attacker} is no attacker")
            if unknown := {attack.off, attack.required} - self.outcomes.keys():
                raise ValueError(f"{name}: {', '.join(sorted(unknown))} is no outcome")
            if not attack.played and not attack.shown:
                raise ValueError(f"{name}: no test shows it")
        if idle := self.attackers.keys() - {attack.attacker for attack in self.attacks.values()}:
            raise ValueError(f"{', '.join(sorted(idle))}: without an attack")
        return self

    def of(self, attacker: str) -> dict[str, Attack]:
        """Return the attacks of an attacker."""
        return {name: one for name, one in self.attacks.items() if one.attacker == attacker}

    def most(self, attacker: str, mode: Literal["off", "required"]) -> str:
        """Return what an attacker achieves at most in a mode, the worst last."""
        reached = {getattr(attack, mode) for attack in self.of(attacker).values()} - {NOTHING}
        return "; ".join(self.outcomes[one] for one in self.outcomes if one in (reached or {NOTHING}))


def read_threat_model(repository: Path) -> ThreatModel:
    """Read ``docs/attacks.yml``.

    Raises:
        ValueError: the file is not as it should be.
    """
    text = (repository / "docs" / "attacks.yml").read_text("utf-8")
    return ThreatModel.model_validate(yaml.safe_load(text))


def attacks_page(repository: Path) -> str:
    """Return docs/evidence/attacks.md."""
    model = read_threat_model(repository)
    lines = [
        "# Attacks",
        "",
        "Each attack achieves this at most, with `signing.mode` at `off` and at `required`."
        " With `accept` an attacker leaves the signature out, as with `off`."
        " [SECURITY.md](../../SECURITY.md) has the same by attacker. The suite `tests/integration/security`"
        " plays each attack that has a name in the last column (`invented-broker`), with a real Kafka, its"
        " ACLs and real agents. To play one:"
        " `sudo .venv/bin/python -m pytest tests/integration/security -k required-invented-broker`.",
        "",
    ]
    for attacker, described in model.attackers.items():
        lines += [f"## {described.name}", "", f"Holds {described.holds}.", ""]
        headings = ["attack", "achieves at most, `off`", "achieves at most, `required`", "shown by"]
        lines += table(headings, _rows(model, attacker))
    return "\n".join(lines)


def security_page(repository: Path) -> str:
    """Return SECURITY.md with the table of attackers as it should be."""
    model = read_threat_model(repository)
    headings = ["attacker", "holds", "achieves at most, `off`", "achieves at most, `required`"]
    rows = [
        [one.name, one.holds, model.most(attacker, "off"), model.most(attacker, "required")]
        for attacker, one in model.attackers.items()
    ]
    before, _, rest = (repository / "SECURITY.md").read_text("utf-8").partition(_TABLE)
    return f"{before}{_TABLE}\n" + "\n".join(table(headings, rows)) + f"\n{_END}{rest.partition(_END)[2]}"


def _rows(model: ThreatModel, attacker: str) -> Iterator[list[str]]:
    for name, attack in model.of(attacker).items():
        outcomes = [model.outcomes[attack.off], model.outcomes[attack.required]]
        yield [attack.tries, *outcomes, ", ".join(code(one) for one in _shown_by(name, attack))]


def _shown_by(name: str, attack: Attack) -> tuple[str, ...]:
    return (name, *attack.shown) if attack.played else attack.shown
