package org.kquota.quota;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.Random;

/** Names as Kafka writes them, compared with the class of this Kafka, which is at another place from 4.4 on. */
class KafkaNamesTest {
    private static String ofKafka(String method, String name) throws ReflectiveOperationException {
        return (String) sanitizer().getMethod(method, String.class).invoke(null, name);
    }

    private static Class<?> sanitizer() throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.common.utils.Sanitizer");
        } catch (ClassNotFoundException e) {
            return Class.forName("org.apache.kafka.common.utils.internals.Sanitizer");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "admin", "a-b_c.d", "a b", "a+b", "a*b", "100%", "CN=agent-1,O=kquota", "ä€", "a\"b", "a\\b", "a:b?c", "tab\there", "line\nend", "~"})
    void theyAreWhatThisKafkaWrites(String name) throws ReflectiveOperationException {
        assertEquals(ofKafka("sanitize", name), KafkaNames.sanitized(name));
        assertEquals(ofKafka("jmxSanitize", name), KafkaNames.inMBean(name));
    }

    @Test
    void soAreThoseOfAnyCharacters() throws ReflectiveOperationException {
        Random random = new Random(20261125);
        for (int i = 0; i < 20_000; i++) {
            String name = random.ints(random.nextInt(6), 1, i % 2 == 0 ? 0x80 : 0xD800).collect(StringBuilder::new, StringBuilder::appendCodePoint,
                StringBuilder::append).toString();
            theyAreWhatThisKafkaWrites(name);
        }
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {"User:admin|User|admin", "User:CN=a:b,O=x|User|CN=a:b,O=x", "Group:g|Group|g"})
    void aPrincipalEndsItsTypeAtTheFirstColon(String text, String type, String name) {
        assertEquals(new KafkaPrincipal(type, name), KafkaNames.principal(text));
    }
}
