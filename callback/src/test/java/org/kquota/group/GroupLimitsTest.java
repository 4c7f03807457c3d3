package org.kquota.group;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.re2j.Pattern;

import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.kquota.share.LedPartitions;
import org.kquota.share.PartitionShare;

import java.util.List;
import java.util.Map;

/** The limits of a group, and its members. */
class GroupLimitsTest {
    private static final ClientQuotaType PRODUCE = ClientQuotaType.PRODUCE;
    private static final ClientQuotaType FETCH = ClientQuotaType.FETCH;

    private static Group onEachBroker(String name) {
        return new Group(name, null, Map.of(PRODUCE, new GroupLimit(5e6, null)));
    }

    private static Group inTheCluster(String name, String topics) {
        PartitionShare share = new PartitionShare(Pattern.compile(topics));
        return new Group(name, share, Map.of(PRODUCE, new GroupLimit(8e6, share)));
    }

    private static LedPartitions led(String topic, int all, int here) {
        return new LedPartitions(Map.of(topic, new LedPartitions.Count(all, here)));
    }

    private static Groups groups(Group... groups) {
        GroupsBuilder builder = new GroupsBuilder();
        for (Group group : groups) {
            builder.add(group);
        }
        return builder.build();
    }

    @Test
    void aLimitOnEachBrokerIsTheSameWhicheverBrokerLeads() {
        Group group = onEachBroker("g");
        assertTrue(group.limits(PRODUCE));
        assertEquals(5e6, group.limit(PRODUCE));
        assertFalse(group.limits(FETCH));
        assertNull(group.limit(FETCH));
        assertNull(group.partitions());
        assertFalse(group.update(led("orders", 4, 1)));
        assertEquals(5e6, group.limit(PRODUCE));
        assertEquals("g", group.toString());
    }

    @Test
    void aLimitInTheClusterIsThisBrokersShareOfIt() {
        Group group = inTheCluster("g", "orders");
        assertEquals(8e6, group.limit(PRODUCE));
        assertTrue(group.update(led("orders", 4, 1)));
        assertEquals(2e6, group.limit(PRODUCE));
        assertEquals(new LedPartitions.Count(4, 1), group.partitions());
        assertFalse(group.update(led("orders", 8, 2)), "the share is the same");
    }

    @Test
    void refusalsOfItsMembersAreCounted() {
        Group group = onEachBroker("g");
        assertEquals(0, group.refusals());
        group.refused();
        group.refused();
        assertEquals(2, group.refusals());
    }

    @Test
    void aGroupIsFoundByItsTagAndAllAreListedInTheirOrder() {
        Group zebra = onEachBroker("zebra");
        Group ant = onEachBroker("ant");
        Groups groups = groups(zebra, ant);
        assertSame(zebra, groups.ofTag("<group>zebra"));
        assertSame(ant, groups.ofTag(ant.meteredAs().user()));
        assertNull(groups.ofTag("zebra"));
        assertNull(groups.ofTag("<group>other"));
        assertEquals(List.of(zebra, ant), List.copyOf(groups.all()));
    }

    @Test
    void theGroupsSayWhetherAnyLimitIsAnotherOneNow() {
        Groups groups = groups(inTheCluster("one", "orders"), inTheCluster("two", "other"), onEachBroker("three"));
        assertTrue(groups.update(led("orders", 4, 1)), "the first");
        assertFalse(groups.update(led("orders", 4, 1)));
        LedPartitions both = new LedPartitions(Map.of("orders", new LedPartitions.Count(4, 1), "other", new LedPartitions.Count(4, 3)));
        assertTrue(groups.update(both), "the second");
        assertFalse(groups.update(both));
    }

    @ParameterizedTest
    @ValueSource(strings = {"alice", ":alice"})
    void aPrincipalNeedsAType(String entry) {
        GroupsBuilder builder = new GroupsBuilder();
        Group group = onEachBroker("g");
        String message = assertThrows(IllegalArgumentException.class, () -> builder.addPrincipal(entry, group)).getMessage();
        assertTrue(message.contains("'" + entry + "' has no type"), message);
        builder.addPrincipal("~.*alice", group);
        builder.addPrincipal("User:alice", group);
    }

    @ParameterizedTest
    @ValueSource(strings = {"User:app", "User:app*", "~User:app"})
    void aMemberIsClaimedOnce(String entry) {
        GroupsBuilder builder = new GroupsBuilder();
        Group one = onEachBroker("one");
        Group two = onEachBroker("two");
        builder.addPrincipal(entry, one);
        builder.addClientId(entry, one);
        for (String twice : List.of(assertThrows(IllegalArgumentException.class, () -> builder.addPrincipal(entry, one)).getMessage(),
                assertThrows(IllegalArgumentException.class, () -> builder.addClientId(entry, one)).getMessage())) {
            assertEquals("'" + entry + "' is there twice; allowed is each member once", twice);
        }
        for (String too : List.of(assertThrows(IllegalArgumentException.class, () -> builder.addPrincipal(entry, two)).getMessage(),
                assertThrows(IllegalArgumentException.class, () -> builder.addClientId(entry, two)).getMessage())) {
            assertEquals("'" + entry + "' is in group one, too; allowed is each member once", too);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"app", "app*", "~app"})
    void oneEntryOfAnyKindIsEnough(String entry) {
        GroupsBuilder builder = new GroupsBuilder();
        Group group = onEachBroker("g");
        builder.add(group);
        builder.addClientId(entry, group);
        assertSame(group, builder.build().ofClientId("app"));
    }

    /** Client ids are whatever clients send. */
    @Test
    void rememberedClientIdsAreBoundedInNumberAndLength() {
        GroupsBuilder builder = new GroupsBuilder();
        Group group = onEachBroker("g");
        builder.add(group);
        builder.addClientId("app-*", group);
        Groups groups = builder.build();
        groups.ofClientId("x".repeat(256));
        assertEquals(1, groups.rememberedClientIds());
        groups.ofClientId("x".repeat(257));
        assertEquals(1, groups.rememberedClientIds(), "too long");
        for (int i = 1; i < 20_000; i++) {
            assertSame(group, groups.ofClientId("app-" + i));
        }
        assertEquals(20_000, groups.rememberedClientIds());
        assertSame(group, groups.ofClientId("app-1"));
        assertSame(group, groups.ofClientId("app-new"));
        assertEquals(1, groups.rememberedClientIds(), "room was made");
    }

    @Test
    void whereNoGroupHasClientIdsNoneIsRemembered() {
        Groups groups = groups(onEachBroker("g"));
        assertNull(groups.ofClientId("app"));
        assertEquals(0, groups.rememberedClientIds());
    }
}
