package org.kquota.node;

import org.apache.kafka.server.quota.ClientQuotaType;
import org.kquota.decision.EffectiveDecision;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;

/** Has the broker look at its limits again when they have changed, through each instance of the plug-in on this node. */
final class LimitResets {
    private final List<ResetFlags> instances = new CopyOnWriteArrayList<>();
    private final ResetSchedule ofProducers = new ResetSchedule();
    private final ResetSchedule ofAll = new ResetSchedule();
    private final AtomicBoolean limitsChanged = new AtomicBoolean();
    private final AtomicBoolean modeChanged = new AtomicBoolean();
    private EffectiveDecision knownExpired;

    void join(ResetFlags instance) {
        instances.add(instance);
    }

    void leave(ResetFlags instance) {
        instances.remove(instance);
    }

    /** Limits of any type have changed, whatever the decision. */
    void limitsChanged() {
        raiseAll();
        limitsChanged.set(true);
    }

    /** Another mode is in force; one that lets producers go is not to wait for the decision thread. */
    void modeChanged(boolean letsGo) {
        if (letsGo) {
            raiseProduce();
        }
        modeChanged.set(true);
    }

    /**
     * Raises the flags that are due; on the decision thread.
     *
     * @param producersChanged whether this thread changed a limit of producers since it was here last
     * @param expired          the decision that requests used after a lease. As after another mode, they had the broker take over limits then that this thread
     *                         does not know: if the decision of before holds again, that is a change to the broker
     * @param nanos            now, as System.nanoTime()
     */
    void raiseDue(boolean producersChanged, EffectiveDecision expired, long nanos) {
        boolean changedByOthers = modeChanged.getAndSet(false) | expired != knownExpired;
        knownExpired = expired;
        if (ofProducers.isDue(producersChanged || changedByOthers, nanos)) {
            raiseProduce();
        }
        if (ofAll.isDue(limitsChanged.getAndSet(false), nanos)) {
            raiseAll();
        }
    }

    private void raiseProduce() {
        instances.forEach(instance -> instance.raise(ClientQuotaType.PRODUCE));
    }

    private void raiseAll() {
        for (ClientQuotaType type : ClientQuotaType.values()) {
            instances.forEach(instance -> instance.raise(type));
        }
    }
}
