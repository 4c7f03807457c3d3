"""Streams run side by side: what is printed, what comes of a failure, and what an interruption leaves."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from tests.unit.repository.tree import REPOSITORY
from tools.streams.process import RunningStream
from tools.streams.run import INTERRUPTED, Run
from tools.streams.stream import Stream

_PATIENCE_SECONDS = 60


def shell(name: str, script: str, cores: float = 1.0, after: tuple[str, ...] = ()) -> Stream:
    return Stream(name=name, command=("/bin/sh", "-ec", script), cores=cores, after=after)


def wait_for(file: Path) -> str:
    return f"until [ -e {file} ]; do sleep 0.05; done"


def played(
    folder: Path,
    streams: Sequence[Stream],
    cores: float = 2.0,
    *,
    show_all: bool = False,
    progress_seconds: float = 30.0,
) -> tuple[int, str]:
    output = io.StringIO()
    run = Run(
        streams,
        cores=cores,
        records=folder / "records",
        show_all=show_all,
        progress_seconds=progress_seconds,
        output=output,
    )
    return run.run(), output.getvalue()


def ended_stream(stream: Stream, folder: Path) -> RunningStream:
    one = RunningStream(stream, folder / f"{stream.name}.log")
    while one.exit_code() is None:
        time.sleep(0.05)
    return one


def results(output: str) -> dict[str, str]:
    """What the summary says of each stream."""
    summary = re.findall(
        r"^ *\d+:\d\d  (\w+) +(\S.*?)(?: after \d+:\d\d, \d+\.\d cores busy)?$", output, re.MULTILINE
    )
    return dict(summary)  # of what is said of a stream several times, the last


def test_streams_run_at_the_same_time(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    code, output = played(
        tmp_path,
        [shell("one", f"touch {a}; {wait_for(b)}; echo seen"), shell("other", f"touch {b}; {wait_for(a)}")],
    )
    assert code == 0, output
    assert results(output) == {"one": "passed", "other": "passed"}
    assert (tmp_path / "records/one.log").read_text() == "seen\n"
    assert "seen" not in output, "what has ended well need not be read"


def test_modules_are_compiled_once_and_not_at_each_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    code, output = played(tmp_path, [shell("one", '[ -z "${PYTHONDONTWRITEBYTECODE-}" ]')])
    assert code == 0, output


def test_no_more_run_at_once_than_there_are_cores_for(tmp_path: Path) -> None:
    alone = f"mkdir {tmp_path}/here; sleep 0.3; rmdir {tmp_path}/here"
    code, output = played(tmp_path, [shell(name, alone) for name in "abc"], cores=1.0)
    assert code == 0, output


def test_a_stream_begins_when_the_one_before_it_has_ended(tmp_path: Path) -> None:
    made = tmp_path / "made"
    late = shell("late", f"test -e {made}", cores=0.1, after=("early",))
    code, output = played(tmp_path, [late, shell("early", f"sleep 0.3; touch {made}", cores=0.1)])
    assert code == 0, output


def test_a_failure_is_shown_whole_and_the_others_go_on(tmp_path: Path) -> None:
    failing = tmp_path / "failing"
    code, output = played(
        tmp_path,
        [
            shell("bad", f"echo the reason; touch {failing}; exit 3"),
            shell("good", f"{wait_for(failing)}; sleep 0.5; echo fine"),
            shell("lost", "true", after=("bad",)),
            shell("next", "true", after=("lost",)),
        ],
    )
    assert code == 1
    found = results(output)
    assert found["bad"] == "FAILED, exit code 3"
    assert found["good"] == "passed"
    assert found["lost"] == "not run: it comes after bad"
    assert found["next"] == "not run: it comes after lost"
    assert "\nthe reason\n" in output
    assert "\nfine\n" not in output


def test_everything_is_shown_where_it_is_wanted(tmp_path: Path) -> None:
    code, output = played(tmp_path, [shell("good", "echo fine; echo too >&2")], show_all=True)
    assert code == 0
    assert "\nfine\ntoo\n" in output


def test_how_busy_a_stream_was_is_said(tmp_path: Path) -> None:
    # By the work done, not the time taken: beside other tests a stream may get little of a core.
    spun_seconds = 0.5
    busy = f"import time\nwhile time.process_time() < {spun_seconds}: pass"
    ended = {
        name: ended_stream(Stream(name=name, command=command, cores=1.0), tmp_path)
        for name, command in {"busy": (sys.executable, "-c", busy), "idle": ("sleep", "0.5")}.items()
    }
    worked_seconds = {name: one.cores * one.seconds for name, one in ended.items()}
    assert worked_seconds["busy"] >= spun_seconds > worked_seconds["idle"] >= 0
    assert 0 < ended["busy"].cores <= 1.1
    _, output = played(tmp_path, [shell("idle", "sleep 0.5")])
    assert re.search(r"idle  passed after 0:\d\d, \d\.\d cores busy$", output, re.MULTILINE)


def test_other_exit_codes_may_be_good_ones(tmp_path: Path) -> None:
    empty = Stream(name="empty", command=("/bin/sh", "-c", "exit 5"), cores=1.0, good=(0, 5))
    assert played(tmp_path, [empty])[0] == 0


def test_while_they_run_their_last_words_are_shown(tmp_path: Path) -> None:
    script = r"printf '\033[32mtests/unit/test_a.py ......... [ 43%%]\033[0m\n\n----\n'; sleep 1.5"
    _, output = played(tmp_path, [shell("one", script)], progress_seconds=0.2)
    assert re.search(r"^ *0:0\d  one  0:0\d  tests/unit/test_a\.py \[ 43%\]$", output, re.MULTILINE), output


RUNNER = """
import signal, sys
from pathlib import Path
from tools.streams.stream import Stream
from tools.streams.run import Run

folder = Path(sys.argv[1])
tidy = "trap 'sleep 0.2; touch tidied; exit 7' INT; sleep 300 & echo $! > child; touch ready-1; wait"
deaf = "trap '' INT TERM; touch ready-2; while :; do sleep 0.1; done"
streams = [
    Stream(name=name, command=("/bin/sh", "-c", f"cd {folder}; {script}"), cores=1.0)
    for name, script in (("tidy", tidy), ("deaf", deaf), ("later", "touch begun"))
]
patience = [(signal.SIGINT, 5.0), (signal.SIGTERM, 0.5), (signal.SIGKILL, 60.0)]
sys.exit(Run(streams, cores=2.0, records=folder, patience=patience).run())
"""


@pytest.mark.parametrize(
    ("number", "ignoring"),
    [(signal.SIGINT, True), (signal.SIGTERM, False)],
    ids=["SIGINT that was ignored, as in a script's background", "SIGTERM"],
)
def test_an_interruption_ends_every_process_and_begins_nothing(
    tmp_path: Path, number: signal.Signals, ignoring: bool
) -> None:
    command = [sys.executable, "-c", RUNNER, str(tmp_path)]
    if ignoring:
        command = ["/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as runner:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not all((tmp_path / f"ready-{which}").exists() for which in (1, 2)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        family = psutil.Process(runner.pid).children(recursive=True)
        os.kill(runner.pid, number)
        output, _ = runner.communicate(timeout=_PATIENCE_SECONDS)

    assert runner.returncode == INTERRUPTED, output
    assert (tmp_path / "tidied").exists(), "it had its time to clear up"
    assert not (tmp_path / "begun").exists()
    found = results(output)
    assert found["tidy"] == found["deaf"] == "interrupted"
    assert found["later"] == "not run: interrupted"
    assert len(family) >= 3
    _, alive = psutil.wait_procs(family, timeout=_PATIENCE_SECONDS)
    assert alive == []
