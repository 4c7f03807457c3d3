"""The daemon: signals, configuration, the endless loop of cycles, and the exit code.

Runs under systemd (Type=notify) and in a terminal alike.
"""

from __future__ import annotations

import gc
import logging
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import kquota
from kquota.disks.server_properties import BrokerProperties, BrokerPropertiesError, read_broker_properties
from kquota.journal.journal import Entry, Journal, MessageId
from kquota.kafka.config import ConfigurationError
from kquota.service.agent import Agent
from kquota.service.configuration_file import ConfigurationFile
from kquota.service.metrics import AgentMetrics
from kquota.service.metrics_server import MetricsServer
from kquota.service.notify import Notifier
from kquota.settings.model import Settings
from kquota.settings.problems import SettingsError

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_CONFIGURATION = 78  # EX_CONFIG, at a first start only; the unit has RestartPreventExitStatus=78
# A cycle that fails again and again is a defect that only a new process may get over.
MAX_FAILED_CYCLES = 20
_FAILED_CYCLE_PAUSE_SECONDS = 0.5
# The reports of a large cluster are some hundred thousand objects without cycles. Python would look for
# cycles among them so often that it is a sixth of the main thread's work.
_OBJECTS_UNTIL_COLLECTION = 50_000

_CONFIGURATION_ERRORS = (SettingsError, BrokerPropertiesError, ConfigurationError)


def run(config: Path, environ: Mapping[str, str]) -> int:
    """Run the agent until SIGTERM or SIGINT; return the exit code."""
    journal = Journal(environ)
    configuration = ConfigurationFile(config, environ)
    try:
        return _Daemon(configuration, environ, journal).run()
    except _CONFIGURATION_ERRORS as error:
        journal.write(_refusal(error))
        if not configuration.was_good():
            return EXIT_CONFIGURATION
        # It was good once: a missing part may come back, for example a file that is being replaced.
        sentence = "the agent can't start: the configuration is bad, the last good one can't be used either"
        journal.write([Entry.of(MessageId.CONFIGURATION_REFUSED, sentence)])
        return EXIT_FAILED
    except OSError as error:
        sentence = f"the agent can't start: {error}"
        journal.write([Entry.of(MessageId.CYCLE_FAILED, sentence)])
        return EXIT_FAILED
    finally:
        journal.close()


def _refusal(error: Exception) -> list[Entry]:
    """Return an entry for each problem of a configuration."""
    problems = error.problems if isinstance(error, SettingsError) else (error,)
    return [Entry.of(MessageId.CONFIGURATION_REFUSED, str(problem)) for problem in problems]


class _Daemon:
    """One run of the process."""

    def __init__(
        self, configuration: ConfigurationFile, environ: Mapping[str, str], journal: Journal
    ) -> None:
        self._configuration, self._journal = configuration, journal
        self._notifier = Notifier(environ)
        self._metrics = AgentMetrics(kquota.__version__)
        self._server: MetricsServer | None = None
        self._listening: object = None
        self._stop = self._reload = False
        self._ready = False

    def run(self) -> int:
        gc.set_threshold(_OBJECTS_UNTIL_COLLECTION)
        with self._signals():
            agent = self._start()
            sentence = f"kquota {kquota.__version__} started for broker {agent.broker_id}"
            self._log(MessageId.STARTED, sentence)
            try:
                return self._loop(agent)
            finally:
                self._notifier.stopping("the agent stops; its last decision holds until the lease ends")
                agent.close()
                self._stop_serving()
                self._log(MessageId.STOPPING, "stopped; the last decision holds until its lease ends")

    def _loop(self, agent: Agent) -> int:
        failed_cycles = 0
        while not self._stop:
            if self._reload:
                self._reload = False
                self._reconfigure(agent)
            try:
                report, entries = agent.run_cycle()
            except Exception:
                failed_cycles += 1
                self._metrics.cycle_failures.inc()
                logging.getLogger("kquota").exception(
                    "a cycle failed; the last decision holds until its lease ends"
                )
                if failed_cycles >= MAX_FAILED_CYCLES:
                    return EXIT_FAILED
                time.sleep(_FAILED_CYCLE_PAUSE_SECONDS)
                continue
            failed_cycles = 0
            self._journal.write(entries)
            if report.decision is not None and not self._ready:
                self._ready = True
                self._notifier.ready(report.sentence)
            self._notifier.cycle_completed(report.sentence)
        return EXIT_OK

    def _start(self) -> Agent:
        """Start with the configuration, or with the last good one in place of a bad one.

        Raises:
            SettingsError, BrokerPropertiesError, ConfigurationError: it is bad, and no good one can be used.
        """
        try:
            settings = self._configuration.load()
            agent = self._agent(settings)
        except _CONFIGURATION_ERRORS as error:
            last_good = self._configuration.last_good()
            if last_good is None:
                raise
            try:
                agent = self._agent(last_good)
            except _CONFIGURATION_ERRORS:  # the good one has become bad: its defects are to be fixed
                raise error from None
            self._in_force(last_good, agent)
            self._refuse(error, "the configuration is bad, the last good one is used")
        else:
            self._in_force(settings, agent)
            agent.remember_configuration(self._configuration.good(settings))
        return agent

    def _agent(self, settings: Settings) -> Agent:
        self._serve(settings)
        return Agent(settings, _properties(settings), self._metrics)

    def _in_force(self, settings: Settings, agent: Agent) -> None:
        self._journal.configure(
            settings.log.level, broker_id=agent.broker_id, secrets=settings.secret_values()
        )
        for warning in settings.warnings():
            self._log(MessageId.CONFIGURATION_WARNING, warning)

    def _refuse(self, error: Exception, outcome: str) -> None:
        """Return the problems of the present configuration, and the one that applies instead."""
        self._metrics.configuration_taken(is_last_good=True)
        self._journal.write(_refusal(error))
        self._log(MessageId.CONFIGURATION_REFUSED, outcome)

    def _reconfigure(self, agent: Agent) -> None:
        """Take over a changed configuration; a bad one changes nothing."""
        self._notifier.reloading()
        try:
            settings = self._configuration.load()
            agent.reconfigure(settings, _properties(settings))
        except (*_CONFIGURATION_ERRORS, OSError) as error:
            outcome = "the configuration is bad, the one in force stays"
            self._refuse(error, outcome)
        else:
            agent.remember_configuration(self._configuration.good(settings))
            self._serve(settings)
            self._in_force(settings, agent)
            self._metrics.configuration_taken(is_last_good=False)
            outcome = "the configuration was read again"
            self._log(MessageId.CONFIGURATION_LOADED, outcome)
        # systemd takes this for the end of the reload; the end of the start is the first decision
        if self._ready:
            self._notifier.ready(outcome)

    def _serve(self, settings: Settings) -> None:
        """Serve metrics where they are to be served; an agent without metrics still protects the disks."""
        if self._listening == settings.metrics:
            return
        self._stop_serving()
        try:
            self._server = MetricsServer(
                settings.metrics.listen, self._metrics.registry, settings.metrics.web_config_file
            )
            self._listening = settings.metrics
        except OSError as error:
            self._log(MessageId.CONFIGURATION_REFUSED, f"metrics are not served: {error}")

    def _stop_serving(self) -> None:
        if self._server is not None:
            self._server.close()
        self._server = self._listening = None

    def _log(self, message_id: MessageId, sentence: str) -> None:
        self._journal.write([Entry.of(message_id, sentence)])

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def stop(_number: int, _frame: FrameType | None) -> None:
            self._stop = True

        def reload(_number: int, _frame: FrameType | None) -> None:
            self._reload = True

        wanted = {signal.SIGTERM: stop, signal.SIGINT: stop, signal.SIGHUP: reload}
        before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _properties(settings: Settings) -> BrokerProperties:
    return read_broker_properties(settings.broker.server_properties, settings.broker.node_id)
