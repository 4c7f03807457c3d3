package org.kquota.quota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

@Tag("A17")
class ExemptionTest {
    @Test
    void distinguishedNamesKeepTheirCommas() {
        ExemptPrincipals exempt = ExemptPrincipals.parse(" User:CN=agent,O=x ; User:admin;");
        assertTrue(exempt.contains(new KafkaPrincipal("User", "CN=agent,O=x")));
        assertTrue(exempt.contains(new KafkaPrincipal("User", "admin")));
        assertFalse(exempt.contains(new KafkaPrincipal("User", "CN=agent")));
        assertTrue(exempt.names("User:admin"));
        assertFalse(exempt.names("admin"));
        assertEquals("User:CN=agent,O=x;User:admin", exempt.toString());
    }

    @Test
    void typeAndNameMustBothMatchExactly() {
        ExemptPrincipals exempt = ExemptPrincipals.parse("User:admin");
        assertFalse(exempt.contains(new KafkaPrincipal("Group", "admin")));
        assertFalse(exempt.contains(new KafkaPrincipal("User", "Admin")));
        assertFalse(exempt.contains(new KafkaPrincipal("User", "admin ")));
        assertFalse(exempt.contains(KafkaPrincipal.ANONYMOUS));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " ", ";", "admin", ":admin", "User:", "User:CN=a*;:admin", "User:admin;User:ANONYMOUS"})
    void aListThatExemptsNoneOrAllIsRefused(String text) {
        assertThrows(IllegalArgumentException.class, () -> ExemptPrincipals.parse(text));
    }

    @Test
    void anAgentIsOneOfTheExemptPrincipalsOnly() {
        ExemptPrincipals exempt = ExemptPrincipals.parse("User:CN=agent-*,O=x;User:admin").withAgents("User:CN=agent-*,O=x;User:alice", 5000);
        assertTrue(exempt.isAgent(new KafkaPrincipal("User", "CN=agent-7,O=x")));
        assertFalse(exempt.isAgent(new KafkaPrincipal("User", "admin")));
        assertFalse(exempt.isAgent(new KafkaPrincipal("User", "alice")), "it is not exempt");
        assertEquals(5000, exempt.agentQuota());
        ExemptPrincipals without = exempt.withAgents(" ", 5000);
        assertFalse(without.isAgent(new KafkaPrincipal("User", "CN=agent-7,O=x")));
        assertTrue(without.contains(new KafkaPrincipal("User", "CN=agent-7,O=x")));
    }

    @Test
    void noUserNameCanBeOneOfOurTags() {
        for (Map<String, String> ours : List.of(Tags.PAUSED, Tags.NEWCOMERS, Tags.OVERFLOW, Tags.exempt("admin"), Tags.agent("admin"))) {
            String user = ours.get(Tags.USER);
            assertFalse(KafkaNames.sanitized(user).equals(user), user);
        }
    }

    @Test
    void whoIsSeenAgainIsNotForgotten() {
        ExemptSeen seen = new ExemptSeen();
        seen.note("User:admin", "app", 5);
        seen.note("User:admin", "app", 20);
        assertEquals(20, seen.list().get(0).latestSeconds());
        seen.forgetUnseenSince(20);
        assertEquals(Map.of("app", 20), seen.list().get(0).lastSeenSeconds());
    }

    @Test
    void whoWasSeenIsBoundedAndTheLatestStay() {
        ExemptSeen seen = new ExemptSeen();
        for (int i = 0; i < 1000; i++) {
            seen.note("User:admin", "client-" + i, i);
        }
        seen.note("User:admin", "x".repeat(100_000), 1000);
        ExemptSeen.Seen admin = seen.list().get(0);
        assertEquals(256, admin.lastSeenSeconds().size());
        assertEquals(1000, admin.latestSeconds());
        assertEquals(Set.copyOf(IntStream.range(745, 1000).mapToObj(i -> "client-" + i).toList()),
            admin.lastSeenSeconds().keySet().stream().filter(id -> id.startsWith("client")).collect(Collectors.toSet()));
        assertTrue(admin.lastSeenSeconds().keySet().stream().allMatch(id -> id.length() <= 256));
        seen.forgetUnseenSince(1000);
        assertEquals(1, seen.list().get(0).lastSeenSeconds().size());
        seen.forgetUnseenSince(1001);
        assertEquals(List.of(), seen.list());
    }

    @Test
    void whoeverAPatternExemptsThoseSeenAreBounded() {
        ExemptSeen seen = new ExemptSeen();
        for (int i = 0; i < 4096; i++) {
            seen.note("User:CN=agent-" + i, "app", i);
        }
        assertEquals(4096, seen.list().size());
        seen.note("User:CN=agent-7", "app", 5000);
        assertEquals(4096, seen.list().size(), "known already");
        seen.note("User:CN=new", "app", 5000);
        seen.note("User:CN=agent-7", "app", 5000);
        assertEquals(List.of("User:CN=agent-7", "User:CN=new"), seen.list().stream().map(ExemptSeen.Seen::principal).toList());
        for (int i = 0; i < 4093; i++) {
            seen.note("User:CN=agent-" + (i + 100), "app", 5000);
        }
        seen.forgetUnseenSince(5001);
        seen.note("User:a", "app", 5001);
        seen.note("User:b", "app", 5001);
        assertEquals(2, seen.list().size(), "those that were forgotten have left room");
    }

    @Test
    void whoIsExemptNoMoreIsNotAmongThoseSeen() {
        ExemptSeen seen = new ExemptSeen();
        seen.note("User:admin", "app", 5);
        seen.note("User:former", "app", 6);
        List<ExemptSeen.Seen> still = seen.of(ExemptPrincipals.parse("User:admin")).list();
        assertEquals(List.of(new ExemptSeen.Seen("User:admin", Map.of("app", 5))), still);
    }
}
