package org.kquota.accounting;

import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.kquota.group.Group;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;

/**
 * Refused produce requests, among the broker's metrics: of each group, and of each client from its first refusal on, while it is counted apart. So
 * they are bounded. Their rates and throttle times are in Kafka's own quota metrics.
 */
public final class RefusalMetrics {
    public static final String OF_CLIENT = "client-refusals-total";
    static final String OF_GROUP = "group-refusals-total";

    private static final class Registry {
        private final PluginMetrics metrics;
        private final Map<Refusals.Client, MetricName> known = new HashMap<>();
        private final Map<String, MetricName> groups = new HashMap<>();

        Registry(PluginMetrics metrics) {
            this.metrics = metrics;
        }
    }

    private final Refusals refusals;
    private final List<Registry> registries = new ArrayList<>();

    public RefusalMetrics(Refusals refusals) {
        this.refusals = refusals;
    }

    /** Adds those of the groups, and of clients from now on; a node with both roles has two such places. */
    public synchronized void register(PluginMetrics metrics, Collection<Group> groups) {
        Registry registry = new Registry(metrics);
        show(registry, groups);
        registries.add(registry);
    }

    /** There are these groups from now on. */
    public synchronized void show(Collection<Group> groups) {
        registries.forEach(registry -> show(registry, groups));
    }

    private static void show(Registry registry, Collection<Group> groups) {
        Set<String> names = groups.stream().map(Group::name).collect(Collectors.toSet());
        registry.groups.entrySet().removeIf(shown -> {
            boolean gone = !names.contains(shown.getKey());
            if (gone) {
                registry.metrics.removeMetric(shown.getValue());
            }
            return gone;
        });
        for (Group group : groups) {
            // One that was there before goes on counting where it was.
            registry.groups.computeIfAbsent(group.name(), name -> add(registry.metrics, OF_GROUP,
                "Produce requests of the group's members refused since the broker started.", group::refusals, "group", name));
        }
    }

    /** Adds no more to these: the broker is about to close them, or null. */
    public synchronized void forget(PluginMetrics metrics) {
        registries.removeIf(registry -> registry.metrics == metrics);
    }

    /** Adds those of clients that were refused for the first time, and removes those of clients that made room; on the reporter's thread. */
    public synchronized void update() {
        refusals.makeRoom();
        Set<Refusals.Client> clients = refusals.clients();
        for (Registry registry : registries) {
            registry.known.entrySet().removeIf(shown -> {
                boolean gone = !clients.contains(shown.getKey());
                if (gone) {
                    registry.metrics.removeMetric(shown.getValue());
                }
                return gone;
            });
            for (Refusals.Client client : clients) {
                registry.known.computeIfAbsent(client, key -> add(registry.metrics, OF_CLIENT,
                    "Produce requests of the client refused since it is counted apart.", () -> refusals.requests(key),
                    "principal", key.principal(), "client-id", key.clientId()));
            }
        }
    }

    private static MetricName add(PluginMetrics metrics, String name, String description, LongSupplier value, String... tags) {
        LinkedHashMap<String, String> named = new LinkedHashMap<>();
        for (int i = 0; i < tags.length; i += 2) {
            named.put(tags[i], tags[i + 1]);
        }
        MetricName metricName = metrics.metricName(name, description, named);
        metrics.addMetric(metricName, (Gauge<Double>) (config, now) -> (double) value.getAsLong());
        return metricName;
    }
}
