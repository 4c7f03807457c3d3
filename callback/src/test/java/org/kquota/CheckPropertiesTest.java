package org.kquota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** The check of a server.properties before you restart a broker with it. */
class CheckPropertiesTest {
    private static final String SOUND = "node.id=1\nssl.key.password=hunter2\nclient.quota.callback.class=org.kquota.KquotaCallback\n"
        + "kquota.exempt.principals=User:agent\nkquota.quota.groups=a\nkquota.quota.group.a.client.ids=app-*\nkquota.quota.group.a.produce=2M\n";

    @TempDir
    private Path directory;

    private record Said(int code, String text) {
    }

    private Said check(String properties) throws IOException {
        Path file = directory.resolve("server.properties");
        Files.writeString(file, properties);
        ByteArrayOutputStream text = new ByteArrayOutputStream();
        PrintStream before = System.err;
        System.setErr(new PrintStream(text, true, StandardCharsets.UTF_8));
        try {
            return new Said(CheckProperties.run(file.toString()), text.toString(StandardCharsets.UTF_8));
        } finally {
            System.setErr(before);
        }
    }

    @Test
    void aSoundFileIsTakenWithoutAWord() throws IOException {
        assertEquals(new Said(0, ""), check(SOUND));
    }

    @Test
    void whatTheBrokerWouldNotStartWithIsNamedAndNothingElse() throws IOException {
        Said said = check(SOUND + "kquota.quota.group.a.produce=2MB\n");
        assertEquals(78, said.code());
        assertTrue(said.text().contains("kquota.quota.group.a.produce") && said.text().contains("2MB"), said.text());
        assertFalse(said.text().contains("hunter2"), said.text());
    }

    @Test
    void aLoneHyphenIsStandardInput() {
        InputStream before = System.in;
        System.setIn(new ByteArrayInputStream((SOUND + "kquota.mode=perhaps\n").getBytes(StandardCharsets.UTF_8)));
        try {
            assertEquals(78, CheckProperties.run("-"));
        } finally {
            System.setIn(before);
        }
    }

    @Test
    void theFenceWithoutTheCallbackIsRefused() throws IOException {
        Said said = check(SOUND + "authorizer.class.name=org.kquota.KquotaAuthorizer\nclient.quota.callback.class=\n");
        assertEquals(78, said.code());
        assertTrue(said.text().contains("client.quota.callback.class"), said.text());
    }

    @Test
    void theClassesWithoutMetricsAreCheckedToo() throws IOException {
        String fence = SOUND + "kquota.fence.authorizer.class=none\nauthorizer.class.name=org.kquota.AuthorizerWithoutMetrics\nclient.quota.callback.class=";
        assertEquals(78, check(fence + "\n").code());
        assertEquals(new Said(0, ""), check(fence + "org.kquota.CallbackWithoutMetrics\n"));
        assertEquals(new Said(0, ""), check(fence + "org.kquota.KquotaCallback\n"));
    }

    @Test
    void aFenceWithoutAWordOfWhatItWrapsIsRefused() throws IOException {
        String fence = SOUND + "authorizer.class.name org.kquota.KquotaAuthorizer\nkquota.fence.authorizer.class";
        Said said = check(fence + "=\n");
        assertEquals(78, said.code());
        assertTrue(said.text().contains("kquota.fence.authorizer.class") && said.text().contains("none"), said.text());
        assertEquals(new Said(0, ""), check(fence + " none\n"));
    }

    @Test
    void theFileIsReadInTheCharacterSetOfTheBroker() throws IOException {
        Path file = directory.resolve("server.properties");
        Files.writeString(file, SOUND + "# d\u00e9j\u00e0 vu\n", StandardCharsets.ISO_8859_1);
        assertEquals(0, CheckProperties.run(file.toString()));
    }

    @Test
    void aMissingFileIsReported() {
        assertEquals(66, CheckProperties.run(directory.resolve("absent.properties").toString()));
        assertEquals(64, CheckProperties.run());
    }
}
