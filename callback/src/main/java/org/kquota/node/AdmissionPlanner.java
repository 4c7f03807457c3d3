package org.kquota.node;

import org.kquota.admission.BrokerLandedBytes;
import org.kquota.admission.LandedBytes;
import org.kquota.admission.LandedRatio;
import org.kquota.admission.Target;
import org.kquota.govern.Governor;
import org.kquota.govern.ProduceRates;
import org.kquota.metering.NodeQuotas;

import java.util.List;

/** Makes the budgets of admission by the broker's own counters. Used by the thread that decides. */
final class AdmissionPlanner {
    /** Meters of topics come and go; to look through all of them takes a moment. */
    private static final long FIND_NANOS = 5_000_000_000L;
    private static final long EXEMPT_NANOS = 1_000_000_000L;

    private final NodeQuotas quotas;
    private final ProduceRates rates;
    private final BrokerLandedBytes landed = new BrokerLandedBytes();
    private final LandedRatio ratio = new LandedRatio();
    private boolean found;
    private long foundNanos;
    private long exemptNanos;
    private List<ProduceRates.Rate> exempt = List.of();
    private long landedBefore;

    AdmissionPlanner(NodeQuotas quotas, ProduceRates rates, long nanos) {
        this.quotas = quotas;
        this.rates = rates;
        this.foundNanos = nanos - FIND_NANOS;
        this.exemptNanos = nanos - EXEMPT_NANOS;
    }

    LandedBytes landed() {
        return landed;
    }

    /** Whether what lands can be counted, so that admission can hold producers. */
    boolean isPossible(long nanos) {
        if (nanos - foundNanos >= FIND_NANOS) {
            foundNanos = nanos;
            found = find();
        }
        return found;
    }

    private boolean find() {
        try {
            return landed.find();
        } catch (LinkageError e) {
            // A broker that counts by another library: the governor holds producers there.
            return false;
        }
    }

    /** After a step of the governor, before what it decided holds for requests. */
    void plan(Governor governor, double factor, double observedRate, double seconds, long nanos) {
        long bytes = landed.bytes();
        double exemptRate = exemptRate(nanos);
        Target target = governor.target(factor, ratio.get(), exemptRate);
        if (target != null) {
            quotas.admission().plan(target, bytes, nanos);
            quotas.admitting(true);
        } else if (!quotas.admission().inForce()) {
            ratio.add(bytes - landedBefore - exemptRate * seconds, observedRate * seconds, seconds);
        }
        landedBefore = bytes;
    }

    /** Once requests go by something else. */
    void endUnlessWanted(Governor governor) {
        if (governor.target(1, 1, 0) == null && quotas.admission().inForce()) {
            quotas.admission().end();
            quotas.admitting(false);
        }
    }

    private double exemptRate(long nanos) {
        if (nanos - exemptNanos >= EXEMPT_NANOS) {
            exemptNanos = nanos;
            exempt = quotas.exemptTags().stream().map(rates::of).toList();
        }
        return exempt.stream().mapToDouble(rate -> rate.bytesPerSecond().orElse(0)).sum();
    }
}
