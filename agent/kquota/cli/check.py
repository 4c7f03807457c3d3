"""``kquota check``: a monitoring plug-in (Nagios, Icinga …): 0 OK, 1 warning, 2 critical, 3 unknown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nagiosplugin

from kquota.cli.configuration import DEFAULT_CONFIG, ConfigOption
from kquota.cli.local_state import local_document, local_notes
from kquota.disks.server_properties import BrokerPropertiesError, read_broker_properties
from kquota.formats.sentences import local_broken_glass, local_starving
from kquota.settings import SettingsError, load

_STATE_RANK = {"OPEN": nagiosplugin.Ok, "THROTTLE": nagiosplugin.Warn, "PAUSE": nagiosplugin.Critical}


class _Broker(nagiosplugin.Resource):  # type: ignore[misc]
    """The contents of this host's files, as metrics."""

    name = "KQUOTA"

    def __init__(self, config: Path) -> None:
        self.config = config
        self.local: dict[str, Any] = {}

    def probe(self) -> Iterator[nagiosplugin.Metric]:
        self.local = _local(self.config)
        decision, applied = self.local["decision"], self.local["applied"]
        left = self.local["lease_seconds_left"] or 0.0
        factor = float(decision["factor"]) if decision is not None else 0.0
        yield nagiosplugin.Metric("factor", factor, min=0, max=1, context="decision")
        yield nagiosplugin.Metric("lease", round(left, 3), "s", min=0, context="lease")
        applied_factor = float(applied["factor"]) if applied is not None else 0.0
        yield nagiosplugin.Metric("applied_factor", applied_factor, min=0, max=1, context="applied")


class _Context(nagiosplugin.Context):  # type: ignore[misc]
    """Judges one of the metrics by the whole document."""

    def evaluate(self, metric: nagiosplugin.Metric, resource: _Broker) -> nagiosplugin.Result:
        state, hint = getattr(self, f"_{self.name}")(resource.local)
        return self.result_cls(state, hint, metric)

    def performance(self, metric: nagiosplugin.Metric, _resource: _Broker) -> nagiosplugin.Performance:
        return nagiosplugin.Performance(
            metric.name, metric.value, metric.uom or "", min=metric.min, max=metric.max
        )

    def _decision(self, local: dict[str, Any]) -> tuple[nagiosplugin.ServiceState, str]:
        decision = local["decision"]
        if decision is None:
            return nagiosplugin.Critical, local["decision_problem"]
        return _STATE_RANK[decision["state"]], decision["sentence"]

    def _lease(self, local: dict[str, Any]) -> tuple[nagiosplugin.ServiceState, str]:
        if local["decision"] is None:
            return nagiosplugin.Ok, "no decision"  # the decision's own metric reports it
        if not local["lease_seconds_left"]:
            return nagiosplugin.Critical, "the decision's lease has ended: is the agent running?"
        return nagiosplugin.Ok, f"lease runs for {local['lease_seconds_left']:.0f} s more"

    def _applied(self, local: dict[str, Any]) -> tuple[nagiosplugin.ServiceState, str]:
        applied, decision = local["applied"], local["decision"]
        if applied is None:
            return nagiosplugin.Warn, f"enforcement unverified: {local['applied_problem']}"
        if applied["lost"] is not None:
            return nagiosplugin.Critical, f"the plug-in has no decision: {applied['lost']}"
        if (glass := local_broken_glass(local)) is not None:
            return nagiosplugin.Warn, glass
        if decision is not None and applied["state"] != decision["state"]:
            return nagiosplugin.Warn, f"decided {decision['state']}, applied {applied['state']}"
        if (starving := local_starving(local)) is not None:
            return nagiosplugin.Warn, starving
        return nagiosplugin.Ok, f"applied {applied['state']} ({applied['mode']})"


class _Summary(nagiosplugin.Summary):  # type: ignore[misc]
    """The sentence of the worst result, or that of the decision."""

    def ok(self, results: nagiosplugin.Results) -> str:
        return str(results["factor"].hint)

    def problem(self, results: nagiosplugin.Results) -> str:
        worst = str(next(iter(results.most_significant)).hint)
        if "factor" not in results:
            return worst
        # "PAUSE" alone would be taken for a pause that holds producers, "THROTTLE" for one that all survive.
        local = results["factor"].resource.local
        remarks = local_broken_glass(local), local_starving(local)
        beside = [said for said in remarks if said is not None and said != worst]
        return f"{worst}. {' '.join(beside)}" if beside else worst

    def verbose(self, results: nagiosplugin.Results) -> list[str]:
        return local_notes(results["factor"].resource.local) if "factor" in results else []


def _local(config: Path) -> dict[str, Any]:
    """Return the contents of this host's files; without a configuration the broker's state is unknown."""
    try:
        settings = load(config.absolute(), os.environ)
        node_id = settings.broker.node_id
        if node_id is None:
            node_id = read_broker_properties(settings.broker.server_properties).node_id
    except (SettingsError, BrokerPropertiesError) as error:
        raise nagiosplugin.CheckError(" ".join(str(error).split())) from error
    return local_document(settings, node_id)


def check(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Check this host's broker in the manner of monitoring plug-ins: 0 OK, 1 warning, 2 critical, 3 unknown.

    THROTTLE is a warning, and so is a broker that observes although enforcing is decided, or one that starves
    producers; PAUSE, a decision whose lease has ended and a plug-in without a decision are critical; without
    a usable configuration it is unknown. Performance data: factor, lease, applied_factor.
    """
    contexts = [_Context(name) for name in ("decision", "lease", "applied")]
    nagiosplugin.Check(_Broker(config), *contexts, _Summary()).main(verbose=0, timeout=10)
