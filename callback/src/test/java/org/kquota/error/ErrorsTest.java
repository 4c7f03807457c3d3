package org.kquota.error;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.Logger;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Property;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.kquota.KquotaCallback;
import org.kquota.LogLines;

import java.util.List;

class ErrorsTest {
    private static final long SECOND = 1_000_000_000L;

    private final Errors errors = new Errors();

    private static IllegalStateException fault(String message) {
        return new IllegalStateException(message);
    }

    @Test
    @Tag("F24")
    void whoCountsDoesNotLogAndTheFirstOfEachKindIsLoggedWithItsStackTrace() {
        IllegalStateException step = fault("a step");
        IllegalStateException change = fault("a change");
        try (LogLines log = new LogLines(KquotaCallback.class)) {
            errors.count(Errors.Kind.GOVERNOR, step);
            errors.count(Errors.Kind.QUOTA_UPDATE, change);
            assertEquals(List.of(), log.lines());
            errors.log(0);
            assertEquals(List.of("fault of kind quota_update, the quota was not taken over: java.lang.IllegalStateException: a change",
                "fault of kind governor, limits stay as they were: java.lang.IllegalStateException: a step"), log.lines());
            assertEquals(List.of(change, step), log.faults());
        }
    }

    @Test
    @Tag("F24")
    void laterFaultsOfAKindAreLoggedOnceAMinuteWithHowManyWereLeftOut() {
        try (LogLines log = new LogLines(KquotaCallback.class)) {
            for (int second = 0; second < 121; second++) {
                errors.count(Errors.Kind.LOG_DIRS, fault("in second " + second));
                if (second == 30) {
                    errors.count(Errors.Kind.CLIENTS, fault("of another kind"));
                }
                errors.log(second * SECOND);
            }
            assertEquals(List.of(
                "fault of kind log_dirs, the report has the offline log dirs of before: java.lang.IllegalStateException: in second 0",
                "fault of kind clients, figures of clients are missing: java.lang.IllegalStateException: of another kind",
                "fault of kind log_dirs, the report has the offline log dirs of before (59 more of this kind are not logged): java.lang.IllegalStateException: in second 1",
                "fault of kind log_dirs, the report has the offline log dirs of before (59 more of this kind are not logged): java.lang.IllegalStateException: in second 61"),
                log.lines());
            assertEquals(121, errors.tally(Errors.Kind.LOG_DIRS).count());
            assertEquals("java.lang.IllegalStateException: in second 120", errors.tally(Errors.Kind.LOG_DIRS).lastMessage());
        }
    }

    /** The finder of such an error logs it in a sentence of its own. */
    @Test
    void whatIsNoFaultIsCountedOnly() {
        try (LogLines log = new LogLines(KquotaCallback.class)) {
            errors.count(Errors.Kind.DECISION, "the decision is lost");
            errors.log(0);
            assertEquals(List.of(), log.lines());
            assertEquals(new Errors.Tally(1, "the decision is lost"), errors.tally(Errors.Kind.DECISION));
        }
    }

    /** As an appender with ignoreExceptions=false does on a disk that is full. */
    private static final class FullDisk extends AbstractAppender {
        FullDisk() {
            super("full", null, null, false, Property.EMPTY_ARRAY);
            start();
        }

        @Override
        public void append(LogEvent event) {
            throw new IllegalStateException("No space left on device");
        }
    }

    @Test
    void aLogThatCannotBeWrittenThrowsNothing() {
        Logger logger = (Logger) LogManager.getLogger(KquotaCallback.class);
        FullDisk full = new FullDisk();
        logger.addAppender(full);
        try {
            errors.count(Errors.Kind.GOVERNOR, fault("a step"));
            errors.log(0);
        } finally {
            logger.removeAppender(full);
        }
    }
}
