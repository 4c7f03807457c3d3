package org.kquota.node;

import static org.kquota.error.PluginLog.LOG;

import org.kquota.applied.AppliedState;
import org.kquota.config.KquotaConfig;
import org.kquota.config.LiveProperties;
import org.kquota.decision.BootClock;
import org.kquota.decision.DecisionFile;
import org.kquota.decision.Result;
import org.kquota.error.Errors;
import org.kquota.share.LedPartitions;
import org.kquota.share.PassedOnLeaders;
import org.kquota.threshold.Thresholds;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.function.LongSupplier;

/**
 * The leaders of partitions: those that the broker passes on, or those that the agent passes on in its file, whichever were seen last. So a leader that moves
 * counts at once, and a broker that has stopped passing them on (KAFKA-20746), or never does, is made up for by the agent.
 */
final class Leaders {
    static final String FILE = "leaders.json";
    /** The agent asks each half minute. */
    static final long FRESH_NANOS = 90_000_000_000L;

    /** Whose leaders are in use. */
    enum Source { NONE, BROKER, AGENT }

    private final LiveProperties properties;
    private final Thresholds thresholds;
    private final LimitResets resets;
    private final Errors errors;
    private final BootClock bootClock;
    private final LongSupplier nanoTime;
    private final Path path;
    private final DecisionFile file;
    private final MetadataFreshness ofBroker = new MetadataFreshness();
    private volatile InUse inUse = new InUse(Source.NONE, 0, null);
    private byte[] lastBytes;
    private String lastRefusal;

    private record InUse(Source source, long seenNanos, Integer topics) {
    }

    /** @param nanoTime the clock, as System.nanoTime() */
    Leaders(LiveProperties properties, Thresholds thresholds, LimitResets resets, Errors errors, BootClock bootClock, LongSupplier nanoTime) {
        this.properties = properties;
        this.thresholds = thresholds;
        this.resets = resets;
        this.errors = errors;
        this.bootClock = bootClock;
        this.nanoTime = nanoTime;
        this.path = properties.inForce().decisionFile().resolveSibling(FILE);
        this.file = new DecisionFile("leaders file", path);
    }

    /** Whether anything is divided by them. */
    boolean areNeeded() {
        return thresholds.inForce() != null || properties.inForce().groups().all().stream().anyMatch(group -> group.partitions() != null);
    }

    /** The broker has passed them on, on its metadata thread. */
    void ofBroker(LedPartitions partitions) {
        take(partitions, Source.BROKER, nanoTime.getAsLong());
        ofBroker.updated();
    }

    /** Looks at the agent's file; on a thread that may wait for it. */
    void read(String clusterId) {
        if (!areNeeded() || Files.notExists(path, LinkOption.NOFOLLOW_LINKS)) {
            return;
        }
        String refused = look(clusterId);
        if (refused != null && !refused.equals(lastRefusal)) {
            LOG.warn("the leaders file {} is not used: {}", path, refused);
            errors.count(Errors.Kind.METADATA, refused);
        }
        lastRefusal = refused;
    }

    private String look(String clusterId) {
        Result<byte[]> read = file.read();
        if (!read.isPresent()) {
            return read.reason();
        }
        if (Arrays.equals(read.value(), lastBytes)) {
            return lastRefusal;
        }
        lastBytes = read.value();
        Result<PassedOnLeaders> parsed = PassedOnLeaders.parse(lastBytes);
        return parsed.isPresent() ? take(parsed.value(), clusterId) : parsed.reason();
    }

    /** Uses them if they are the newest of this broker; returns why they are not to be used, or null. */
    private String take(PassedOnLeaders leaders, String clusterId) {
        KquotaConfig config = properties.inForce();
        if (leaders.brokerId() != config.nodeId() || clusterId != null && !clusterId.equals(leaders.clusterId())) {
            return "it is for broker " + leaders.brokerId() + " of cluster " + leaders.clusterId() + ", this is broker " + config.nodeId() + " of " + clusterId;
        }
        try {
            // A file of an earlier boot is no fault: the agent replaces it.
            long nanos = nanoTime.getAsLong();
            long ageMs = bootClock.uptimeMs() - leaders.seenUptimeMs();
            if (leaders.bootId().equals(bootClock.bootId()) && ageMs >= 0) {
                take(leaders.partitions(), Source.AGENT, nanos - ageMs * 1_000_000);
            }
            return null;
        } catch (IOException e) {
            return "its age is not known: " + e.getMessage();
        }
    }

    private synchronized void take(LedPartitions partitions, Source source, long seenNanos) {
        if (inUse.source != Source.NONE && seenNanos - inUse.seenNanos < 0) {
            return;
        }
        inUse = new InUse(source, seenNanos, partitions.topics().size());
        thresholds.update(partitions);
        if (properties.update(partitions)) {
            resets.limitsChanged();
        }
    }

    /** Why shares do not follow the leaders now, in one sentence, once for each time that they stop doing so; otherwise null. */
    String whyOld() {
        InUse now = inUse;
        boolean fresh = now.source == Source.AGENT && nanoTime.getAsLong() - now.seenNanos < FRESH_NANOS;
        return fresh || !areNeeded() ? null : ofBroker.whyOld(now.source != Source.NONE);
    }

    /** How many topics the cluster has, or null while that is not known. */
    Integer clusterTopics() {
        return inUse.topics;
    }

    /** Their part of the applied state, or null where nothing is divided by them. */
    AppliedState.Leaders report() throws IOException {
        InUse now = inUse;
        if (!areNeeded()) {
            return null;
        }
        Long seen = now.source == Source.NONE ? null : (Long) Math.max(0, bootClock.uptimeMs() - (nanoTime.getAsLong() - now.seenNanos) / 1_000_000);
        return new AppliedState.Leaders(now.source.name().toLowerCase(Locale.ROOT), seen);
    }
}
