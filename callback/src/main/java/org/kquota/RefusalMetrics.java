package org.kquota;

import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.kquota.accounting.Refusals;
import org.kquota.group.Group;

import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.LongSupplier;

/**
 * Whose produce requests were refused, among the broker's metrics: each group, and each client from its first refusal on. As many clients as
 * are counted apart, so bounded. What they produce and how long they wait is in Kafka's own quota metrics.
 */
final class RefusalMetrics {
    static final String OF_CLIENT = "client-refusals-total";
    static final String OF_GROUP = "group-refusals-total";

    private static final class Registry {
        private final PluginMetrics metrics;
        private final Set<Refusals.Client> known = new HashSet<>();

        Registry(PluginMetrics metrics) {
            this.metrics = metrics;
        }
    }

    private final Refusals refusals;
    private final List<Registry> registries = new CopyOnWriteArrayList<>();

    RefusalMetrics(Refusals refusals) {
        this.refusals = refusals;
    }

    /** Adds those of the groups, and of clients from now on; a node with both roles has two such places. */
    void register(PluginMetrics metrics, Iterable<Group> groups) {
        for (Group group : groups) {
            add(metrics, OF_GROUP, "Produce requests of the group's members refused since the broker started.", group::refusals,
                "group", group.name());
        }
        registries.add(new Registry(metrics));
    }

    /** Adds no more to these: the broker is about to close them, or null. */
    synchronized void forget(PluginMetrics metrics) {
        registries.removeIf(registry -> registry.metrics == metrics);
    }

    /** Adds those of clients that were refused for the first time; on the reporter's thread. */
    synchronized void update() {
        for (Registry registry : registries) {
            refusals.byClient().forEach((client, count) -> {
                if (registry.known.add(client)) {
                    add(registry.metrics, OF_CLIENT, "Produce requests of the client refused since the broker started.",
                        count::sum, "principal", client.principal(), "client-id", client.clientId());
                }
            });
        }
    }

    private static void add(PluginMetrics metrics, String name, String description, LongSupplier value, String... tags) {
        LinkedHashMap<String, String> named = new LinkedHashMap<>();
        for (int i = 0; i < tags.length; i += 2) {
            named.put(tags[i], tags[i + 1]);
        }
        metrics.addMetric(metrics.metricName(name, description, named), (Gauge<Double>) (config, now) -> (double) value.getAsLong());
    }
}
