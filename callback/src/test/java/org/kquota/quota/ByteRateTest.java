package org.kquota.quota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ByteRateTest {
    @ParameterizedTest
    @CsvSource({"2M,2000000", "2Mi,2097152", "1.5M,1500000", "1K,1000", "1Ki,1024", "3G,3e9", "1Gi,1073741824", "1T,1e12", "2Ti,2199023255552",
        "250000,250000", "' 4M ',4000000", "1000T,1e15"})
    @Tag("B6")
    void aRateIsANumberWithAUnit(String text, double bytesPerSecond) {
        assertEquals(bytesPerSecond, ByteRate.parse(text));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "M", "-2M", "2m", "2MB", "2 M", "2,5M", "0", "0M", "999", "1001T", "1e6", "0x10", "NaN", "∞", "99999999999999999"})
    void anythingElseIsRefusedWithTheAllowedForms(String text) {
        String message = assertThrows(IllegalArgumentException.class, () -> ByteRate.parse(text)).getMessage();
        assertTrue(message.contains("'" + text + "'") && message.contains(ByteRate.ALLOWED), message);
    }
}
