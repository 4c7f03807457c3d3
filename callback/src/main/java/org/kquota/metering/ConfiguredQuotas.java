package org.kquota.metering;

import org.apache.kafka.server.quota.ClientQuotaType;
import org.kquota.group.Group;
import org.kquota.group.Groups;
import org.kquota.quota.Quotas;
import org.kquota.quota.StaticQuotas;
import org.kquota.quota.StockQuotas.Pair;
import org.kquota.quota.StockQuotas;

/**
 * All quotas of one type in their order: those set with the standard tools that name the client, then the client's group,
 * then those set with the standard tools by default, then the static ones. Where there are neither groups nor static
 * quotas this does the same as the broker's built-in callback.
 */
public final class ConfiguredQuotas implements Quotas {
    private final ClientQuotaType type;
    private final StockQuotas dynamic;
    private final StaticQuotas fixed;
    private final Groups groups;

    public ConfiguredQuotas(ClientQuotaType type, StockQuotas dynamic, StaticQuotas fixed, Groups groups) {
        this.type = type;
        this.dynamic = dynamic;
        this.fixed = fixed;
        this.groups = groups;
    }

    /** Those that were set with the standard tools. */
    public StockQuotas dynamic() {
        return dynamic;
    }

    /** The pair under which a client of this group is metered, or of no group where it is null. */
    public Pair meteredAs(Group group, String sanitizedUser, String clientId) {
        return group != null && group.limits(type) && !dynamic.names(sanitizedUser, clientId)
            ? group.meteredAs() : meteredAs(sanitizedUser, clientId);
    }

    @Override
    public Pair meteredAs(String sanitizedUser, String clientId) {
        Pair pair = dynamic.meteredAs(sanitizedUser, clientId);
        if (fixed.isEmpty() || dynamic.limit(pair.user(), pair.clientId()) != null || fixed.limit(clientId) == null) {
            return pair;
        }
        return new Pair("", clientId);
    }

    @Override
    public Double limit(String user, String clientId) {
        Group group = groups.ofTag(user);
        if (group != null) {
            return group.limit(type);
        }
        Double limit = dynamic.limit(user, clientId);
        return limit != null || !user.isEmpty() ? limit : fixed.limit(clientId);
    }
}
