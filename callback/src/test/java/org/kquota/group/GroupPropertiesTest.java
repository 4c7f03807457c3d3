package org.kquota.group;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.config.ConfigException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.kquota.config.KquotaConfig;

import java.util.HashMap;
import java.util.Map;

/** Refused properties of groups at start-up. */
class GroupPropertiesTest {
    private static Map<String, Object> twoGroups() {
        Map<String, Object> properties = new HashMap<>(Map.of("node.id", "3", KquotaConfig.EXEMPT_PRINCIPALS, "User:admin"));
        properties.put("kquota.quota.produce.overrides", "clientA:4M");
        properties.put("kquota.quota.groups", "a, b");
        properties.put("kquota.quota.group.a.principals", "User:alice;User:x-*");
        properties.put("kquota.quota.group.a.produce", "2M");
        properties.put("kquota.quota.group.b.client.ids", "app;~db[0-9]");
        properties.put("kquota.quota.group.b.produce.total", "80M");
        properties.put("kquota.quota.group.b.topics", "orders-.*");
        return properties;
    }

    @Test
    void theGroupsOfTheTestAreSound() {
        assertEquals(2, new KquotaConfig(twoGroups()).groups().all().size());
    }

    @ParameterizedTest
    @CsvSource({
        "kquota.quota.groups,'a,a,b',each name once",
        "kquota.quota.groups,'a,b,c d',letters",
        "kquota.quota.groups,'c,b',kquota.quota.group.c.produce",
        "kquota.quota.group.a.produce,fast,2Mi",
        "kquota.quota.group.a.produce,'',at least one of",
        "kquota.quota.group.a.request,none,number",
        "kquota.quota.group.a.request,0,0.01",
        "kquota.quota.group.a.principals,'',at least one of",
        "kquota.quota.group.a.principals,alice,User:alice",
        "kquota.quota.group.a.principals,User:admin,kquota.exempt.principals",
        "kquota.quota.group.a.principals,~User:(,pattern",
        "kquota.quota.group.a.client.ids,*,exact names",
        "kquota.quota.group.a.principals,User:alice;User:alice,once",
        "kquota.quota.group.b.principals,User:alice,each member once",
        "kquota.quota.group.b.principals,User:x-*,each member once",
        "kquota.quota.produce.overrides,app:4M,one of them",
        "kquota.quota.produce.overrides,db1:4M,in group b",
        "kquota.quota.group.b.produce,3M,either this or",
        "kquota.quota.group.b.topics,'',.*",
        "kquota.quota.group.b.topics,orders-(,pattern",
        "kquota.quota.group.a.topics,orders,only with",
        "kquota.quota.group.a.consume,3M,there is no such property",
        "kquota.quota.group.c.produce,3M,which are a",
        "kquota.quota.producer.default,3M,kquota.quota.produce.default",
    })
    @Tag("C4")
    @Tag("B6")
    void whatContradictsItselfNamesKeyValueAndWhatIsAllowed(String key, String value, String allowed) {
        Map<String, Object> properties = twoGroups();
        properties.put(key, value);
        String message = assertThrows(ConfigException.class, () -> new KquotaConfig(properties)).getMessage();
        String ofTheSame = key.substring(0, key.lastIndexOf('.'));
        assertTrue(message.contains(ofTheSame) && message.contains(value.split(",")[0]) && message.contains(allowed), message);
    }

    @Test
    void everyPropertyOfAGroupIsDocumented() {
        GroupProperties.definition("g").configKeys().values().forEach(key -> assertTrue(key.documentation.strip().endsWith("."), key.name));
    }
}
