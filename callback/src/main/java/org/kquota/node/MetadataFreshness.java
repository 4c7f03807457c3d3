package org.kquota.node;

import java.lang.management.ManagementFactory;
import java.util.OptionalDouble;

import javax.management.JMException;
import javax.management.JMRuntimeException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/**
 * Whether the last update of the broker's metadata is still true. Kafka fails to pass on updates while another broker is down (KAFKA-20746), and
 * counts that as a failure to apply metadata. Updated on the broker's metadata threads, asked by the decision thread.
 */
final class MetadataFreshness {
    private static final String NAME = "kafka.server:type=broker-metadata-metrics";
    private static final String ATTRIBUTE = "metadata-apply-error-count";
    private static final String WHY = ", because the broker could not pass on its metadata (KAFKA-20746), nor has the agent passed on the leaders lately";

    /** How many failures there had been. */
    private record Update(OptionalDouble failures) {
    }

    private static final Update NEVER = new Update(OptionalDouble.empty());

    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    private volatile Update latest = NEVER;
    private Update oldSince;

    /** The broker has passed on its metadata. */
    void updated() {
        latest = new Update(failures());
    }

    /**
     * Why shares may be wrong, in one sentence, once for each time that they become so; otherwise null.
     *
     * @param known whether leaders were known at all, perhaps from another source
     */
    String whyOld(boolean known) {
        Update last = latest;
        if (last == oldSince || last != NEVER && !failedSince(last)) {
            return null;
        }
        oldSince = last;
        return (known ? "shares of totals and of thresholds are those of before"
            : "groups have the whole of their totals, and topics without a threshold of their own none") + WHY;
    }

    private boolean failedSince(Update last) {
        OptionalDouble now = failures();
        return now.isPresent() && last.failures().isPresent() && now.getAsDouble() > last.failures().getAsDouble();
    }

    /** How often the broker failed to apply metadata since it started, or nothing where it does not report that. */
    private OptionalDouble failures() {
        try {
            return server.getAttribute(new ObjectName(NAME), ATTRIBUTE) instanceof Number count ? OptionalDouble.of(count.doubleValue())
                : OptionalDouble.empty();
        } catch (JMException | JMRuntimeException e) {
            return OptionalDouble.empty();
        }
    }
}
