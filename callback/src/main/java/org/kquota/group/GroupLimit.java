package org.kquota.group;

import org.kquota.quota.ByteRate;
import org.kquota.share.PartitionShare;

/**
 * The limit of a group for one quota type on this broker.
 *
 * @param amount in the unit of the type: on each broker, or in the whole cluster where there is a share
 * @param share  this broker's share of the cluster's amount, or null for an amount on each broker
 */
public record GroupLimit(double amount, PartitionShare share) {
    /** The limit on this broker now; a share, which is of bytes per second, is no less than the least quota. */
    double here() {
        return share == null ? amount : Math.max(ByteRate.MIN, amount * share.ratio());
    }
}
