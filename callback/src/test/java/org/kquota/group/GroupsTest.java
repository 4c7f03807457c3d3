package org.kquota.group;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;

class GroupsTest {
    private static Group group(String name) {
        return new Group(name, null, Map.of(ClientQuotaType.PRODUCE, new GroupLimit(1e6, null)));
    }

    private static Groups byClientId(Map<String, String> groupOfEntry) {
        GroupsBuilder groups = new GroupsBuilder();
        groupOfEntry.values().stream().distinct().sorted().forEach(name -> {
            Group group = group(name);
            groups.add(group);
            groupOfEntry.forEach((entry, of) -> {
                if (of.equals(name)) {
                    groups.addClientId(entry, group);
                }
            });
        });
        return groups.build();
    }

    private static String nameOf(Group group) {
        return group == null ? null : group.name();
    }

    @Test
    @Tag("C4")
    void theMostSpecificEntryCounts() {
        Groups groups = byClientId(Map.of("~app.*", "pattern", "app-*", "prefix", "app-db-*", "longer", "app-db-1", "exact"));
        assertEquals("exact", nameOf(groups.ofClientId("app-db-1")));
        assertEquals("longer", nameOf(groups.ofClientId("app-db-2")));
        assertEquals("prefix", nameOf(groups.ofClientId("app-x")));
        assertEquals("pattern", nameOf(groups.ofClientId("apps")));
        assertNull(groups.ofClientId("an app"));
    }

    @Test
    @Tag("C4")
    void ofSeveralPatternsTheFirstGroupsCounts() {
        assertEquals("a", nameOf(byClientId(Map.of("~x.*", "a", "~.*y", "b")).ofClientId("x-y")));
        assertEquals("a", nameOf(byClientId(Map.of("~x.*", "b", "~.*y", "a")).ofClientId("x-y")));
    }

    @Test
    void aPrincipalIsMatchedWithItsType() {
        GroupsBuilder builder = new GroupsBuilder();
        Group group = group("g");
        builder.add(group);
        builder.addPrincipal("User:alice", group);
        Groups groups = builder.build();
        assertEquals(group, groups.ofPrincipal(new KafkaPrincipal("User", "alice")));
        assertNull(groups.ofPrincipal(new KafkaPrincipal("Group", "alice")));
    }

    @Test
    @Tag("C4")
    void whateverTheEntriesARequestIsInOneGroupAtMostAndAlwaysInTheSame() {
        int members = 0;
        for (int seed = 0; seed < 300; seed++) {
            Random random = new Random(seed);
            Map<String, String> entries = new java.util.HashMap<>();
            for (int i = 0; i < 8; i++) {
                String text = word(random);
                entries.put(switch (random.nextInt(3)) {
                    case 0 -> text;
                    case 1 -> text + "*";
                    default -> "~" + text + "[a-b]*";
                }, "g" + random.nextInt(4));
            }
            Groups groups = byClientId(entries);
            for (int i = 0; i < 30; i++) {
                String clientId = word(random);
                String expected = mostSpecific(entries, clientId);
                assertEquals(expected, nameOf(groups.ofClientId(clientId)), () -> clientId + " in " + entries);
                assertEquals(expected, nameOf(groups.ofClientId(clientId)), () -> clientId + " the second time");
                members += expected == null ? 0 : 1;
            }
        }
        assertTrue(members > 2000, "too few members show nothing: " + members);
    }

    private static String word(Random random) {
        StringBuilder word = new StringBuilder();
        for (int i = random.nextInt(3); i >= 0; i--) {
            word.append((char) ('a' + random.nextInt(2)));
        }
        return word.toString();
    }

    /** The rule in its plainest form: rank every entry that matches. */
    private static String mostSpecific(Map<String, String> entries, String clientId) {
        List<Map.Entry<String, String>> matching = new ArrayList<>();
        entries.entrySet().stream().filter(entry -> matches(entry.getKey(), clientId)).forEach(matching::add);
        return matching.stream().min((one, two) -> {
            int byRank = Integer.compare(rank(one.getKey()), rank(two.getKey()));
            return byRank != 0 ? byRank : one.getValue().compareTo(two.getValue());
        }).map(Map.Entry::getValue).orElse(null);
    }

    private static boolean matches(String entry, String clientId) {
        return entry.startsWith("~") ? clientId.matches(entry.substring(1))
            : entry.endsWith("*") ? clientId.startsWith(entry.substring(0, entry.length() - 1)) : entry.equals(clientId);
    }

    private static int rank(String entry) {
        return entry.startsWith("~") ? 1000 : entry.endsWith("*") ? 100 - entry.length() : 0;
    }

    @Test
    void aHostileClientIdCannotHangARequestThread() {
        Groups groups = byClientId(Map.of("~(a+)+b", "g"));
        String hostile = "a".repeat(30_000);
        assertTimeoutPreemptively(Duration.ofSeconds(60), () -> assertNull(groups.ofClientId(hostile)));
    }
}
