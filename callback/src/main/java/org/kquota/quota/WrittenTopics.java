package org.kquota.quota;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;

/** The topics that the clients of a tag set wrote to in the last minute. Request threads note them, without a lock; another thread reads them. */
final class WrittenTopics {
    /** For this long a topic counts after a write. */
    static final int SECONDS = 60;
    /** The most topics that are kept; few clients write to more. */
    static final int MOST = 16;

    private final AtomicReference<Map<String, Write>> writes = new AtomicReference<>(Map.of());
    private volatile int omittedSeconds = Integer.MIN_VALUE;

    /** The last write to a topic. */
    private static final class Write {
        private volatile int seconds;

        Write(int seconds) {
            this.seconds = seconds;
        }

        boolean isOld(int nowSeconds) {
            return WrittenTopics.isOld(seconds, nowSeconds);
        }
    }

    private static boolean isOld(int seconds, int nowSeconds) {
        return (long) nowSeconds - seconds > SECONDS;
    }

    void note(String topic, int seconds) {
        Write known = writes.get().get(topic);
        if (known == null) {
            writes.updateAndGet(before -> with(before, topic, seconds));
        } else if (known.seconds != seconds) {
            known.seconds = seconds;
        }
    }

    private Map<String, Write> with(Map<String, Write> before, String topic, int seconds) {
        Map<String, Write> next = new HashMap<>(before);
        next.values().removeIf(write -> write.isOld(seconds));
        if (next.size() == MOST) {
            omittedSeconds = seconds;
            return before;
        }
        next.putIfAbsent(topic, new Write(seconds));
        return next;
    }

    /** Their names, sorted; null where there were more than are kept. */
    List<String> names(int nowSeconds) {
        if (!isOld(omittedSeconds, nowSeconds)) {
            return null;
        }
        return writes.get().entrySet().stream().filter(entry -> !entry.getValue().isOld(nowSeconds)).map(Map.Entry::getKey).sorted().toList();
    }
}
