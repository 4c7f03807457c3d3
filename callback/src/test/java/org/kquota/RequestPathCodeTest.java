package org.kquota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.kquota.CallGraph.Method;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * No code that a request thread may come to takes a lock, waits or does I/O, however seldom it comes there. {@link RequestPathTest} sees only what happens
 * while it runs.
 */
@Tag("C8")
class RequestPathCodeTest {
    private static final String CALLBACK = "org/kquota/CallbackWithoutMetrics";
    /** The cost of a fault does not count, and only the housekeeper asks its own question through the same interface. */
    private static final Set<String> LEFT_OUT = Set.of("Errors.count", "Fence.fault", "Leaders.whyOld");
    /** Classes of others that neither wait nor do I/O; ConcurrentHashMap does where a client is new. */
    private static final Pattern HARMLESS = Pattern.compile("\\[.*|"
        + "java/lang/(?!Thread(?!Local)|Process|Runtime|StringBuffer|System|ClassLoader)[A-Za-z$]+|java/lang/invoke/VarHandle|"
        + "java/util/(?!Hashtable|Vector|Stack|Scanner|Timer|Properties|ResourceBundle|Formatter)[A-Za-z$]+|java/util/function/.*|java/util/stream/.*|"
        + "java/util/concurrent/ConcurrentHashMap|java/util/concurrent/ConcurrentLinkedQueue|java/util/concurrent/atomic/.*|java/util/regex/.*|"
        + "java/net/URLEncoder|org/apache/kafka/(common|server)/.*|com/google/re2j/.*|org/slf4j/MDC|com/yammer/metrics/core/Meter");
    private static final Set<String> SYSTEM = Set.of("nanoTime", "arraycopy", "identityHashCode");
    private static final Set<String> MONITOR = Set.of("wait", "notify", "notifyAll");

    private static CallGraph graph;
    private static Map<Method, List<Method>> reached;

    @BeforeAll
    static void read() throws Exception {
        graph = CallGraph.of(Path.of(System.getProperty("kquota.jar.classes")));
        reached = graph.reachable(List.of(
            new Method(CALLBACK, "quotaMetricTags", "(Lorg/apache/kafka/server/quota/ClientQuotaType;"
                + "Lorg/apache/kafka/common/security/auth/KafkaPrincipal;Ljava/lang/String;)Ljava/util/Map;"),
            new Method(CALLBACK, "quotaLimit", "(Lorg/apache/kafka/server/quota/ClientQuotaType;Ljava/util/Map;)Ljava/lang/Double;"),
            new Method(CALLBACK, "quotaResetRequired", "(Lorg/apache/kafka/server/quota/ClientQuotaType;)Z"),
            new Method("org/kquota/AuthorizerWithoutMetrics", "authorize",
                "(Lorg/apache/kafka/server/authorizer/AuthorizableRequestContext;Ljava/util/List;)Ljava/util/List;")), LEFT_OUT);
    }

    private static boolean isHarmless(Method method) {
        return method.owner().equals("java/lang/System") && SYSTEM.contains(method.name())
            || HARMLESS.matcher(method.owner()).matches() && !MONITOR.contains(method.name()) && !method.name().startsWith("synchronized");
    }

    private static String ways(List<Method> offending) {
        return offending.stream().map(method -> reached.get(method).stream().map(Method::toString).collect(Collectors.joining(" → ")))
            .collect(Collectors.joining("\n"));
    }

    @Test
    void noneOfOurMethodsThereIsSynchronized() {
        assertEquals("", ways(reached.keySet().stream().filter(graph::isOurs).filter(graph::takesMonitor).toList()));
    }

    @Test
    void nothingIsCalledThereThatLocksWaitsOrDoesInputOrOutput() {
        assertEquals("", ways(reached.keySet().stream()
            .filter(method -> !method.owner().startsWith("org/kquota/")).filter(method -> !isHarmless(method)).toList()));
    }

    @Test
    void allThatARequestAsksIsLookedAt() {
        Set<String> names = reached.keySet().stream().map(Method::toString).collect(Collectors.toSet());
        for (String name : List.of("NodeQuotas.tags", "TagSetMemo.remember", "StockQuotas.limit", "ConfiguredQuotas.meteredAs", "Groups.ofClientId",
                "ExemptSeen.note", "ExemptEntry.matches", "ResetFlags.take", "LastLimits.remember", "EffectiveDecision.at", "Fence.refusal", "RequestsUnderWay.refuses", "Admission.admits", "BrokerLandedBytes.bytes", "BrokerNode.whyTopicsAreNotRefused",
                "TopicGate.refused", "AllowAll.authorize", "GroupLimit.here", "PartitionShare.ratio")) {
            assertTrue(names.contains(name), name + " is not among " + names);
        }
    }
}
