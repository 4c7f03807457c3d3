"""Signed reports by the roles: certificates that name their broker, and the steps from off to required."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives.serialization import Encoding

from kquota.formats.signature_headers import names_agent
from kquota.trust.authorities import AuthorityFile
from kquota.trust.live_file import FileProblem
from kquota.trust.signer import FileSigner, SigningFiles
from tests.fleet.roles.authority import ISSUE, certificate, verify
from tests.fleet.roles.plays import PlayFailed, run_play, run_tasks
from tests.fleet.roles.test_scope import FIRST_CHECK, inventory
from tests.fleet.roles.test_specifications import checks
from tests.unit.repository.tree import REPOSITORY


def test_the_agent_s_certificate_signs_for_its_own_broker_alone(
    tmp_path: Path, variables: dict[str, object]
) -> None:
    tls = tmp_path / "etc/tls"
    files = SigningFiles(tls / "current/agent.pem", tls / "current/agent.key", tls / "signers.pem")

    run_tasks(tmp_path, ISSUE, {**variables, "kquota_callback_node": {"node_id": "12"}})
    verify(tmp_path)
    signer = FileSigner(files, broker_id=12)
    assert signer.doubt(datetime.now(UTC)) is None
    found = AuthorityFile(files.authorities).certificate(signer.certificate)
    assert found is not None
    assert names_agent(found.names, 12)
    assert not names_agent(found.names, 1)
    assert found.verifies(signer.sign(b"a report"), b"a report")
    with pytest.raises(FileProblem, match="names kquota://"):
        FileSigner(files, broker_id=1)

    first = certificate(tmp_path)
    assert run_tasks(tmp_path, ISSUE, {**variables, "kquota_callback_node": {"node_id": "12"}}) == 0
    assert certificate(tmp_path) == first
    # The id of another broker, of which this one's is the beginning.
    assert run_tasks(tmp_path, ISSUE, {**variables, "kquota_callback_node": {"node_id": "1"}}) > 0
    assert FileSigner(files, broker_id=1).names == ("kquota://*/agent/1",)


def test_a_certificate_of_a_former_version_is_replaced_by_one_that_names_the_broker(
    tmp_path: Path, variables: dict[str, object], issued: object
) -> None:
    assert run_tasks(tmp_path, ISSUE, {**variables, "kquota_callback_node": {"node_id": "3"}}) > 0
    assert certificate(tmp_path) != issued
    tls = tmp_path / "etc/tls"
    FileSigner(SigningFiles(tls / "current/agent.pem", tls / "current/agent.key", tls / "signers.pem"), 3)


@pytest.mark.long
def test_a_further_authority_of_signatures_counts_and_no_other(
    tmp_path: Path, variables: dict[str, object]
) -> None:
    elsewhere = {**variables, "kquota_tls_ca_dir": str(tmp_path / "elsewhere")}
    other = tmp_path / "other"
    other.mkdir()
    run_tasks(
        other,
        ISSUE,
        {
            **elsewhere,
            "kquota_tls_directory": str(other / "etc/tls"),
            "kquota_callback_node": {"node_id": "1"},
        },
    )
    stranger = certificate(other).public_bytes(Encoding.DER)
    run_tasks(tmp_path, ISSUE, {**variables, "kquota_callback_node": {"node_id": "2"}})
    signers = tmp_path / "etc/tls/signers.pem"
    assert AuthorityFile(signers).certificate(stranger) is None
    given = {
        "kquota_tls_signer_files": [str(tmp_path / "elsewhere/issuer.pem")],
        "kquota_callback_node": {"node_id": "2"},
    }
    run_tasks(tmp_path, ISSUE, {**variables, **given})
    assert AuthorityFile(signers).certificate(stranger) is not None


STEPS = {
    "none": ({}, None),
    "on-the-way": ({"kquota_signing": "required"}, "accept"),
    "yaml-s-off": ({"kquota_signing": False}, None),
    "yaml-s-off-in-the-role": ({"kquota_agent_signing": False}, None),
    "there": ({"kquota_signing": "required", "kquota_agent_signing_before": "required"}, "required"),
    "last": (
        {
            "kquota_signing": "required",
            "kquota_agent_signing_before": "accept",
            "kquota_agent_last_step": True,
        },
        "required",
    ),
    "back": ({"kquota_signing": "off", "kquota_agent_signing_before": "required"}, "accept"),
    "back-last": (
        {"kquota_signing": "off", "kquota_agent_signing_before": "accept", "kquota_agent_last_step": True},
        None,
    ),
}


def test_from_off_to_required_and_back_goes_through_accept(tmp_path: Path) -> None:
    template = REPOSITORY / "roles/kquota_agent/templates/agent.yml.j2"
    written = {"src": str(template), "dest": f"{tmp_path}/{{{{ inventory_hostname }}}}"}
    tasks = [*checks("kquota_agent", "service"), {"ansible.builtin.template": written}]
    given = {"kquota_kafka": {"bootstrap.servers": "a:9093"}, "kquota_tls": True}
    brokers = {name: variables for name, (variables, _) in STEPS.items()}
    run_play(tmp_path, tasks, given, inventory=inventory(tmp_path, **brokers))
    found: Mapping[str, object] = {
        name: yaml.safe_load((tmp_path / name).read_text()).get("signing") for name in STEPS
    }
    signing_files = {"ca_file": "/etc/kquota/tls/signers.pem", "revoked_file": "/etc/kquota/revoked"}
    expected = {name: mode and {"mode": mode, **signing_files} for name, (_, mode) in STEPS.items()}
    assert found == expected


def test_a_misspelt_mode_of_signing_is_refused(tmp_path: Path) -> None:
    misspelt = {"kquota_signing": "require"}
    with pytest.raises(PlayFailed, match=r"kquota_signing\s+\('require'\)\s+must\s+be\s+off,\s+accept\s+or"):
        run_play(tmp_path, FIRST_CHECK, misspelt, inventory=inventory(tmp_path, a={}))
    with pytest.raises(PlayFailed, match="value of kquota_agent_signing must be one of"):
        run_play(tmp_path, checks("kquota_agent", "service"), misspelt)
