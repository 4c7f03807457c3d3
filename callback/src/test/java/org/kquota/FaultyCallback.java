package org.kquota;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;

import java.util.Map;

/** The plug-in with a fault inside: whatever it does for a client whose id starts with poison throws. */
public final class FaultyCallback extends CallbackWithoutMetrics {
    private static final ThreadLocal<Boolean> POISONED = ThreadLocal.withInitial(() -> false);

    @Override
    Map<String, String> tags(ClientQuotaType type, KafkaPrincipal principal, String clientId) {
        POISONED.set(clientId.startsWith("poison"));
        if (POISONED.get()) {
            throw new IllegalStateException("an injected fault for " + clientId);
        }
        return super.tags(type, principal, clientId);
    }

    @Override
    Double limit(ClientQuotaType type, Map<String, String> tags) {
        if (POISONED.get()) {
            throw new StackOverflowError("an injected error");
        }
        return super.limit(type, tags);
    }

    @Override
    boolean resetRequired(ClientQuotaType type) {
        if (POISONED.get()) {
            throw new IllegalStateException("an injected fault");
        }
        return super.resetRequired(type);
    }
}
