"""The one sentence of a cycle, in the same words for the journal, systemctl status and the history."""

from __future__ import annotations

from kquota.formats.sentences import decision_sentence
from kquota.guard.applied_state import AppliedState, AppliedUnknown
from kquota.guard.enforcement import Enforcement
from kquota.guard.inputs import ClusterNews
from kquota.policy.decision import Decision


def cycle_sentence(
    decision: Decision | None,
    applied: AppliedState | AppliedUnknown,
    enforced: Enforcement,
    news: ClusterNews,
) -> str:
    """Return what is decided and why, and how it is enforced."""
    if decision is None:
        return "STARTING: waiting for the first look at the cluster"
    cluster_topics = applied.cluster_topics if isinstance(applied, AppliedState) else None
    sentence = decision_sentence(decision, cluster_topics)
    if news.topic_refused is not None:
        sentence += f" ({news.topic_refused})"
    return f"{sentence} [{enforced.sentence}]"
