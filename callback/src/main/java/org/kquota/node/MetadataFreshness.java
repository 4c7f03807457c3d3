package org.kquota.node;

import java.lang.management.ManagementFactory;
import java.util.OptionalDouble;

import javax.management.JMException;
import javax.management.JMRuntimeException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/**
 * Whether what the broker told of its metadata still holds. Kafka fails to tell while another broker is down (KAFKA-20746), and
 * counts that among what it could not apply. Told on the broker's metadata threads, asked by the decision thread.
 */
final class MetadataFreshness {
    private static final String NAME = "kafka.server:type=broker-metadata-metrics";
    private static final String ATTRIBUTE = "metadata-apply-error-count";
    private static final String WHY = ", because the broker could not tell of its metadata (KAFKA-20746)";

    /** How many failures there had been. */
    private record Told(OptionalDouble failures) {
    }

    private static final Told NEVER = new Told(OptionalDouble.empty());

    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    private volatile Told told = NEVER;
    private Told oldSince;

    /** The broker has told of its metadata. */
    void told() {
        told = new Told(failures());
    }

    /** Why shares may be wrong, in one sentence, once for each time that they become so; otherwise null. */
    String whyOld() {
        Told last = told;
        if (last == oldSince) {
            return null;
        }
        if (last == NEVER) {
            oldSince = last;
            return "groups have the whole of their totals, and topics without a threshold of their own none" + WHY;
        }
        OptionalDouble now = failures();
        if (now.isPresent() && last.failures().isPresent() && now.getAsDouble() > last.failures().getAsDouble()) {
            oldSince = last;
            return "shares of totals and of thresholds are those of before" + WHY;
        }
        return null;
    }

    /** How often the broker failed to apply metadata since it started, or nothing where it does not say. */
    private OptionalDouble failures() {
        try {
            return server.getAttribute(new ObjectName(NAME), ATTRIBUTE) instanceof Number count ? OptionalDouble.of(count.doubleValue())
                : OptionalDouble.empty();
        } catch (JMException | JMRuntimeException e) {
            return OptionalDouble.empty();
        }
    }
}
