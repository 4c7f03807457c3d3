package org.kquota.quota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.stream.IntStream;

class WrittenTopicsTest {
    private final WrittenTopics topics = new WrittenTopics();

    @Test
    void aTopicCountsForAMinuteAfterTheLastWrite() {
        assertEquals(List.of(), topics.names(0));
        topics.note("b", 100);
        topics.note("a", 100);
        topics.note("b", 130);
        assertEquals(List.of("a", "b"), topics.names(160));
        assertEquals(List.of("b"), topics.names(161));
        assertEquals(List.of("b"), topics.names(190));
        assertEquals(List.of(), topics.names(191));
    }

    @Test
    void whereThereAreMoreThanAreKeptNoneIsNamedForAMinute() {
        IntStream.range(0, WrittenTopics.MOST).forEach(i -> topics.note("t" + i, 100));
        assertEquals(WrittenTopics.MOST, topics.names(100).size());
        topics.note("one too many", 101);
        assertNull(topics.names(101));
        assertNull(topics.names(161));
        topics.note("another", 161);
        assertEquals(List.of("another"), topics.names(162), "the old ones have made room");
    }

    @Test
    void threadsAtOnceLoseNoTopic() throws InterruptedException {
        for (int round = 0; round < 200; round++) {
            WrittenTopics ofRound = new WrittenTopics();
            CountDownLatch begin = new CountDownLatch(1);
            List<Thread> threads = IntStream.range(0, 4).mapToObj(thread -> new Thread(() -> {
                try {
                    begin.await();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
                IntStream.range(0, 4).forEach(i -> ofRound.note("t" + thread + i, 1));
            })).toList();
            threads.forEach(Thread::start);
            begin.countDown();
            for (Thread thread : threads) {
                thread.join();
            }
            assertEquals(16, new TreeSet<>(ofRound.names(1)).size());
        }
    }
}
