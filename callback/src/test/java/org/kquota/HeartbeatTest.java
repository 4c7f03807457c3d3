package org.kquota;

import static org.kquota.TestDecision.await;

import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.Logger;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Property;
import org.junit.jupiter.api.Test;

import java.util.concurrent.atomic.AtomicInteger;

class HeartbeatTest {
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
    void itsThreadsOutliveALogThatCannotBeWritten() throws Exception {
        Logger log = (Logger) LogManager.getLogger(KquotaCallback.class);
        FullDisk full = new FullDisk();
        AtomicInteger looks = new AtomicInteger();
        AtomicInteger reports = new AtomicInteger();
        log.addAppender(full);
        try (Heartbeat heartbeat = new Heartbeat(1, () -> fail(looks), () -> fail(reports))) {
            heartbeat.start();
            await("a look after one that failed", () -> looks.get() > 1);
            await("a report after one that failed", () -> reports.get() > 1);
        } finally {
            log.removeAppender(full);
        }
    }

    private static void fail(AtomicInteger times) {
        times.incrementAndGet();
        throw new IllegalStateException("it fails each time");
    }
}
