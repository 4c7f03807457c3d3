package org.kquota.fence;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.Reconfigurable;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.SecurityDisabledException;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.ClusterMetadataAuthorizer;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.authorizer.AuthorizerServerInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.stream.Collectors;
import java.util.stream.Stream;

class DelegatingAuthorizerTest {
    private static final class Wrapper extends DelegatingAuthorizer {
        Wrapper(Authorizer delegate) {
            delegateTo(delegate);
        }

        static Authorizer make(String className) {
            return newInstance("the.key", className);
        }
    }

    /** Answers every call with one marked value, and keeps the last call. */
    private static final class Recorder {
        private Method called;
        private Object[] arguments;
        private Object answer;
        private final Authorizer authorizer;

        Recorder(Class<?>... interfaces) {
            authorizer = (Authorizer) Proxy.newProxyInstance(getClass().getClassLoader(), interfaces, (proxy, method, given) -> {
                called = method;
                arguments = given;
                answer = valueOf(method.getReturnType());
                return answer;
            });
        }
    }

    /** Every method that Kafka may call, with the type that it asks for. */
    static Stream<Method> everyMethod() {
        return Stream.of(ClusterMetadataAuthorizer.class, Reconfigurable.class)
            .flatMap(type -> Arrays.stream(type.getMethods())).filter(method -> !Modifier.isStatic(method.getModifiers()))
            // The JVM gives them in any order, and a test is known by its place in it.
            .sorted(Comparator.comparing(Method::toString));
    }

    private static Object valueOf(Class<?> type) {
        if (type == int.class) {
            return 4711;
        }
        if (type.isEnum()) {
            return type.getEnumConstants()[0];
        }
        if (type == List.class || type == Iterable.class) {
            return List.of(new Object());
        }
        if (type == Map.class) {
            return Map.of("a", "b");
        }
        if (type == Set.class) {
            return Set.of("a");
        }
        if (type == Exception.class) {
            return new Exception("a marked one");
        }
        return type.isInterface() ? Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, given) ->
            switch (method.getName()) {
                case "equals" -> proxy == given[0];
                case "hashCode" -> 1;
                default -> null;
            }) : null;
    }

    @ParameterizedTest
    @MethodSource("everyMethod")
    void everyMethodIsLeftToTheOtherAuthorizer(Method method) throws ReflectiveOperationException {
        Recorder recorder = new Recorder(ClusterMetadataAuthorizer.class, Reconfigurable.class);
        Object[] arguments = Arrays.stream(method.getParameterTypes()).map(DelegatingAuthorizerTest::valueOf).toArray();
        Object answer = method.invoke(new Wrapper(recorder.authorizer), arguments);
        assertNotNull(recorder.called, method + " did not arrive");
        assertEquals(method.getName(), recorder.called.getName());
        assertArrayEquals(method.getParameterTypes(), recorder.called.getParameterTypes());
        assertArrayEquals(arguments.length == 0 ? null : arguments, recorder.arguments);
        assertEquals(recorder.answer, answer);
    }

    /** One that keeps its ACLs elsewhere: Kafka's loading of ACLs does not concern it, all else does. */
    @ParameterizedTest
    @MethodSource("everyMethod")
    void anAuthorizerThatIsNoMoreThanThatGetsWhatItKnows(Method method) throws ReflectiveOperationException {
        Recorder recorder = new Recorder(Authorizer.class);
        Set<String> known = Arrays.stream(Authorizer.class.getMethods()).map(Method::getName).collect(Collectors.toSet());
        Object[] arguments = Arrays.stream(method.getParameterTypes()).map(DelegatingAuthorizerTest::valueOf).toArray();
        Wrapper wrapper = new Wrapper(recorder.authorizer);
        if (method.getName().equals("aclMutatorOrException")) {
            assertTrue(assertThrows(InvocationTargetException.class, () -> method.invoke(wrapper)).getCause() instanceof IllegalStateException);
            return;
        }
        Object answer = method.invoke(wrapper, arguments);
        if (known.contains(method.getName())) {
            assertEquals(method.getName(), recorder.called.getName());
            assertEquals(recorder.answer, answer);
        } else {
            assertEquals(method.getReturnType() == Set.class ? Set.of() : null, answer);
        }
    }

    @Test
    void anAuthorizerIsMadeByItsName() {
        assertSame(StandardAuthorizer.class, Wrapper.make("org.apache.kafka.metadata.authorizer.StandardAuthorizer").getClass());
    }

    @ParameterizedTest
    @ValueSource(strings = {"no.such.Class", "java.lang.String", "org.kquota.KquotaAuthorizer", "org.apache.kafka.server.authorizer.Authorizer"})
    void whatCannotBeWrappedIsRefusedByName(String className) {
        ConfigException refused = assertThrows(ConfigException.class, () -> Wrapper.make(className));
        assertTrue(refused.getMessage().contains("the.key") && refused.getMessage().contains(className), refused.getMessage());
    }

    @Test
    void whereEverythingIsAllowedThereAreNoAcls() {
        AllowAll allowAll = new AllowAll();
        assertEquals(List.of(AuthorizationResult.ALLOWED, AuthorizationResult.ALLOWED), allowAll.authorize(null, Arrays.asList(null, null)));
        assertEquals(AuthorizationResult.ALLOWED, allowAll.authorizeByResourceType(null, AclOperation.WRITE, ResourceType.TOPIC));
        assertThrows(SecurityDisabledException.class, () -> allowAll.acls(AclBindingFilter.ANY));
        assertEquals(1, allowAll.deleteAcls(null, List.of(AclBindingFilter.ANY)).size());
        assertEquals(1, allowAll.createAcls(null, Arrays.asList((AclBinding) null)).size());
        allowAll.createAcls(null, Arrays.asList((AclBinding) null)).forEach(made ->
            assertTrue(made.toCompletableFuture().join().exception().orElseThrow() instanceof SecurityDisabledException));
        allowAll.deleteAcls(null, List.of(AclBindingFilter.ANY)).forEach(deleted ->
            assertTrue(deleted.toCompletableFuture().join().exception().orElseThrow() instanceof SecurityDisabledException));
    }

    @Test
    void whereEverythingIsAllowedAllListenersAreReadyAtOnce() {
        List<Endpoint> listeners = List.of(new Endpoint("ONE", SecurityProtocol.SSL, "a", 1), new Endpoint("TWO", SecurityProtocol.SSL, "a", 2));
        AuthorizerServerInfo server = (AuthorizerServerInfo) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {AuthorizerServerInfo.class},
            (proxy, method, given) -> method.getName().equals("endpoints") ? listeners : null);
        Map<Endpoint, ? extends CompletionStage<Void>> ready = new AllowAll().start(server);
        assertEquals(Set.copyOf(listeners), ready.keySet());
        ready.values().forEach(each -> assertTrue(each.toCompletableFuture().isDone()));
    }

    @Test
    void anAuthorizerIsMadeOnAThreadWithoutAClassLoaderOfItsOwn() {
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        try {
            Thread.currentThread().setContextClassLoader(null);
            assertSame(StandardAuthorizer.class, Wrapper.make(StandardAuthorizer.class.getName()).getClass());
        } finally {
            Thread.currentThread().setContextClassLoader(before);
        }
    }

    /** As one whose libraries are not all there. */
    public static final class Incomplete extends StandardAuthorizer {
        public Incomplete() {
            throw new IllegalStateException("there is no directory service");
        }
    }

    @Test
    void theErrorHasTheReasonWhyTheWrappedOneCannotBeMade() {
        ConfigException refused = assertThrows(ConfigException.class, () -> Wrapper.make(Incomplete.class.getName()));
        assertTrue(refused.getMessage().contains("there is no directory service"), refused.getMessage());
    }
}
