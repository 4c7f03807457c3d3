"""After the role: the timers, the sandbox, and each job run by its unit, with a real Kafka."""

from __future__ import annotations

import json
from typing import Any

import pytest
from host_state import document, run

HOURLY = ("ingest", "maintain")
JOBS = (*HOURLY, "report")
STATE = "/var/lib/kquota-pipeline"
REPORT = f"{STATE}/report.html"
FILLING = (1, "/dev/sdb1")

# Counts with the pipeline's own reader, as the owner of the tables.
COUNT = f"""
import json
from kquota_pipeline.delta import read
from kquota_pipeline.session import start_session
from kquota_pipeline.tables import BY_NAME, Tables

spark = start_session("count", {{"spark.master": "local[2]"}})
tables = Tables("file:{STATE}/tables")
names = ("usage", "decisions", "clients", "quarantine", "ten_minutes")
print(json.dumps({{name: read(spark, tables, BY_NAME[name]).count() for name in names}}))
"""


def unit(job: str, kind: str = "service") -> str:
    return f"kquota-pipeline-{job}.{kind}"


def job(host: Any, name: str) -> list[str]:
    """Run a job to its end, as its timer does; return its journal, including earlier runs."""
    with host.sudo():
        done = host.run(f"systemctl start {unit(name)}")
        said = host.check_output(f"journalctl --no-pager --output=cat --unit={unit(name)}")
    assert done.rc == 0, f"{done.stderr}{said}"
    assert "Traceback" not in said
    assert "Exception" not in said
    return str(said).splitlines()


def logged(lines: list[str], *words: str) -> bool:
    """Return whether a line has all these words."""
    return any(all(word in line for word in words) for line in lines)


def rows(host: Any) -> dict[str, int]:
    """Return the number of rows of each table."""
    as_its_user = (
        "runuser -u kquota-pipeline -- env --chdir=/tmp KQUOTA_PIPELINE_JARS=/opt/kquota-pipeline/jars"
    )
    said = run(host, f"{as_its_user} /opt/kquota-pipeline/bin/python -c %s", COUNT)
    counted: dict[str, int] = json.loads(said.splitlines()[-1])
    return counted


@pytest.mark.parametrize("name", JOBS)
def test_a_timer_knows_when_the_job_runs_next(host: Any, name: str) -> None:
    timer = host.service(unit(name, "timer"))
    assert timer.is_running
    assert timer.is_enabled
    listed = run(host, f"systemctl list-timers --no-pager --no-legend {unit(name, 'timer')}")
    assert unit(name) in listed
    assert " left " in listed, "the time of the next run is known"


@pytest.mark.parametrize("name", HOURLY)
def test_ingest_and_maintain_run_every_hour(host: Any, name: str) -> None:
    assert "OnCalendar=*-*-* *:" in run(
        host, f"systemctl show --property=TimersCalendar {unit(name, 'timer')}"
    )


@pytest.mark.parametrize("name", JOBS)
def test_the_sandbox_leaves_little_to_attack(host: Any, name: str) -> None:
    run(host, f"systemd-analyze security --no-pager --threshold=15 {unit(name)}")


def test_keys_are_read_by_the_pipeline_alone(host: Any) -> None:
    with host.sudo():
        for name in ("kquota-pipeline.keystore", "ca.pem", "client.properties"):
            file = host.file(f"/etc/kquota-pipeline/{name}")
            assert (file.user, file.group, file.mode) == ("root", "kquota-pipeline", 0o640)


def test_the_jobs_bring_six_days_of_history_into_the_tables_each_record_once(host: Any) -> None:
    sent = document(host, "/root/history.json")
    lines = job(host, "ingest")
    assert logged(lines, f"{sent['records']:,} records", "3 malformed"), lines
    assert logged(job(host, "ingest"), "nothing new in the topic")
    assert logged(job(host, "maintain"), "closed days put in order", "duplicate rows removed")
    counted = rows(host)
    assert counted.pop("ten_minutes") > 0
    assert counted == sent["rows"]


def test_an_operator_asks_on_the_host_which_disk_fills(host: Any) -> None:
    volumes = json.loads(run(host, "kquota-pipeline forecast --json"))
    assert len(volumes) == 6
    outlook = {(each["broker_id"], each["volume_name"]): each["soft_outlook"] for each in volumes}
    assert {volume for volume, seen in outlook.items() if seen == "filling"} == {FILLING}
    (soonest,) = (each for each in volumes if (each["broker_id"], each["volume_name"]) == FILLING)
    # It gains 40 % in six days, and has about 12 % left to its soft limit.
    assert 0.5 < soonest["soft_days"] < 5


def test_users_other_than_root_are_refused(host: Any) -> None:
    refused = host.run("kquota-pipeline forecast")
    assert refused.rc == 1
    assert "run this as root" in refused.stderr


def test_the_report_is_written_and_names_the_disk_that_fills(host: Any) -> None:
    assert logged(job(host, "report"), f"{REPORT} is written")
    with host.sudo():
        file = host.file(REPORT)
        assert file.user == "kquota-pipeline"
        page = file.content_string
    assert page.startswith("<!DOCTYPE html>")
    assert FILLING[1] in page
    assert "http://" not in page.replace("http://www.w3.org/", "")


def test_it_leaves_its_files_where_it_may_and_runs_as_nobody_else(host: Any) -> None:
    with host.sudo():
        assert host.check_output(f"find {STATE} ! -user kquota-pipeline") == ""
        assert host.run("find /opt/kquota-pipeline -user kquota-pipeline").stdout == ""
