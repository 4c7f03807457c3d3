package org.kquota.quota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import javax.security.auth.x500.X500Principal;

/** Patterns among the exempt principals. */
class ExemptPatternTest {
    private static final ExemptPrincipals AGENTS = ExemptPrincipals.parse("User:CN=kquota-agent-*,O=kquota");
    private static final String SEPARATORS_AND_ESCAPES = ",=+\\\"<>;";
    /** Parts of which clients may make their names. */
    private static final List<String> PARTS = List.of("kquota-agent-", "kquota-agent", "kquota", "O=kquota", "CN=kquota-agent-", "7", "a", ",", "=", "+", "\\",
        "\"", "<", ">", ";", "#", " ", "*", ":", "é", "\n");

    private static boolean isExempt(String pattern, String name) {
        return ExemptPrincipals.parse(pattern).contains(new KafkaPrincipal("User", name));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "CN=kquota-agent-1,O=kquota",
        "CN=kquota-agent-broker 7.example.org,O=kquota",
        "CN=kquota-agent-é*,O=kquota",
        "CN=kquota-agent-,O=kquota",
    })
    void aStarStandsForTheRestOfAValue(String name) {
        assertTrue(AGENTS.contains(new KafkaPrincipal("User", name)));
        assertTrue(AGENTS.names("User:" + name));
        assertFalse(AGENTS.contains(new KafkaPrincipal("Group", name)), "another type");
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "CN=kquota-agent-1",
        "CN=kquota-agent-1,O=evil",
        "CN=kquota-agent-1,O=kquota,O=evil",
        "CN=kquota-agent-1,O=evil,O=kquota",
        "CN=kquota-agent-1+OU=x,O=kquota",
        "OU=x,CN=kquota-agent-1,O=kquota",
        "CN=x\\,CN\\=kquota-agent-1,O=kquota",
        "CN=kquota-agent-1\\,O\\=kquota,O=evil",
        "CN=kquota-agent-1\\,O=kquota",
        "CN=kquota-agent-\\2C,O=kquota",
        "CN=kquota-agent,O=kquota",
        "CN=Kquota-agent-1,O=kquota",
        "CN=kquota-agent-1,O=kquota ",
        "CN=kquota-agent-*,O=kquot",
        "",
    })
    void noOtherNameMatches(String name) {
        assertFalse(AGENTS.contains(new KafkaPrincipal("User", name)), name);
    }

    @Test
    void noCharacterThatSeparatesOrEscapesIsInTheRun() {
        for (int i = 0; i < SEPARATORS_AND_ESCAPES.length(); i++) {
            for (String run : List.of("%c1", "1%c", "1%c1", "%c")) {
                String name = "CN=kquota-agent-" + String.format(run, SEPARATORS_AND_ESCAPES.charAt(i)) + ",O=kquota";
                assertFalse(AGENTS.contains(new KafkaPrincipal("User", name)), name);
            }
        }
    }

    @Test
    void beginningAndEndDoNotShareCharacters() {
        assertFalse(isExempt("User:CN=ab*ba,O=x", "CN=aba,O=x"));
        assertTrue(isExempt("User:CN=ab*ba,O=x", "CN=abba,O=x"));
        assertTrue(isExempt("User:CN=ab*ba,O=x", "CN=ab-ba,O=x"));
    }

    private record Attribute(int type, String value) {
        static final int CN = 3;
        static final int O = 10;
        static final int OU = 11;
    }

    private static byte[] der(int tag, byte[]... contents) {
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        Arrays.stream(contents).forEach(content::writeBytes);
        ByteArrayOutputStream encoded = new ByteArrayOutputStream();
        encoded.write(tag);
        if (content.size() > 255) {
            encoded.writeBytes(new byte[] {(byte) 0x82, (byte) (content.size() >> 8)});
        } else if (content.size() > 127) {
            encoded.write(0x81);
        }
        encoded.write(content.size());
        encoded.writeBytes(content.toByteArray());
        return encoded.toByteArray();
    }

    /** The name of a certificate's owner as DefaultKafkaPrincipalBuilder has it; some attributes may share a part of it. */
    private static String nameOf(List<List<Attribute>> parts) {
        byte[][] encoded = parts.stream().map(part -> der(0x31, part.stream().map(attribute -> der(0x30, der(6, new byte[] {0x55, 4, (byte) attribute.type}),
            der(12, attribute.value.getBytes(StandardCharsets.UTF_8)))).toArray(byte[][]::new))).toArray(byte[][]::new);
        return new X500Principal(der(0x30, encoded)).getName();
    }

    /** An authority that brokers trust may sign whatever a client asks for. */
    @Test
    void whateverIsInACertificateOnlyACommonNameOfTheOrganizationMatches() {
        int matched = 0;
        Random random = new Random(1);
        for (int round = 0; round < 5_000; round++) {
            List<List<Attribute>> parts = new ArrayList<>();
            for (int i = random.nextInt(3); i >= 0; i--) {
                Attribute attribute = switch (random.nextInt(3)) {
                    case 0 -> new Attribute(Attribute.O, "kquota");
                    case 1 -> new Attribute(random.nextBoolean() ? Attribute.O : Attribute.OU, words(random));
                    default -> new Attribute(Attribute.CN, "kquota-agent-" + words(random));
                };
                if (parts.isEmpty() || random.nextInt(4) > 0) {
                    parts.add(new ArrayList<>());
                }
                parts.get(parts.size() - 1).add(attribute);
            }
            String name = nameOf(parts);
            boolean ours = parts.stream().allMatch(part -> part.size() == 1) && parts.size() == 2
                && parts.get(0).get(0).equals(new Attribute(Attribute.O, "kquota")) && parts.get(1).get(0).type == Attribute.CN
                && parts.get(1).get(0).value.chars().noneMatch(next -> SEPARATORS_AND_ESCAPES.indexOf(next) >= 0);
            boolean exempt = AGENTS.contains(new KafkaPrincipal("User", name));
            assertTrue(ours || !exempt, name);
            matched += exempt ? 1 : 0;
        }
        assertTrue(matched > 10, matched + " matched");
    }

    private static String words(Random random) {
        return IntStream.rangeClosed(0, random.nextInt(4)).mapToObj(i -> PARTS.get(random.nextInt(PARTS.size()))).collect(Collectors.joining());
    }

    @Test
    void anyTextMatchesByBeginningAndEndWithARunBetween() {
        String[][] patterns = {{"User:CN=kquota-agent-", ",O=kquota"}, {"User:CN=a", ""}, {"User:O=kquota,CN=a", "a"}};
        int matched = 0;
        Random random = new Random(1);
        for (int round = 0; round < 5_000; round++) {
            String[] pattern = patterns[round % patterns.length];
            String text = (random.nextInt(8) == 0 ? "" : pattern[0]) + words(random) + (random.nextInt(8) == 0 ? "" : pattern[1]);
            boolean wanted = text.length() >= pattern[0].length() + pattern[1].length() && text.startsWith(pattern[0]) && text.endsWith(pattern[1])
                && text.substring(pattern[0].length(), text.length() - pattern[1].length()).matches("(?s)[^,=+\\\\\"<>;]*");
            assertEquals(wanted, ExemptPrincipals.parse(pattern[0] + "*" + pattern[1]).names(text), text);
            matched += wanted ? 1 : 0;
        }
        assertTrue(matched > 300, matched + " matched");
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "User:*", "*", "*:*", "User:agent-*", "User:CN=*", "User:CN=*,O=x", "User:CN=agent,O=*", "User:CN=agent+OU=*,O=x", "User:CN=agent-*,O=*", "*:CN=agent",
        "Us*r:CN=agent,O=x", "Us*r:CN=agent-*,O=x", "C=a*:CN=agent", "User:CN=agent-*-*,O=x", "User:CN=agent-**", "User:=agent-*", "User:CN*=agent,O=x", "User:CN=agent,O*=x",
        "User:CN=agent,agent-*", "User:CN=agent,=agent-*", "User:CN=agent+agent-*", "User:CN=agent+=agent-*", "User:CN\\=agent-*",
    })
    void aStarElsewhereIsRefusedWithASentence(String entry) {
        String message = assertThrows(IllegalArgumentException.class, () -> ExemptPrincipals.parse("User:admin;" + entry)).getMessage();
        assertTrue(message.contains("'" + entry + "'") && message.contains("allowed is a list of principals") && message.contains("User:CN=agent-*,O=x"), message);
    }

    @Test
    void theSentenceNamesWhatIsWrong() {
        String twice = assertThrows(IllegalArgumentException.class, () -> ExemptPrincipals.parse("User:CN=a*b*")).getMessage();
        assertTrue(twice.contains("more than one *"), twice);
        String broad = assertThrows(IllegalArgumentException.class, () -> ExemptPrincipals.parse("User:*")).getMessage();
        assertTrue(broad.contains("follows no character of an attribute value"), broad);
        String typeless = assertThrows(IllegalArgumentException.class, () -> ExemptPrincipals.parse("*:CN=a")).getMessage();
        assertTrue(typeless.contains("a * in the type"), typeless);
        String nameless = assertThrows(IllegalArgumentException.class, () -> ExemptPrincipals.parse("User:")).getMessage();
        assertTrue(nameless.contains("no type or no name"), nameless);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '`', value = {
        "User:CN=a*|CN=ab|CN=a,O=x",
        "User:CN=agent,O=k*|CN=agent,O=kq|CN=agent,O=kq,C=x",
        "User:CN=agent,O=k*,C=x|CN=agent,O=kq,C=x|CN=agent,O=kq",
        "User:CN=a+OU=b*,O=x|CN=a+OU=bc,O=x|CN=a+OU=b+C=c,O=x",
        "User:CN=a=*,O=x|CN=a=b,O=x|CN=a=b=,O=x",
        "User:CN=a:*,O=x|CN=a:b,O=x|CN=ab,O=x",
        "User:CN=a\\,*,O=x|CN=a\\,b,O=x|CN=a\\,b\\,,O=x",
        "User:CN=a\\+*,O=x|CN=a\\+b,O=x|CN=a\\,b,O=x",
        "User:CN=a\\\\*,O=x|CN=a\\\\b,O=x|CN=a\\b,O=x",
        "User:CN=a*\\,b,O=x|CN=ac\\,b,O=x|CN=ac\\\\,b,O=x",
        "User:CN=\\,*,O=x|CN=\\,b,O=x|CN=,b,O=x",
        "User:CN=\\**,O=x|CN=*.example.org,O=x|CN=a,O=x",
    })
    void aStarIsInAnyAttributeAfterAnyCharacter(String pattern, String matching, String other) {
        assertTrue(isExempt(pattern, matching));
        assertFalse(isExempt(pattern, other));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "User:CN=\\*.example.org,O=x|CN=*.example.org,O=x",
        "User:\\*|*",
        "User:a\\|a\\",
        "User:CN=a\\,b,O=x|CN=a\\,b,O=x",
    })
    void aLiteralStaysOne(String entry, String name) {
        assertTrue(isExempt(entry, name));
        assertFalse(isExempt(entry, name.replace('*', 'a') + "b"));
        assertFalse(isExempt(entry, name.replace("*", "") + (name.contains("*") ? "" : "a")));
    }

    @Test
    void theNumberOfPatternsIsBoundedAndThatOfLiteralsIsNot() {
        String allowed = "User:a;" + IntStream.range(0, 32).mapToObj(i -> "User:CN=agent-" + i + "*").collect(Collectors.joining(";"));
        ExemptPrincipals exempt = ExemptPrincipals.parse(allowed + ";User:b;User:CN=agent-7*");
        assertEquals(34, exempt.size());
        assertTrue(exempt.names("User:CN=agent-31-x") && exempt.names("User:CN=agent-0") && exempt.names("User:b"));
        String message = assertThrows(IllegalArgumentException.class, () -> ExemptPrincipals.parse(allowed + ";User:CN=b*")).getMessage();
        assertEquals("there are 33 patterns; allowed are at most 32", message);
        assertEquals("User:CN=agent-*,O=x;User:admin", ExemptPrincipals.parse("User:admin; User:CN=agent-*,O=x").toString());
    }

    @Test
    void whoMatchesAPatternNoMoreIsNotAmongThoseSeen() {
        ExemptSeen seen = new ExemptSeen();
        seen.note("User:CN=kquota-agent-1,O=kquota", "kquota-1-read", 5);
        seen.note("User:CN=kquota-agent-1,O=evil", "kquota-1-read", 6);
        assertEquals(List.of("User:CN=kquota-agent-1,O=kquota"), seen.of(AGENTS).list().stream().map(ExemptSeen.Seen::principal).toList());
    }

    @Test
    void beingAnonymousMatchesNothing() {
        assertFalse(AGENTS.contains(KafkaPrincipal.ANONYMOUS));
        assertThrows(IllegalArgumentException.class, () -> ExemptPrincipals.parse("User:CN=a*;User:ANONYMOUS"));
    }
}
