package org.kquota.node;

import org.kquota.config.KquotaConfig;
import org.kquota.decision.BootClock;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * The nodes of this JVM. A node with both roles has two instances of the plug-in and one state, which lives as long as
 * one of them does. Test clusters run several brokers in one JVM, so a node is known by its id and its decision file.
 */
public final class Nodes {
    private record Key(int nodeId, Path decisionFile) {
    }

    private static final class Shared {
        private final BrokerNode node;
        private int users;

        Shared(BrokerNode node) {
            this.node = node;
        }
    }

    private static final Map<Key, Shared> NODES = new HashMap<>();

    private Nodes() {
    }

    public static synchronized BrokerNode acquire(KquotaConfig config, BootClock bootClock) {
        Shared shared = NODES.computeIfAbsent(key(config), key -> new Shared(started(new BrokerNode(config, bootClock))));
        shared.users++;
        return shared.node;
    }

    private static BrokerNode started(BrokerNode node) {
        node.start();
        return node;
    }

    public static synchronized void release(BrokerNode node) {
        Key key = key(node.config());
        Shared shared = NODES.get(key);
        if (shared != null && shared.node == node && --shared.users == 0) {
            NODES.remove(key);
            node.close();
        }
    }

    private static Key key(KquotaConfig config) {
        return new Key(config.nodeId(), config.decisionFile());
    }
}
