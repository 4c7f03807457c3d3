package org.kquota.quota;

import org.apache.kafka.common.utils.Time;

import java.util.function.Supplier;

/** A clock that moves only when the test moves it. */
public final class ManualTime implements Time {
    private long milliseconds = 1_700_000_000_000L;

    public void advance(long byMilliseconds) {
        milliseconds += byMilliseconds;
    }

    @Override
    public long milliseconds() {
        return milliseconds;
    }

    @Override
    public long nanoseconds() {
        return milliseconds * 1_000_000;
    }

    @Override
    public void sleep(long ms) {
        advance(ms);
    }

    @Override
    public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
        throw new UnsupportedOperationException("nothing waits in these tests");
    }
}
