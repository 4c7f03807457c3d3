package org.kquota.node;

import org.kquota.fence.AgentDebts;
import org.kquota.metering.NodeQuotas;
import org.kquota.metering.ProduceRates;

import java.util.List;
import java.util.Map;

/** The broker's produce rates of exempt principals, by which agents get into debt. Used by the thread that decides. */
final class ExemptRates {
    /** Exempt principals come and go; their rates are read at each look. */
    private static final long FIND_NANOS = 1_000_000_000L;

    private record Metered(Map<String, String> tags, ProduceRates.Rate rate) {
    }

    private final NodeQuotas quotas;
    private final ProduceRates rates;
    private final AgentDebts debts;
    private List<Metered> exempt = List.of();
    private long foundNanos;

    ExemptRates(NodeQuotas quotas, ProduceRates rates, AgentDebts debts, long nanos) {
        this.quotas = quotas;
        this.rates = rates;
        this.debts = debts;
        this.foundNanos = nanos - FIND_NANOS;
    }

    /**
     * Their sum in bytes per second.
     *
     * @param windowSeconds the time that a rate is of
     * @param nanos         now
     */
    double look(double windowSeconds, long nanos) {
        if (nanos - foundNanos >= FIND_NANOS) {
            foundNanos = nanos;
            exempt = quotas.exemptTags().stream().map(tags -> new Metered(tags, rates.of(tags))).toList();
        }
        double quota = quotas.agentQuota();
        double sum = 0;
        for (Metered one : exempt) {
            double rate = one.rate.bytesPerSecond().orElse(0);
            debts.note(one.tags, rate, quota, windowSeconds, nanos);
            sum += rate;
        }
        debts.keep(nanos);
        return sum;
    }
}
