package org.kquota.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.config.QuotaConfig;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.kquota.decision.Mode;
import org.kquota.decision.LostAction;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

class KquotaConfigTest {
    private static Map<String, Object> properties() {
        return new HashMap<>(Map.of("node.id", "3", KquotaConfig.EXEMPT_PRINCIPALS, "User:admin"));
    }

    @Test
    void theDefaultsObserveAndPause() {
        KquotaConfig config = new KquotaConfig(properties());
        assertEquals(Mode.OBSERVE, config.mode());
        assertEquals(LostAction.PAUSE, config.lostAction());
        assertEquals(Path.of("/run/kquota/decision.json"), config.decisionFile());
        assertEquals(Path.of("/run/kquota-broker/applied.json"), config.appliedFile());
        assertEquals(3, config.nodeId());
        assertTrue(config.isBroker());
        assertEquals(11, config.governor().windowSeconds());
        assertEquals(10, config.governor().muteMaxSeconds());
    }

    @Test
    @Tag("B3")
    void theBrokersOwnWindowsCountElevenOfASecondByDefault() {
        Map<String, Object> kafkas = QuotaConfig.CONFIG_DEF.defaultValues();
        assertEquals(List.of(11, 1), List.of(kafkas.get("quota.window.num"), kafkas.get("quota.window.size.seconds")));
        assertEquals(11, new KquotaConfig(properties()).governor().windowSeconds());
        Map<String, Object> properties = properties();
        properties.put("quota.window.num", "3");
        properties.put("quota.window.size.seconds", "2");
        assertEquals(6, new KquotaConfig(properties).governor().windowSeconds());
    }

    @Test
    void aControllerOnlyNodeIsNoBroker() {
        Map<String, Object> properties = properties();
        properties.put("process.roles", "controller");
        assertFalse(new KquotaConfig(properties).isBroker());
    }

    @ParameterizedTest
    @CsvSource({
        "kquota.mode,Enforce,observe",
        "kquota.decision.file,decision.json,absolute",
        "kquota.applied.file,/,absolute",
        "kquota.decision.lost.action,throttle,open",
        "kquota.exempt.principals,admin,Type:name",
        "kquota.exempt.principals,'',Type:name",
        "kquota.exempt.principals,User:*,'User:CN=agent-*,O=x'",
        "kquota.exempt.principals,User:admin;User:ANONYMOUS,Type:name",
        "kquota.agent.principals,agent,Type:name",
        "kquota.agent.principals,User:*,'User:CN=agent-*,O=x'",
        "kquota.agent.principals,User:agent;User:ANONYMOUS,Type:name",
        "kquota.agent.produce.quota,fast,from 1K to 1000T",
        "kquota.agent.produce.quota,999,from 1K to 1000T",
        "kquota.agent.produce.quota,'',from 1K to 1000T",
        "kquota.tag.sets.max,3,10",
        "kquota.produce.arrival.min.bytes,1,1024",
        "kquota.produce.mute.max.ms,0,100",
        "kquota.produce.newcomers.min.ratio,2,1.0",
        "kquota.produce.newcomers.min.ratio,NaN,1.0",
        "kquota.produce.factor.min.ratio,0.6,0.5",
    })
    void aBadValueNamesKeyValueAndWhatIsAllowed(String key, String value, String allowed) {
        Map<String, Object> properties = properties();
        properties.put(key, value);
        String message = assertThrows(ConfigException.class, () -> new KquotaConfig(properties)).getMessage();
        assertTrue(message.contains(key) && message.contains(value) && message.contains(allowed), message);
    }

    @Test
    @Tag("F32")
    void withoutExemptPrincipalsTheBrokerDoesNotStart() {
        String message = assertThrows(ConfigException.class, () -> new KquotaConfig(Map.of("node.id", "3"))).getMessage();
        assertTrue(message.contains(KquotaConfig.EXEMPT_PRINCIPALS), message);
    }

    @Test
    void aBrokerWithoutAnIdIsRefused() {
        assertThrows(ConfigException.class, () -> new KquotaConfig(Map.of(KquotaConfig.EXEMPT_PRINCIPALS, "User:admin")));
    }

    @Test
    void everyPropertyIsDocumented() {
        KquotaConfig.DEFINITION.configKeys().values().forEach(key -> assertTrue(key.documentation.endsWith("."), key.name));
    }

    @Test
    @Tag("C12")
    void theModeOfAChangeDefaultsToObserve() {
        assertEquals(Mode.ENFORCE, KquotaConfig.modeOf(Map.of(KquotaConfig.MODE, "enforce")));
        assertEquals(Mode.OBSERVE, KquotaConfig.modeOf(Map.of()));
        assertThrows(ConfigException.class, () -> KquotaConfig.modeOf(Map.of(KquotaConfig.MODE, "on")));
    }
}
