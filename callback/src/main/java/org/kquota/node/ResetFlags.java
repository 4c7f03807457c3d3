package org.kquota.node;

import org.apache.kafka.server.quota.ClientQuotaType;

import java.util.concurrent.atomic.AtomicIntegerArray;

/** One plug-in instance's flags: true once per quota type after a change from outside. */
public final class ResetFlags {
    private final AtomicIntegerArray raised = new AtomicIntegerArray(ClientQuotaType.values().length);

    void raise(ClientQuotaType type) {
        raised.set(type.ordinal(), 1);
    }

    /** Whether it was raised since the last call; lowers it. */
    public boolean take(ClientQuotaType type) {
        // The plain read first: this runs on every request, and the flag is nearly always down.
        return raised.get(type.ordinal()) == 1 && raised.getAndSet(type.ordinal(), 0) == 1;
    }
}
