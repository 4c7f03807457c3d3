package org.kquota.group;

import org.apache.kafka.server.quota.ClientQuotaType;
import org.kquota.quota.StockQuotas.Pair;
import org.kquota.share.LedPartitions;
import org.kquota.share.PartitionShare;

import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** Clients that share their quotas, whichever of them uses them. */
public final class Group {
    private final String name;
    private final Pair meteredAs;
    private final PartitionShare share;
    private final GroupLimit[] limits = new GroupLimit[ClientQuotaType.values().length];
    private LongAdder refusals = new LongAdder();

    /**
     * @param share  the share by which limits of the whole cluster are divided, or null where there are none
     * @param limits by quota type; for the other types its members are in no group
     */
    public Group(String name, PartitionShare share, Map<ClientQuotaType, GroupLimit> limits) {
        this.name = name;
        this.share = share;
        this.meteredAs = new Pair(Groups.TAG_PREFIX + name, "");
        limits.forEach((type, limit) -> this.limits[type.ordinal()] = limit);
    }

    public String name() {
        return name;
    }

    /** The pair under which its members are metered; the user is one that no client can have. */
    public Pair meteredAs() {
        return meteredAs;
    }

    /** Whether it has a limit of this type. */
    public boolean limits(ClientQuotaType type) {
        return limits[type.ordinal()] != null;
    }

    /** Its limit on this broker, or null if it has none of this type. */
    public Double limit(ClientQuotaType type) {
        GroupLimit limit = limits[type.ordinal()];
        return limit == null ? null : (Double) limit.here();
    }

    /** A produce request of one of its members was refused. */
    public void refused() {
        refusals.increment();
    }

    /** Produce requests of its members refused since the broker started. */
    public long refusals() {
        return refusals.sum();
    }

    /** Continues the counts of the group before it. To be called before requests come. */
    void countOnFrom(Group before) {
        refusals = before.refusals;
    }

    /** The partitions that its totals are shared by, or null where it has none. */
    public LedPartitions.Count partitions() {
        return share == null ? null : share.count();
    }

    /** Takes over the leaders of partitions; returns whether a limit has changed. */
    boolean update(LedPartitions partitions) {
        return share != null && share.update(partitions);
    }

    @Override
    public String toString() {
        return name;
    }
}
