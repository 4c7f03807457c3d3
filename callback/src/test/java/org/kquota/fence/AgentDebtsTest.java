package org.kquota.fence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.logging.log4j.Level;
import org.junit.jupiter.api.Test;
import org.kquota.KquotaCallback;
import org.kquota.LogLines;
import org.kquota.quota.Tags;

import java.util.Map;

class AgentDebtsTest {
    private static final Map<String, String> AGENT = Tags.agent("agent-1");
    private static final double QUOTA = 1000;
    private static final double WINDOW_SECONDS = 10;
    private final AgentDebts debts = new AgentDebts();

    private static long at(double seconds) {
        return (long) (seconds * 1e9);
    }

    private void note(Map<String, String> tags, double rate, double seconds) {
        debts.note(tags, rate, QUOTA, WINDOW_SECONDS, at(seconds));
    }

    @Test
    void whoHasProducedMoreThanItsQuotaIsInDebtUntilItsBytesArePaidFor() {
        note(AGENT, 3 * QUOTA, 0);
        assertTrue(debts.any());
        assertTrue(debts.owes(AGENT, at(19.9)), "30 windows' worth of a second, of which the window itself pays for ten");
        assertFalse(debts.owes(AGENT, at(20.1)));
        note(AGENT, 1.5 * QUOTA, 10);
        assertTrue(debts.owes(AGENT, at(19.9)), "a smaller debt does not end a larger one");
        debts.keep(at(19.9));
        assertTrue(debts.any());
        debts.keep(at(20.1));
        assertFalse(debts.any());
    }

    @Test
    void nobodyElseIsInDebtAndNobodyAtItsQuota() {
        note(AGENT, QUOTA, 0);
        note(Tags.exempt("admin"), 9 * QUOTA, 0);
        assertFalse(debts.any());
        note(AGENT, 9 * QUOTA, 0);
        assertFalse(debts.owes(Tags.agent("agent-2"), at(1)));
        assertFalse(debts.owes(Tags.exempt("agent-1"), at(1)));
        assertFalse(debts.owes(null, at(1)), "who is not exempt has quotas of its own");
    }

    @Test
    void anotherQuotaForgetsDebts() {
        note(AGENT, 9 * QUOTA, 0);
        debts.forget();
        assertFalse(debts.any() || debts.owes(AGENT, at(1)));
    }

    @Test
    void aDebtIsLoggedOnceWithItsRate() {
        try (LogLines log = new LogLines(KquotaCallback.class, Level.WARN)) {
            note(AGENT, 3 * QUOTA, 0);
            note(AGENT, 4 * QUOTA, 0.1);
            assertEquals(1, log.lines().size(), log.lines().toString());
            assertTrue(log.lines().get(0).contains("<agent>agent-1 has produced 3000 B/s"), log.lines().toString());
        }
    }
}
