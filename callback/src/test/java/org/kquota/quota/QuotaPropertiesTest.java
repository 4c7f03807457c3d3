package org.kquota.quota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.Map;

/** Refused properties of quotas at start-up. */
class QuotaPropertiesTest {
    private static final ConfigDef DEFINITION = QuotaProperties.define(new ConfigDef());

    @ParameterizedTest
    @CsvSource({
        "kquota.quota.produce.default,2MB,2Mi",
        "kquota.quota.fetch.default,0,from 1K",
        "kquota.quota.produce.overrides,clientA,client-id:rate",
        "kquota.quota.produce.overrides,'clientA:4M,clientA:5M',each client id once",
        "kquota.quota.fetch.overrides,'clientA:4M,',client-id:rate",
        "kquota.quota.fetch.overrides,clientA:4X,2Mi",
    })
    @Tag("C4")
    @Tag("B6")
    void whatContradictsItselfNamesKeyValueAndWhatIsAllowed(String key, String value, String allowed) {
        String message = assertThrows(ConfigException.class, () -> DEFINITION.parse(Map.of(key, value))).getMessage();
        assertTrue(message.contains(key) && message.contains(value) && message.contains(allowed), message);
    }

    @Test
    void thereIsNoQuotaUnlessOneIsSet() {
        Map<String, Object> values = DEFINITION.parse(Map.of());
        assertTrue(QuotaProperties.staticQuotas((String) values.get(QuotaProperties.PRODUCE_DEFAULT),
            (String) values.get(QuotaProperties.PRODUCE_OVERRIDES)).isEmpty());
        StaticQuotas quotas = QuotaProperties.staticQuotas("2M", "clientA:4M");
        assertEquals(2e6, quotas.limit("clientB"));
        assertEquals(4e6, quotas.limit("clientA"));
    }

    @Test
    void aRateMayBeMissingAndIsOneOtherwise() {
        ConfigDef.Validator rate = QuotaProperties.rate();
        rate.ensureValid("key", "");
        rate.ensureValid("key", "2M");
        assertTrue(assertThrows(ConfigException.class, () -> rate.ensureValid("key", "2MB")).getMessage().contains("key"));
        assertTrue(rate.toString().contains("from 1K"), rate.toString());
    }

    @Test
    void everyPropertyIsDocumented() {
        DEFINITION.configKeys().values().forEach(key -> assertTrue(key.documentation.strip().endsWith("."), key.name));
    }
}
