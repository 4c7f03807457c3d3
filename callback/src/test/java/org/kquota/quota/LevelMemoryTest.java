package org.kquota.quota;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.kafka.common.utils.AppInfoParser;
import org.junit.jupiter.api.Test;
import org.kquota.quota.StockQuotas.LevelMemory;

/** How the broker remembers levels of quotas is seen in its classes, whatever its vendor calls its version (8.1.0-ccs is Kafka 4.1). */
class LevelMemoryTest {
    @Test
    void itIsThatOfTheBrokersClasses() {
        LevelMemory ofThisKafka = AppInfoParser.getVersion().startsWith("4.1.") ? LevelMemory.STICKY : LevelMemory.COUNTED;
        assertEquals(ofThisKafka, LevelMemory.of(getClass().getClassLoader()));
    }

    @Test
    void withoutTheClassOfBeforeItIsThatOfNewerBrokers() {
        assertEquals(LevelMemory.COUNTED, LevelMemory.of(ClassLoader.getPlatformClassLoader()));
    }
}
