package org.kquota.node;

import org.kquota.admission.AffectedTopics;
import org.kquota.admission.BrokerLandedBytes;
import org.kquota.admission.LandedRatio;
import org.kquota.admission.Target;
import org.kquota.decision.EffectiveDecision;
import org.kquota.decision.State;
import org.kquota.govern.Figures;
import org.kquota.govern.Governor;
import org.kquota.metering.NodeQuotas;

/** Makes the budgets of admission by the broker's own counters. Used by the thread that decides. */
final class AdmissionPlanner {
    /** Meters of topics come and go; to look through all of them takes a moment. */
    private static final long FIND_NANOS = 5_000_000_000L;

    private final NodeQuotas quotas;
    private final BrokerLandedBytes landed = new BrokerLandedBytes();
    private final LandedRatio ratio = new LandedRatio();
    private final AffectedTopics stakes = new AffectedTopics();
    private boolean byTopic;
    private boolean found;
    private Long foundNanos;
    private long landedBefore;

    AdmissionPlanner(NodeQuotas quotas) {
        this.quotas = quotas;
    }

    /** Whether what lands can be counted, so that admission can hold producers. */
    boolean isPossible(long nanos) {
        if (foundNanos == null || nanos - foundNanos >= FIND_NANOS) {
            found = find(foundNanos == null ? 0 : (nanos - foundNanos) / 1e9);
            foundNanos = nanos;
        }
        return found;
    }

    private boolean find(double seconds) {
        EffectiveDecision now = quotas.decision().now();
        try {
            return landed.find(seconds, topic -> now.enforced() != State.OPEN && now.factor(topic) < 1);
        } catch (LinkageError e) {
            // A broker that counts by another library: the governor holds producers there.
            return false;
        }
    }

    /**
     * After a step of the governor, before what it decided holds for requests.
     *
     * @param exemptRate rate of exempt principals, bytes per second
     */
    void plan(Governor governor, EffectiveDecision next, Figures figures, double exemptRate, double seconds, long nanos) {
        long bytes = landed.bytes();
        Target target = governor.target(next.governedFactor(), ratio.get(), exemptRate);
        look(next);
        if (target != null) {
            plan(target, nanos);
        } else if (!quotas.admission().inForce()) {
            ratio.add(bytes - landedBefore - exemptRate * seconds, figures.observedRate() * seconds, seconds);
        }
        landedBefore = bytes;
    }

    /** By topic, what counts has no unit in common with all that lands: another scope begins another plan. */
    private void look(EffectiveDecision next) {
        if (byTopic != (next.topics() != null)) {
            byTopic = !byTopic;
            stakes.clear();
            quotas.admission().end();
        }
        if (byTopic) {
            stakes.look(next.topics(), landed, ratio.get());
        }
    }

    private void plan(Target target, long nanos) {
        if (byTopic) {
            // Summed here: a request thread has no time to look at each topic.
            long landedThere = stakes.landedBytes();
            quotas.admission().plan(stakes.target(target), () -> landedThere, nanos);
        } else {
            quotas.admission().plan(target, landed, nanos);
        }
    }

    /** Once requests go by something else. */
    void endUnlessWanted(Governor governor) {
        if (governor.target(1, 1, 0) == null && quotas.admission().inForce()) {
            quotas.admission().end();
        }
    }
}
