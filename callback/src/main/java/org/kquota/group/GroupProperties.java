package org.kquota.group;

import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;

import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.LambdaValidator;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.kquota.quota.ByteRate;
import org.kquota.quota.ExemptPrincipals;
import org.kquota.quota.QuotaProperties;
import org.kquota.share.PartitionShare;

import java.util.EnumMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The broker properties of the quota groups, kquota.quota.group.NAME.*, and the checks that they do not contradict each other. */
public final class GroupProperties {
    static final String PRINCIPALS = "principals";
    static final String CLIENT_IDS = "client.ids";
    static final String PRODUCE = "produce";
    static final String FETCH = "fetch";
    static final String REQUEST = "request";
    static final String PRODUCE_TOTAL = "produce.total";
    static final String FETCH_TOTAL = "fetch.total";
    static final String TOPICS = "topics";
    public static final String KEYS = "{" + String.join(", ", PRINCIPALS, CLIENT_IDS, PRODUCE, FETCH, REQUEST, PRODUCE_TOTAL, FETCH_TOTAL, TOPICS) + "}";

    private static final String MEMBERS = "exact names, prefixes that end in *, patterns that begin with ~, separated by semicolons; or empty";
    private static final java.util.regex.Pattern NAME = java.util.regex.Pattern.compile("[A-Za-z0-9._-]{1,64}");

    private GroupProperties() {
    }

    public static String prefix(String group) {
        return QuotaProperties.PREFIX + "group." + group + ".";
    }

    /** The properties of one group. */
    public static ConfigDef definition(String group) {
        String prefix = prefix(group);
        return new ConfigDef()
            .define(prefix + PRINCIPALS, Type.STRING, "", LambdaValidator.with((name, value) -> { }, () -> MEMBERS), Importance.MEDIUM,
                "Principals of the group, as Type:name, for example User:alice;User:etl-*;~User:CN=app[0-9]+,O=x. A client is a member by its principal "
                    + "or, where its principal is in no group, by its client id.")
            .define(prefix + CLIENT_IDS, Type.STRING, "", LambdaValidator.with((name, value) -> { }, () -> MEMBERS), Importance.MEDIUM,
                "Client ids of the group. Any client can choose any client id, so they only separate clients that keep to their own.")
            .define(prefix + PRODUCE, Type.STRING, "", QuotaProperties.rate(), Importance.MEDIUM,
                "Produce quota of the group on each broker, in bytes per second.")
            .define(prefix + FETCH, Type.STRING, "", QuotaProperties.rate(), Importance.MEDIUM,
                "Fetch quota of the group on each broker, in bytes per second.")
            .define(prefix + REQUEST, Type.STRING, "", QuotaProperties.checked(GroupProperties::percentage, "a percentage above 0, or empty"), Importance.MEDIUM,
                "Request quota of the group on each broker, in per cent of a thread's time, as Kafka's request_percentage.")
            .define(prefix + PRODUCE_TOTAL, Type.STRING, "", QuotaProperties.rate(), Importance.MEDIUM,
                "Produce quota of the group in the whole cluster, in bytes per second: each broker gives the share of the partitions that it leads, of those "
                    + "that the topics property selects. Instead of produce.")
            .define(prefix + FETCH_TOTAL, Type.STRING, "", QuotaProperties.rate(), Importance.MEDIUM,
                "Fetch quota of the group in the whole cluster, in bytes per second, shared in the same way. Instead of fetch.")
            .define(prefix + TOPICS, Type.STRING, "", QuotaProperties.checked(GroupProperties::pattern, "a pattern (RE2), or empty"), Importance.MEDIUM,
                "Pattern of the topics that the totals are shared by: the whole name has to match, for example orders-.* . Required with a total.");
    }

    /**
     * The groups in a broker's properties.
     *
     * @param names  their names, in order
     * @param exempt principals that no quota holds
     * @throws ConfigException if a group is incomplete, or two of them contradict each other
     */
    public static Groups groups(List<String> names, Map<String, ?> properties, ExemptPrincipals exempt) {
        Set<String> seen = new HashSet<>();
        for (String name : names) {
            if (!NAME.matcher(name).matches() || !seen.add(name)) {
                throw new ConfigException(QuotaProperties.GROUPS, names, "'" + name
                    + (seen.contains(name) ? "' is there twice" : "' is no name") + "; allowed are letters, digits, _, - and ., at most 64, each name once");
            }
        }
        GroupsBuilder groups = new GroupsBuilder();
        for (String name : names) {
            AbstractConfig config = new AbstractConfig(definition(name), properties, Map.of(), false);
            Group group = group(name, config);
            addMembers(groups, group, config, exempt);
        }
        return groups.build();
    }

    private static Group group(String name, AbstractConfig config) {
        String prefix = prefix(name);
        PartitionShare share = share(prefix, config);
        Map<ClientQuotaType, GroupLimit> limits = new EnumMap<>(ClientQuotaType.class);
        putRate(limits, ClientQuotaType.PRODUCE, prefix, PRODUCE, PRODUCE_TOTAL, config, share);
        putRate(limits, ClientQuotaType.FETCH, prefix, FETCH, FETCH_TOTAL, config, share);
        Double request = percentage(config.getString(prefix + REQUEST));
        if (request != null) {
            limits.put(ClientQuotaType.REQUEST, new GroupLimit(request, null));
        }
        if (limits.isEmpty()) {
            throw new ConfigException(prefix + PRODUCE, "", "the group has no limit; allowed is at least one of " + prefix + "{"
                + String.join(", ", PRODUCE, FETCH, REQUEST, PRODUCE_TOTAL, FETCH_TOTAL) + "}");
        }
        return new Group(name, share, limits);
    }

    private static PartitionShare share(String prefix, AbstractConfig config) {
        boolean total = !config.getString(prefix + PRODUCE_TOTAL).isBlank() || !config.getString(prefix + FETCH_TOTAL).isBlank();
        Pattern topics = pattern(config.getString(prefix + TOPICS));
        if (total != (topics != null)) {
            throw new ConfigException(prefix + TOPICS, config.getString(prefix + TOPICS), total
                ? "a total is shared by the partitions of topics; allowed is a pattern of their names, such as .* for all"
                : "allowed is a pattern only with " + PRODUCE_TOTAL + " or " + FETCH_TOTAL);
        }
        return topics == null ? null : new PartitionShare(topics);
    }

    private static void putRate(Map<ClientQuotaType, GroupLimit> limits, ClientQuotaType type, String prefix, String each, String total,
                                AbstractConfig config, PartitionShare share) {
        String perBroker = config.getString(prefix + each);
        String inCluster = config.getString(prefix + total);
        if (!perBroker.isBlank() && !inCluster.isBlank()) {
            throw new ConfigException(prefix + total, inCluster, "allowed is either this or " + prefix + each + ", which is " + perBroker);
        }
        if (!perBroker.isBlank()) {
            limits.put(type, new GroupLimit(ByteRate.parse(perBroker), null));
        } else if (!inCluster.isBlank()) {
            limits.put(type, new GroupLimit(ByteRate.parse(inCluster), share));
        }
    }

    private static void addMembers(GroupsBuilder groups, Group group, AbstractConfig config, ExemptPrincipals exempt) {
        String principalsKey = prefix(group.name()) + PRINCIPALS;
        String clientIdsKey = prefix(group.name()) + CLIENT_IDS;
        String principals = config.getString(principalsKey);
        String clientIds = config.getString(clientIdsKey);
        if (principals.isBlank() && clientIds.isBlank()) {
            throw new ConfigException(principalsKey, principals, "the group has no members; allowed is at least one of " + principalsKey + " and " + clientIdsKey);
        }
        groups.add(group);
        try {
            for (String principal : entries(principals)) {
                if (exempt.names(principal)) {
                    throw new IllegalArgumentException(principal + " is in " + ExemptPrincipals.PROPERTY + " and has no quota at all");
                }
                groups.addPrincipal(principal, group);
            }
        } catch (IllegalArgumentException e) {
            throw new ConfigException(principalsKey, principals, e.getMessage());
        }
        try {
            for (String clientId : entries(clientIds)) {
                groups.addClientId(clientId, group);
            }
        } catch (IllegalArgumentException e) {
            throw new ConfigException(clientIdsKey, clientIds, e.getMessage());
        }
    }

    private static List<String> entries(String list) {
        return java.util.Arrays.stream(list.split(";")).map(String::strip).filter(entry -> !entry.isEmpty()).toList();
    }

    private static Double percentage(String text) {
        if (text.isBlank()) {
            return null;
        }
        try {
            double percentage = Double.parseDouble(text.strip());
            if (percentage >= 0.01 && percentage <= 1e6) {
                return percentage;
            }
        } catch (NumberFormatException e) {
            // The exception below names it.
        }
        throw new IllegalArgumentException("'" + text + "' is no percentage; allowed is a number from 0.01, such as 50");
    }

    private static Pattern pattern(String text) {
        try {
            return text.isBlank() ? null : Pattern.compile(text.strip());
        } catch (PatternSyntaxException e) {
            throw new IllegalArgumentException("'" + text + "' is no pattern: " + e.getMessage());
        }
    }
}
