"""Each alert: when it is silent, when it fires, and when it is over.

A sample comes every 15 s, so "0x8 1x40 0x40" is two minutes of 0, ten of 1, and ten of 0 again.
"""

from __future__ import annotations

from tests.monitoring.promtool import HERE, Case

INFO = {'kquota_broker_info{broker="1", cluster_id="c"}': "1x200"}
HELD = {'kquota_applied_mechanism{mechanism="governor"}': "1x200"}
DATA = 'volume="/dev/sdb1", mount_point="/data/1", role="data"'
VOLUME = {"volume": "/dev/sdb1", "mount_point": "/data/1", "role": "data"} | HERE
WHERE = "Volume /dev/sdb1 (/data/1) of kafka1:9464"
RISES_AND_FALLS = "0x8 1x40 0x60"
"""0 until 2:00, 1 from 2:15 to 12:15, then 0."""


def flag(alert: str, series: str, summary: str, labels: dict[str, str] = HERE, *, info: bool = False) -> Case:
    """An alert on a series that is 1 where something is wrong."""
    given = {series: RISES_AND_FALLS} | (INFO if info else {})
    return Case(alert, given, "2m", "9m", "14m", labels, summary)


def counter(alert: str, series: str, summary: str, labels: dict[str, str] | None = None) -> Case:
    """An alert on a counter that goes up for a while."""
    given = {series: "0x8 1+1x40 41x100"}
    return Case(alert, given, "2m", "9m", "30m", HERE | (labels or {}), summary)


def down(alert: str, series: str, summary: str) -> Case:
    """An alert on a series that is 0 where something is wrong."""
    return Case(alert, {series: "1x8 0x40 1x60"}, "2m", "9m", "14m", HERE, summary)


CASES = (
    Case(
        "KquotaPaused",
        {'kquota_applied_state{state="PAUSE"}': RISES_AND_FALLS} | HELD | INFO,
        "2m",
        "9m",
        "14m",
        {"cluster_id": "c"},
        "Producers of cluster c are paused",
    ),
    Case(
        "KquotaThrottling",
        {"kquota_applied_factor_ratio": "1x8 0.42x40 1x60"} | HELD | INFO,
        "6m",
        "9m",
        "14m",
        {"cluster_id": "c"},
        "Producers of cluster c are slowed down to 42%",
    ),
    flag(
        "KquotaBrokerUndetermined",
        'kquota_undetermined{broker="7", cause="stale"}',
        "The state of broker 7 of cluster c is not known (stale)",
        {"cluster_id": "c", "broker": "7", "cause": "stale"},
        info=True,
    ),
    Case(
        "KquotaBrokerSilent",
        {'kquota_covered_until_timestamp_seconds{broker="7"}': "_x8 9000x40 _x60"} | INFO,
        "3m",
        "9m",
        "20m",
        {"cluster_id": "c", "broker": "7"},
        "Broker 7 of cluster c does not report",
    ),
    Case(
        "KquotaHoldInForce",
        {
            'kquota_order_until_timestamp_seconds{order="hold", broker="", action="pause", actor="alice",'
            ' reason="r"}': "_x8 9000x40 _x60"
        }
        | INFO,
        "2m",
        "9m",
        "20m",
        {"cluster_id": "c", "action": "pause", "actor": "alice", "reason": "r"},
        "Cluster c is held at pause by alice (r)",
        "Until 1970-01-01 02:30:00 +0000 UTC the volumes of other brokers decide nothing.",
    ),
    Case(
        "KquotaOrderInForce",
        {
            'kquota_order_until_timestamp_seconds{order="quarantine", broker="3", action="", actor="alice",'
            ' reason="r"}': "_x8 9000x40 _x60"
        }
        | INFO,
        "2m",
        "9m",
        "20m",
        {"cluster_id": "c", "order": "quarantine", "broker": "3", "actor": "alice", "reason": "r"},
        "Broker 3 of cluster c is in quarantine by alice (r)",
        "Until 1970-01-01 02:30:00 +0000 UTC. A quarantined broker has no vote; a broker in maintenance need"
        " not report.",
    ),
    flag(
        "KquotaHeldOpenOverHardLimit",
        "kquota_held_open_over_hard_limit",
        "An operator holds cluster c open although a volume is over its hard limit",
        {"cluster_id": "c"},
        info=True,
    ),
    flag(
        "KquotaReportDoesNotCount",
        "kquota_unvouched_brokers",
        "The usage topic of cluster c has reports of brokers that the cluster never listed",
        {"cluster_id": "c"},
        info=True,
    ),
    Case(
        "KquotaScopeWidened",
        {'kquota_scope_widened{cause="no-list"}': "_x8 1x60 _x60"} | INFO,
        "11m",
        "14m",
        "24m",
        {"cluster_id": "c", "cause": "no-list"},
        "Cluster c holds producers to more topics than those on volumes over a limit (no-list)",
    ),
    Case(
        "KquotaScopeNotApplied",
        {
            'kquota_applied_scope{scope="cluster"}': "1x8 1x60 0x60",
            'kquota_applied_scope{scope="topics"}': "0x8 0x60 1x60",
            'kquota_topics_held{state="PAUSE"}': "_x8 37x120",
            'kquota_topics_held{state="THROTTLE"}': "_x8 0x120",
        },
        "11m",
        "14m",
        "20m",
        {"scope": "cluster"} | HERE,
        "The broker on kafka1:9464 cannot hold by topic although the decision is about single topics",
    ),
    flag(
        "KquotaTopicRefused",
        'kquota_undetermined{broker="", cause="topic-refused"}',
        "The usage topic of cluster c has settings under which reports could be lost",
        {"cluster_id": "c"},
        info=True,
    ),
    Case(
        "KquotaVolumeOverHardLimit",
        {f"kquota_volume_headroom_ratio{{{DATA}}}": "0.1x8 0x40 0.2x60"},
        "2m",
        "9m",
        "14m",
        VOLUME,
        f"{WHERE} is over its hard limit",
    ),
    Case(
        "KquotaVolumeOverSoftLimit",
        {f"kquota_volume_headroom_ratio{{{DATA}}}": "1x8 0.5x40 1x60"},
        "6m",
        "9m",
        "14m",
        VOLUME,
        f"{WHERE} is over its soft limit",
        "50% of the distance to its hard limit is left.",
    ),
    Case(
        "KquotaVolumeFullWithinADay",
        {f"kquota_volume_seconds_to_hard{{{DATA}}}": "90000x8 7200x160 90000x20"},
        "20m",
        "40m",
        "44m",
        VOLUME,
        f"{WHERE} reaches its hard limit in 2h 0m 0s",
    ),
    Case(
        "KquotaVolumeShortOfInodes",
        {
            f"kquota_volume_inodes_free{{{DATA}}}": "60x8 49x40 60x60",
            f"kquota_volume_soft_limit_inodes_free{{{DATA}}}": "50x110",
        },
        "6m",
        "9m",
        "14m",
        VOLUME,
        f"{WHERE} is short of inodes",
        "49 files can still be made. Without a free inode the broker takes its log dirs offline,"
        " although bytes are free.",
    ),
    flag(
        "KquotaGrowingInPause",
        f"kquota_volume_growing_in_pause{{{DATA}}}",
        f"{WHERE} grows although producers are paused",
        VOLUME,
    ),
    flag(
        "KquotaLogDirOffline",
        f'kquota_volume_status{{{DATA}, status="offline"}}',
        "The broker on kafka1:9464 has taken the log dirs of /dev/sdb1 (/data/1) offline",
        VOLUME | {"status": "offline"},
    ),
    flag(
        "KquotaVolumeFailed",
        f'kquota_volume_status{{{DATA}, status="failed"}}',
        f"{WHERE} cannot be read",
        VOLUME | {"status": "failed"},
    ),
    Case(
        "KquotaMetadataVolumeOverLimit",
        {
            'kquota_volume_headroom_ratio{volume="/dev/sda1", mount_point="/", role="metadata"}': (
                "1x8 0.9x40 1x60"
            )
        },
        "2m",
        "9m",
        "14m",
        {"volume": "/dev/sda1", "mount_point": "/", "role": "metadata"} | HERE,
        "The metadata volume /dev/sda1 (/) of kafka1:9464 is over its soft limit",
    ),
    Case(
        "KquotaDecidedNotApplied",
        {
            'kquota_state{state="PAUSE"}': "1x200",
            'kquota_applied_state{state="PAUSE"}': "1x8 0x40 1x60",
            'kquota_applied_state{state="OPEN"}': "0x8 1x40 0x60",
            "kquota_enforcing": "1x200",
        },
        "2m",
        "9m",
        "14m",
        {"state": "PAUSE"} | HERE,
        "kafka1:9464 has decided PAUSE, and its broker does not apply it",
    ),
    Case(
        "KquotaBrokenGlass",
        {'kquota_applied_mode{mode="observe"}': "0x8 1x60 0x60", "kquota_enforcing": "1x200"},
        "10m",
        "12m",
        "18m",
        HERE | {"mode": "observe"},
        "The broker on kafka1:9464 holds no producer although enforcing is decided",
    ),
    down(
        "KquotaEnforcementUnverified",
        "kquota_applied_known",
        "The plug-in of the broker on kafka1:9464 does not report its state",
    ),
    Case(
        "KquotaNotEnforcing",
        {"kquota_enforcing": "1x8 0x6000 1x100"},
        "20h",
        "25h",
        "25h20m",
        HERE,
        "kquota on kafka1:9464 has only observed for a day",
    ),
    counter(
        "KquotaDecisionLost",
        'kquota_applied_errors_total{kind="decision"}',
        "The plug-in of the broker on kafka1:9464 has lost the decision",
        {"kind": "decision"},
    ),
    counter(
        "KquotaPluginErrors",
        'kquota_applied_errors_total{kind="request"}',
        "The plug-in of the broker on kafka1:9464 reports errors",
    ),
    down("KquotaAgentDown", "up", "The agent on kafka1:9464 does not answer"),
    Case(
        "KquotaNotScraped",
        # Without samples from 2:15 to 17:15; the last one counts for five minutes.
        {"kquota_last_cycle_timestamp_seconds": "0+15x8 _x60 1035+15x40"},
        "11m",
        "14m",
        "19m",
        {},
        "Prometheus scrapes no agent of kquota",
    ),
    Case(
        "KquotaAgentStale",
        # A timestamp that keeps up with the clock of the test, stands still, and keeps up again.
        {"kquota_last_cycle_timestamp_seconds": "0+15x8 120x40 735+15x60"},
        "2m",
        "9m",
        "14m",
        HERE,
        "The agent on kafka1:9464 has completed no cycle for 7m 0s",
    ),
    down(
        "KquotaNotPublishing",
        "kquota_connected",
        "The agent on kafka1:9464 cannot publish the state of its broker",
    ),
    counter(
        "KquotaDecisionNotWritten",
        "kquota_decision_write_errors_total",
        "The agent on kafka1:9464 cannot write its decision",
    ),
    counter(
        "KquotaStateNotWritten",
        'kquota_file_write_errors_total{file="state.json"}',
        "The agent on kafka1:9464 cannot write state.json",
        {"file": "state.json"},
    ),
    flag("KquotaRivalAgent", "kquota_rival_agent", "Another agent claims the broker of kafka1:9464"),
    Case(
        "KquotaClockBehind",
        {'kquota_clock_behind_seconds{broker="7"}': "0x8 75x40 0x60"} | INFO,
        "2m",
        "9m",
        "14m",
        {"cluster_id": "c", "broker": "7"},
        "The clock of broker 7's host is 1m 15s behind",
    ),
    counter("KquotaClockSkew", "kquota_clock_jumps_total", "A clock is wrong, as kafka1:9464 sees it"),
    counter(
        "KquotaMalformedRecords",
        'kquota_records_total{result="malformed"}',
        "The agent on kafka1:9464 reads malformed records",
        {"result": "malformed"},
    ),
    flag(
        "KquotaLastGoodConfiguration",
        "kquota_config_last_good",
        "The agent on kafka1:9464 runs with an earlier configuration, because the present one is refused",
    ),
    Case(
        "KquotaSigningAuthorityExpires",
        # 60 days from the beginning, then 20, then 60 again: another authority.
        {
            "kquota_signing_authority_expiry_timestamp_seconds": "5184000x8 1728540x40 5184000x60",
        },
        "2m",
        "9m",
        "14m",
        HERE,
        "The authority of the agents' certificates, as kafka1:9464 has it, ends in 20d 0h 0m 0s",
    ),
    Case(
        "KquotaCertificateExpires",
        # 30 days from the beginning, then two, then 30 again: rotated.
        {
            "kquota_client_certificate_expiry_timestamp_seconds": "2592000x8 173340x40 2592000x60",
        },
        "2m",
        "9m",
        "14m",
        HERE,
        "The client certificate of the agent on kafka1:9464 expires in 2d 0h 0m 0s",
    ),
)
