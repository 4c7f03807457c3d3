"""The jobs and the client's properties of the role kquota_pipeline."""

from __future__ import annotations

from pathlib import Path

import javaproperties
import pytest
import yaml

from tests.fleet.roles.plays import PlayFailed, run_play
from tests.unit.repository.tree import REPOSITORY

ROLE = REPOSITORY / "roles/kquota_pipeline"
CHECKS = [
    task
    for task in yaml.safe_load((ROLE / "tasks/preflight.yml").read_text("utf-8"))
    if "job" in task["name"]
]


def test_two_jobs_of_one_name_are_refused_because_one_would_replace_the_other(tmp_path: Path) -> None:
    report, other = {"name": "report", "arguments": ["--a"]}, {"name": "ingest"}
    run_play(tmp_path, CHECKS, {"kquota_pipeline_jobs": [report, other]})
    twice = [report, other, {"name": "report", "arguments": ["--b"]}]
    with pytest.raises(PlayFailed, match=r"each\s+name\s+once(.|\n)*report,\s+ingest,\s+report"):
        run_play(tmp_path, CHECKS, {"kquota_pipeline_jobs": twice})


def test_the_client_reads_the_properties_as_they_are(tmp_path: Path) -> None:
    given = {"a": " leading", "b": "\tand \\ back", "c": "two\r\nlines", "d": "#x=y:z ", "e": True}
    template = {"src": str(ROLE / "templates/client.properties.j2"), "dest": f"{tmp_path}/written"}
    run_play(tmp_path, [{"ansible.builtin.template": template}], {"kquota_pipeline_kafka_properties": given})
    found = javaproperties.loads((tmp_path / "written").read_text("utf-8"))
    assert found == {key: str(value) for key, value in given.items()}
