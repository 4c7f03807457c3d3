package org.kquota.node;

import static org.kquota.error.PluginLog.LOG;

import org.apache.kafka.server.quota.ClientQuotaType;
import org.kquota.config.KquotaConfig;
import org.kquota.error.Errors;
import org.kquota.metering.NodeQuotas;
import org.kquota.metering.ProduceRates;
import org.kquota.quota.TagSet;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * Runs once a minute: warns of settings that keep the plug-in from its promises, and forgets clients that have left.
 * Used by one thread only: the one that decides, on a controller the one that brings metadata.
 */
final class PeriodicChecks {
    private static final int EACH_SECONDS = 60;
    /** A rate that was not there is looked for again after this long: a request asks for its tags before the broker meters it. */
    private static final int AGAIN_SECONDS = 5;
    private static final String RATES_UNSEEN = "produce rates are not visible over JMX, so a pause leaks more and mutes can become long: ";

    private final NodeQuotas quotas;
    private final ProduceRates rates;
    private final Errors errors;
    private final Supplier<String> whySharesAreOld;
    private final Set<String> loggedWriters = new HashSet<>();
    private boolean tiered;
    private int lastSeconds;
    /** The tag sets without rates at the last look, though the broker had metered them. */
    private List<TagSet> unseen = List.of();

    /** @param whySharesAreOld why shares do not follow the leaders of partitions now, or null */
    PeriodicChecks(NodeQuotas quotas, ProduceRates rates, Errors errors, Supplier<String> whySharesAreOld) {
        this.quotas = quotas;
        this.rates = rates;
        this.errors = errors;
        this.whySharesAreOld = whySharesAreOld;
    }

    /** Warns of faults that the broker's configuration shows. */
    void begin(KquotaConfig config) {
        tiered = config.isTiered();
        if (!config.hasJmxReporter()) {
            warn(Errors.Kind.GOVERNOR, RATES_UNSEEN + "metric.reporters is set and does not name org.apache.kafka.common.metrics.JmxReporter");
        }
    }

    /** To be called often; most of it is done once a minute. */
    void keep(int nowSeconds) {
        quotas.recount();
        warnOfHeldMetadataWriter();
        if (!unseen.isEmpty() && nowSeconds - lastSeconds >= AGAIN_SECONDS) {
            warnOfUnseenRates();
        }
        if (nowSeconds - lastSeconds < EACH_SECONDS) {
            return;
        }
        lastSeconds = nowSeconds;
        try {
            unseen = unseen(quotas.tagSets(ClientQuotaType.PRODUCE).all().stream()
                .filter(set -> set.isMeteredSince(nowSeconds - EACH_SECONDS / 2)));
        } catch (RuntimeException e) {
            errors.count(Errors.Kind.GOVERNOR, e);
        }
        quotas.forgetUnused();
        String old = whySharesAreOld.get();
        if (old != null) {
            warn(Errors.Kind.METADATA, old);
        }
    }

    /** Segments are freed only once their metadata is written, so a pause must not hold that, or it may never end. */
    private void warnOfHeldMetadataWriter() {
        String principal = tiered ? quotas.metadataWriterNotExempt() : null;
        if (principal != null && loggedWriters.add(principal)) {
            warn(Errors.Kind.TIERED_STORAGE, "tiered storage writes its metadata as " + principal + ", which is not exempt, so a pause holds the uploads "
                + "that would free space: add it to " + KquotaConfig.EXEMPT_PRINCIPALS);
        }
    }

    private List<TagSet> unseen(Stream<TagSet> metered) {
        return metered.filter(set -> rates.bytesPerSecond(set.tags()).isEmpty()).toList();
    }

    /** The broker keeps the rate of a client that it has metered for an hour. */
    private void warnOfUnseenRates() {
        List<TagSet> before = unseen;
        unseen = List.of();
        try {
            if (!unseen(before.stream()).isEmpty()) {
                warn(Errors.Kind.GOVERNOR, RATES_UNSEEN + "metric.reporters must name org.apache.kafka.common.metrics.JmxReporter, and "
                    + "metrics.jmx.exclude must not match kafka.server:type=Produce");
            }
        } catch (RuntimeException e) {
            errors.count(Errors.Kind.GOVERNOR, e);
        }
    }

    private void warn(Errors.Kind kind, String message) {
        LOG.warn("{}", message);
        errors.count(kind, message);
    }
}
