package org.kquota.admission;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;

/** Single steps of admission: who gets a turn, who loses it, and how much is promised. */
class AdmissionTurnsTest {
    private static final double MB = 1e6;
    private static final long SECOND = 1_000_000_000L;
    private static final long BEGUN = 5 * SECOND;
    private static final Target HALF = new Target(0.5, MB, MB, 0.05, 1, 0);

    private final Admission admission = new Admission();
    private long landed;

    private static ClientShare share() {
        ClientShare share = new ClientShare(1);
        share.know(MB / 10, 10_000);
        return share;
    }

    private void plan(long nanos) {
        admission.plan(HALF, () -> landed, nanos);
    }

    @Test
    void whoAppearsInTheFirstSecondGetsItsTurnByTheNextPlanAndLaterOnesAtOnce() {
        plan(BEGUN);
        ClientShare early = share();
        assertFalse(admission.admits(early, 0.5, BEGUN + SECOND - 1));
        assertFalse(early.isPlaced());
        ClientShare late = share();
        assertTrue(admission.admits(late, 0.5, BEGUN + SECOND), "half a megabyte is unused");
        plan(BEGUN + SECOND + 1);
        assertTrue(early.isPlaced());
        double turn = late.due() - 0.1;
        assertTrue(early.due() > turn && early.due() < turn + 0.1, "somewhere in the first round of its size: " + early.due() + " from " + turn);
    }

    @Test
    void anEndTakesAllTurnsThoseOfClientsThatHaveJustAppearedIncluded() {
        plan(BEGUN);
        ClientShare known = share();
        admission.admits(known, 0.5, BEGUN + SECOND);
        plan(BEGUN + 2 * SECOND);
        ClientShare appeared = share();
        admission.admits(appeared, 0.5, BEGUN + 2 * SECOND);
        assertTrue(known.isPlaced() && appeared.isPlaced());
        admission.end();
        assertFalse(known.isPlaced());
        assertTrue(known.ask(BEGUN + 2 * SECOND), "it is active no more");
        plan(BEGUN + 3 * SECOND);
        assertFalse(appeared.isPlaced(), "other turns are counted from now on");
    }

    @Test
    void whoHasNotAskedForThreeSecondsIsActiveNoMore() {
        plan(BEGUN);
        ClientShare share = share();
        admission.admits(share, 0.5, BEGUN + SECOND);
        plan(BEGUN + 4 * SECOND);
        assertTrue(share.isPlaced());
        plan(BEGUN + 4 * SECOND + 1);
        assertFalse(share.isPlaced());
        assertTrue(share.ask(BEGUN + 4 * SECOND + 1));
    }

    private List<ClientShare> admitted(int clients, long nanos) {
        List<ClientShare> admitted = new ArrayList<>();
        for (int i = 0; i < clients; i++) {
            ClientShare share = share();
            if (admission.admits(share, 0.5, nanos)) {
                admitted.add(share);
            }
        }
        return admitted;
    }

    /** Promised bytes that have not landed until the next plan do not come any more. */
    @Test
    @Tag("A7")
    void noMoreIsPromisedThanThereIsRoomForUntilTheNextPlan() {
        plan(BEGUN);
        long now = BEGUN + SECOND;
        assertEquals(50, admitted(300, now).size(), "0.5 MB");
        landed = 100_000;
        plan(now);
        assertEquals(40, admitted(300, now).size(), "what has landed is used, the rest is free again");
        landed = 450_000;
        assertEquals(0, admitted(300, now).size(), "what lands meanwhile counts");
    }

    /** A request that is kept out for another reason is promised nothing, and its client queues all the same. */
    @Test
    void whoWaitsForAnotherReasonHasATurnAndIsAwaited() {
        ClientShare share = share();
        admission.waits(share, BEGUN);
        assertFalse(share.isRefused() || share.isPlaced(), "nothing is in force");
        plan(BEGUN);
        admission.waits(share, BEGUN + SECOND);
        assertTrue(share.isRefused() && share.isPlaced());
        plan(BEGUN + SECOND);
        assertEquals(54, admitted(300, BEGUN + SECOND + SECOND / 10).size(), "of 0.55 MB, room is kept for one request of it");
    }

    /** Ten times the same: a turn each 40 s or each 400 s, by the target. */
    @Test
    void whoseTurnsAreFurtherApartThanRecordsAreKeptStarves() {
        List<ClientShare> shares = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            ClientShare share = new ClientShare(i);
            share.know(MB / 10, MB);
            shares.add(share);
        }
        ClientShare small = new ClientShare(10);
        small.know(MB / 10, 10_000);
        shares.add(small);
        assertEquals(0, starving(shares, 0.25));
        assertEquals(10, starving(shares, 0.025), "the eleventh has small requests");
        admission.end();
        assertEquals(0, admission.starving());
    }

    private int starving(List<ClientShare> shares, double factor) {
        Target target = new Target(factor, 1.1 * MB, 1.1 * MB, 0.05, 1, 0);
        for (long nanos = BEGUN; nanos <= BEGUN + SECOND; nanos += SECOND) {
            admission.plan(target, () -> landed, nanos);
            for (ClientShare share : shares) {
                admission.admits(share, factor, nanos);
            }
        }
        admission.plan(target, () -> landed, BEGUN + 2 * SECOND);
        return admission.starving();
    }
}
