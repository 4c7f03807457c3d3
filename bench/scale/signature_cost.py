"""The cost of signing and of verifying a report, by themselves."""

from __future__ import annotations

import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.scale.figures import SignatureCost
from bench.scale.reports import header_bytes, report, signatures
from kquota.formats.record_verifier import RecordVerifier, Signed
from kquota.formats.records import TopicRecord
from kquota.formats.signature_headers import SigningMode
from kquota.kafka.misplaced import partition_of
from kquota.trust.authorities import AuthorityFile
from testbed.loopback.certificates import CertificateAuthority

_TOPIC, _CLUSTER_ID, _PARTITIONS = "__kquota_volume_usage", "KNFZgGqwTBmh-wGvSa_PZw", 20
_BROKERS, _REPORTS_EACH = range(200), 10


def measure_signature(volumes: int) -> SignatureCost:
    """Sign reports as agents do, and judge them as a reader does that requires signatures."""
    with tempfile.TemporaryDirectory() as folder:
        authority = CertificateAuthority(Path(folder))
        sign = signatures(authority, _CLUSTER_ID, _TOPIC, _PARTITIONS, _BROKERS)
        admission = RecordVerifier(SigningMode.REQUIRED, _TOPIC, AuthorityFile(authority.certificate))
        admission.cluster_id, now = _CLUSTER_ID, datetime.now(UTC)
        signing, verifying, header_sizes = list[float](), list[list[float]](), list[int]()
        for broker_id in _BROKERS:
            value, key = report(broker_id, volumes, now), str(broker_id).encode()
            verifying.append([])
            for _ in range(_REPORTS_EACH):
                begun = time.thread_time()
                headers = tuple(sign(broker_id, value))
                signed = time.thread_time()
                record = TopicRecord(key, value, None, partition_of(key, _PARTITIONS), headers)
                before = time.thread_time()
                verdict = admission.judge(record, now)
                verifying[-1].append(time.thread_time() - before)
                signing.append(signed - begun)
                header_sizes.append(header_bytes(headers))
                if not isinstance(verdict, Signed):
                    raise RuntimeError(f"the report of broker {broker_id} is refused: {verdict}")
        return SignatureCost(
            len(value),
            max(header_sizes),
            min(signing),
            min(seconds for of_broker in verifying for seconds in of_broker[1:]),
            min(of_broker[0] for of_broker in verifying),
        )
