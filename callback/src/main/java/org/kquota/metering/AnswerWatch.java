package org.kquota.metering;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.kquota.quota.TagSetMemo;

/**
 * Finds out which producers want no answers (acks=0). After a produce request the broker asks for the tags of its client's produce quota, and right after that,
 * on the same thread, for those of its request quota: unless the client wants no answer, because then there is none to delay. So the next question on
 * the thread shows it. An authorizer doesn't see acks.
 */
final class AnswerWatch {
    /** The client that a thread metered last, in this period; null once that is settled. */
    private static final class Last {
        private Period period;
        private TagSetMemo.Known metered;
    }

    /** All threads watch during a period. A client that one of them metered before it began proves nothing. */
    private static final class Period {
    }

    private final ThreadLocal<Last> last = ThreadLocal.withInitial(Last::new);
    private volatile Period period;
    private volatile boolean always;

    /** Has every request watched, or only those of clients of which it is not known yet. */
    void always(boolean every) {
        always = every;
    }

    /** Ends the period: nothing is watched until the next client comes of which it is not known. */
    void rest() {
        if (!always) {
            period = null;
        }
    }

    /** The tags of this client are asked for. */
    void asked(ClientQuotaType type, KafkaPrincipal principal, String clientId) {
        Period now = period;
        if (now == null) {
            return;
        }
        Last here = last.get();
        TagSetMemo.Known before = here.metered;
        if (before == null) {
            return;
        }
        here.metered = null;
        if (here.period != now) {
            return;
        }
        if (type == ClientQuotaType.REQUEST && before.is(principal, clientId)) {
            before.answered();
        } else {
            before.unanswered();
        }
    }

    /** A produce request of this client is metered. */
    void metered(TagSetMemo.Known client) {
        if (!always && client.isAnsweringKnown()) {
            return;
        }
        Period now = period;
        if (now == null) {
            now = new Period();
            period = now;
        }
        Last here = last.get();
        here.period = now;
        here.metered = client;
    }
}
