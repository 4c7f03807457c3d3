package org.kquota.quota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.Map;
import java.util.OptionalDouble;

/** Quotas of client ids in broker properties, in the form of KIP-13. */
class StaticQuotasTest {
    @Test
    void anEmptyClientIdStandsForClientsWithoutOne() {
        assertEquals(Map.of("", 4e6, "a:b", 1e3), StaticQuotas.parseOverrides(" :4M , a:b:1K "));
        assertEquals(Map.of("app", 4e6), StaticQuotas.parseOverrides("\"app:4M\""));
        assertEquals(Map.of(), StaticQuotas.parseOverrides(" "));
    }

    @ParameterizedTest
    @CsvSource({"app, has no rate", "'app:4M,', has no rate", "app:4, is no such rate", "'app:4M,app:5M', client id 'app' is there twice"})
    void anEntryWithoutARateOrWithTwoIsRefused(String text, String because) {
        String message = assertThrows(IllegalArgumentException.class, () -> StaticQuotas.parseOverrides(text)).getMessage();
        assertTrue(message.contains(because), message);
    }

    @Test
    void anOverrideCountsBeforeTheDefault() {
        StaticQuotas both = StaticQuotas.of(OptionalDouble.of(2e6), Map.of("app", 4e6));
        assertEquals(4e6, both.limit("app"));
        assertEquals(2e6, both.limit("other"));
        assertEquals(Map.of("app", 4e6), both.overrides());
        assertFalse(both.isEmpty());
    }

    @Test
    void eitherOfThemIsEnough() {
        StaticQuotas overrides = StaticQuotas.of(OptionalDouble.empty(), Map.of("app", 4e6));
        assertFalse(overrides.isEmpty());
        assertNull(overrides.limit("other"));
        StaticQuotas byDefault = StaticQuotas.of(StaticQuotas.parseDefault("2M"), Map.of());
        assertFalse(byDefault.isEmpty());
        assertEquals(2e6, byDefault.limit("app"));
        assertTrue(StaticQuotas.of(StaticQuotas.parseDefault(" "), Map.of()).isEmpty());
        assertTrue(StaticQuotas.NONE.isEmpty());
    }
}
