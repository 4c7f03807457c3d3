package org.kquota.broker;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.kquota.applied.AppliedState;
import org.kquota.decision.BootClock;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

import javax.management.MBeanServerConnection;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

import com.sun.tools.attach.VirtualMachine;

/**
 * A real broker of its own process, both roles in one, on loopback, where clients authenticate by name; and the local
 * agent's part: its decision file. The user admin is exempt.
 */
final class LiveBroker implements AutoCloseable {
    static final String AGENT = "admin";
    static final int WINDOW_SECONDS = 3;
    /** A name as certificates have it, and one that an authority of others might sign. */
    static final String OF_A_CERTIFICATE = "CN=kquota-agent-7,O=kquota";
    static final String OF_ANOTHER_CERTIFICATE = "CN=kquota-agent-7,O=kquota,O=other";
    /** Where the jars of another Kafka are that brokers run on, while these tests and the plug-in are compiled against this one; empty for the same. */
    private static final String OTHER_KAFKA = System.getProperty("kquota.broker.jars", "");
    /** Kafka has a place for metrics of plug-ins from 4.1 on; the other one here is 4.0. */
    static final boolean HAS_METRICS = OTHER_KAFKA.isEmpty();
    static final String CALLBACK = HAS_METRICS ? "org.kquota.KquotaCallback" : "org.kquota.CallbackWithoutMetrics";
    static final String AUTHORIZER = HAS_METRICS ? "org.kquota.KquotaAuthorizer" : "org.kquota.AuthorizerWithoutMetrics";
    private static final String[] USERS = {AGENT, "alice", "bob", "carol", "dave", OF_A_CERTIFICATE, OF_ANOTHER_CERTIFICATE};

    private final Path directory;
    private final String clusterId = Uuid.randomUuid().toString();
    private final BootClock bootClock = new BootClock();
    private final ReservedPorts ports = new ReservedPorts();
    private final int clientPort;
    private Process process;
    private long sequence;

    /**
     * Formats and starts a broker.
     *
     * @param settings properties in addition to those of every broker here; a null value removes one of them
     */
    LiveBroker(Path directory, Map<String, String> settings) throws Exception {
        this(directory, settings, true);
    }

    private LiveBroker(Path directory, Map<String, String> settings, boolean mustServe) throws Exception {
        this.directory = directory;
        Files.createDirectories(decisionFile().getParent(),
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwxr-xr-x")));
        Files.createDirectories(appliedFile().getParent());
        clientPort = ports.next();
        Properties properties = properties(ports.next());
        settings.forEach((key, value) -> {
            if (value == null) {
                properties.remove(key);
            } else {
                properties.setProperty(key, value);
            }
        });
        Path file = directory.resolve("server.properties");
        try (var out = Files.newOutputStream(file)) {
            properties.store(out, null);
        }
        Process format = java("kafka.tools.StorageTool", "format", "-t", clusterId, "-c", file.toString());
        if (!format.waitFor(60, TimeUnit.SECONDS)) {
            format.destroyForcibly().waitFor();
        }
        this.process = java("kafka.Kafka", file.toString());
        if (mustServe) {
            try {
                awaitServing();
            } catch (Throwable e) {
                close();
                throw e;
            }
        }
    }

    /** A broker that is expected to refuse its configuration; it is left to exit. */
    static LiveBroker refusing(Path directory, Map<String, String> settings) throws Exception {
        return new LiveBroker(directory, settings, false);
    }

    private Properties properties(int controllerPort) {
        Properties properties = new Properties();
        properties.setProperty("node.id", "1");
        properties.setProperty("process.roles", "broker,controller");
        properties.setProperty("controller.quorum.voters", "1@127.0.0.1:" + controllerPort);
        properties.setProperty("controller.listener.names", "CONTROLLER");
        properties.setProperty("listeners", "CLIENTS://127.0.0.1:" + clientPort + ",CONTROLLER://127.0.0.1:" + controllerPort);
        properties.setProperty("advertised.listeners", "CLIENTS://127.0.0.1:" + clientPort);
        properties.setProperty("listener.security.protocol.map", "CLIENTS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT");
        properties.setProperty("inter.broker.listener.name", "CLIENTS");
        properties.setProperty("sasl.enabled.mechanisms", "PLAIN");
        properties.setProperty("sasl.mechanism.inter.broker.protocol", "PLAIN");
        StringBuilder jaas = new StringBuilder("org.apache.kafka.common.security.plain.PlainLoginModule required "
            + "username=\"admin\" password=\"admin-pass\"");
        for (String user : USERS) {
            jaas.append(" \"user_").append(user).append("\"=\"").append(user).append("-pass\"");
        }
        properties.setProperty("listener.name.clients.plain.sasl.jaas.config", jaas.append(';').toString());
        properties.setProperty("log.dirs", directory.resolve("data").toString());
        properties.setProperty("offsets.topic.replication.factor", "1");
        properties.setProperty("offsets.topic.num.partitions", "1");
        properties.setProperty("num.partitions", "1");
        properties.setProperty("log.cleaner.dedupe.buffer.size", "2097152");
        properties.setProperty("group.initial.rebalance.delay.ms", "0");
        properties.setProperty("quota.window.num", String.valueOf(WINDOW_SECONDS));
        properties.setProperty("client.quota.callback.class", CALLBACK);
        properties.setProperty("kquota.mode", "enforce");
        properties.setProperty("kquota.decision.file", decisionFile().toString());
        properties.setProperty("kquota.applied.file", appliedFile().toString());
        properties.setProperty("kquota.exempt.principals", "User:" + AGENT);
        return properties;
    }

    private static String classPath() {
        String own = System.getProperty("java.class.path");
        if (OTHER_KAFKA.isEmpty()) {
            return own;
        }
        Stream<String> classes = Arrays.stream(own.split(File.pathSeparator)).filter(entry -> !entry.endsWith(".jar") || entry.endsWith("-test.jar"));
        return Stream.concat(classes, Stream.of(OTHER_KAFKA + "/*")).collect(Collectors.joining(File.pathSeparator));
    }

    private Process java(String... command) throws IOException {
        List<String> line = new ArrayList<>(List.of(System.getProperty("java.home") + "/bin/java", "-Xmx384m", "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1", "-Dkquota.test.log.level=warn", "-cp", classPath()));
        line.addAll(List.of(command));
        return new ProcessBuilder(line).redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(logFile().toFile())).start();
    }

    /** Ends the broker and starts it again, with its logs and its configuration. */
    void restart() throws Exception {
        stop();
        process = java("kafka.Kafka", directory.resolve("server.properties").toString());
        awaitServing();
    }

    private void awaitServing() throws Exception {
        try (Admin admin = admin()) {
            for (int attempt = 0; attempt < 60; attempt++) {
                if (!process.isAlive()) {
                    break;
                }
                try {
                    admin.describeCluster().nodes().get(2, TimeUnit.SECONDS);
                    return;
                } catch (java.util.concurrent.ExecutionException | java.util.concurrent.TimeoutException e) {
                    Thread.sleep(200);
                }
            }
        }
        throw new AssertionError("the broker does not serve:\n" + log());
    }

    Path decisionFile() {
        return directory.resolve("decision/decision.json");
    }

    Path appliedFile() {
        return directory.resolve("applied/applied.json");
    }

    private Path logFile() {
        return directory.resolve("broker.log");
    }

    String log() throws IOException {
        return Files.readString(logFile());
    }

    Process process() {
        return process;
    }

    // ---- the agent's part

    void decide(String state, double factor) throws IOException {
        decide(state, factor, "enforce", 60_000);
    }

    void decide(String state, double factor, String mode, long leaseMs) throws IOException {
        replaceDecision(decision(state, factor, mode, leaseMs));
    }

    /** A decision whose scope is topics: the factor of each, as a JSON object. */
    void decideTopics(String state, double factor, String topics) throws IOException {
        replaceDecision(decision(state, factor, "enforce", 600_000).replace("\"fallback\"", "\"scope\": \"topics\", \"topics\": " + topics + ", \"fallback\""));
    }

    String decision(String state, double factor, String mode, long leaseMs) throws IOException {
        return String.format(Locale.ROOT, "{\"schema_version\": 1, \"cluster_id\": \"%s\", \"broker_id\": 1, \"sequence\": %d, \"mode\": \"%s\", "
                + "\"state\": \"%s\", \"factor\": %.6f, \"fallback\": false, \"hold\": null, \"reasons\": [], \"undetermined\": [], "
                + "\"decided_at\": \"2026-11-20T10:15:30Z\", \"valid_until\": \"2026-11-20T10:16:00Z\", \"boot_id\": \"%s\", "
                + "\"valid_until_uptime_ms\": %d}",
            clusterId, ++sequence, mode, state, factor, bootClock.bootId(), bootClock.uptimeMs() + leaseMs);
    }

    void replaceDecision(String text) throws IOException {
        Path temporary = decisionFile().resolveSibling("decision.tmp");
        Files.deleteIfExists(temporary);
        Files.writeString(temporary, text);
        Files.setPosixFilePermissions(temporary, PosixFilePermissions.fromString("rw-r--r--"));
        Files.move(temporary, decisionFile(), StandardCopyOption.ATOMIC_MOVE);
    }

    AppliedState applied() throws IOException {
        return AppliedState.fromJson(Files.readAllBytes(appliedFile()));
    }

    /** Waits until the applied-state file shows this. */
    AppliedState awaitApplied(String what, java.util.function.Predicate<AppliedState> condition) throws Exception {
        AppliedState[] last = new AppliedState[1];
        await(what, () -> {
            try {
                last[0] = applied();
                return condition.test(last[0]);
            } catch (NoSuchFileException e) {
                return false;
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }, () -> String.valueOf(last[0]));
        return last[0];
    }

    static void await(String what, BooleanSupplier condition) throws Exception {
        await(what, condition, () -> "");
    }

    static void await(String what, BooleanSupplier condition, java.util.function.Supplier<String> story) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("it did not come to: " + what + "; " + story.get());
            }
            Thread.sleep(20);
        }
    }

    /** Waits until it has been the same for a second, when all that was authorized before a pause is appended. */
    static <T> T atRest(String what, Callable<T> look) throws Exception {
        List<T> last = new ArrayList<>(List.of(look.call()));
        await(what, () -> {
            try {
                Thread.sleep(1_000);
                last.add(look.call());
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
            return last.get(last.size() - 1).equals(last.get(last.size() - 2));
        });
        return last.get(last.size() - 1);
    }

    // ---- clients

    Map<String, Object> clientSettings(String user, String clientId) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", "127.0.0.1:" + clientPort);
        settings.put("client.id", clientId);
        settings.put("security.protocol", "SASL_PLAINTEXT");
        settings.put("sasl.mechanism", "PLAIN");
        settings.put("sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"" + user
            + "\" password=\"" + user + "-pass\";");
        return settings;
    }

    Admin admin() {
        return Admin.create(clientSettings(AGENT, "kquota-1-admin"));
    }

    /**
     * Has the broker lead this topic's partitions, and makes the topic if it is not there. A producer of several requests at a time that begins before can be stuck for two
     * minutes: of its first requests the broker refuses some, as no leader, and takes a later one, after which those come out of order.
     */
    void lead(String topic) {
        try (Admin admin = admin()) {
            if (!admin.listTopics().names().get().contains(topic)) {
                admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
            }
            await("the broker leads " + topic, () -> leads(admin, topic));
        } catch (Exception e) {
            throw new IllegalStateException("topic " + topic, e);
        }
    }

    private static boolean leads(Admin admin, String topic) {
        try {
            int partitions = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
            admin.listOffsets(IntStream.range(0, partitions).boxed().collect(Collectors.toMap(i -> new TopicPartition(topic, i), i -> OffsetSpec.latest()))).all().get();
            return true;
        } catch (InterruptedException | ExecutionException e) {
            return false;
        }
    }

    KafkaProducer<byte[], byte[]> producer(String user, String clientId) {
        return producer(user, clientId, Map.of());
    }

    KafkaProducer<byte[], byte[]> producer(String user, String clientId, Map<String, Object> others) {
        Map<String, Object> settings = clientSettings(user, clientId);
        settings.put("linger.ms", 5);
        settings.put("enable.metrics.push", false);
        settings.put("max.block.ms", 120_000);
        settings.putAll(others);
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** The broker's MBeans. */
    <T> T jmx(JmxQuestion<T> question) throws Exception {
        VirtualMachine machine = VirtualMachine.attach(String.valueOf(process.pid()));
        try {
            String address = machine.startLocalManagementAgent();
            try (JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(address))) {
                return question.ask(connector.getMBeanServerConnection());
            }
        } finally {
            machine.detach();
        }
    }

    interface JmxQuestion<T> {
        T ask(MBeanServerConnection connection) throws Exception;
    }

    @Override
    public void close() {
        stop();
        try {
            ports.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Ends the broker the ordinary way, or by force if it does not end. */
    void stop() {
        if (process == null) {
            return;
        }
        process.destroy();
        try {
            if (!process.waitFor(20, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
            }
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
