package org.kquota.quota;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;
import org.kquota.quota.StockQuotas.LevelMemory;

import java.io.IOException;
import java.io.InputStream;
import java.util.Properties;

/** How the broker remembers levels of quotas is seen in its classes, whatever its vendor calls its version (8.1.0-ccs is Kafka 4.1). */
class LevelMemoryTest {
    @Test
    void itIsThatOfTheBrokersClasses() throws IOException {
        Properties jar = new Properties();
        try (InputStream file = getClass().getResourceAsStream("/kafka/kafka-version.properties")) {
            jar.load(file);
        }
        LevelMemory ofThisKafka = jar.getProperty("version").startsWith("4.1.") ? LevelMemory.STICKY : LevelMemory.COUNTED;
        assertEquals(ofThisKafka, LevelMemory.of(getClass().getClassLoader()));
    }

    @Test
    void withoutTheClassOfBeforeItIsThatOfNewerBrokers() {
        assertEquals(LevelMemory.COUNTED, LevelMemory.of(ClassLoader.getPlatformClassLoader()));
    }
}
