package org.kquota;

import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.Handle;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Which of the plug-in's methods call which, from its compiled classes. A call to a method that others override may reach all of them; one to an interface
 * of the JDK may reach each lambda of that interface.
 */
final class CallGraph {
    /** A method by the internal name of its class, its own name and its descriptor. */
    record Method(String owner, String name, String descriptor) {
        @Override
        public String toString() {
            return owner.substring(owner.lastIndexOf('/') + 1) + "." + name;
        }
    }

    /** The calls in a method's code. */
    private static final class Body {
        private final List<Method> calls = new ArrayList<>();
        private boolean takesMonitor;
    }

    private final Map<Method, Body> bodies = new HashMap<>();
    private final Map<String, Set<String>> parents = new HashMap<>();
    private final Map<String, Set<Method>> lambdas = new HashMap<>();

    /** The graph of all classes in a folder. */
    static CallGraph of(Path classes) throws IOException {
        CallGraph graph = new CallGraph();
        try (Stream<Path> files = Files.walk(classes)) {
            for (Path file : files.filter(path -> path.toString().endsWith(".class")).toList()) {
                new ClassReader(Files.readAllBytes(file)).accept(graph.new Reader(), ClassReader.SKIP_DEBUG);
            }
        }
        return graph;
    }

    /** Each method that these may reach, with one way to it, from the first to the last. */
    Map<Method, List<Method>> reachable(List<Method> from, Set<String> leftOut) {
        Map<Method, List<Method>> ways = new LinkedHashMap<>();
        List<Method> open = new ArrayList<>(from);
        from.forEach(method -> ways.put(method, List.of(method)));
        while (!open.isEmpty()) {
            Method caller = open.remove(0);
            for (Method call : bodies.containsKey(caller) ? bodies.get(caller).calls : List.<Method>of()) {
                for (Method callee : targets(call)) {
                    if (!ways.containsKey(callee) && !leftOut.contains(callee.toString())) {
                        List<Method> way = new ArrayList<>(ways.get(caller));
                        way.add(callee);
                        ways.put(callee, way);
                        open.add(callee);
                    }
                }
            }
        }
        return ways;
    }

    /** Whether it is one of the plug-in's own. */
    boolean isOurs(Method method) {
        return bodies.containsKey(method);
    }

    /** Whether it is synchronized, or has a block that is. */
    boolean takesMonitor(Method method) {
        return bodies.get(method).takesMonitor;
    }

    private Set<Method> targets(Method call) {
        Set<Method> targets = new HashSet<>();
        String owner = call.owner;
        while (owner != null && !bodies.containsKey(new Method(owner, call.name, call.descriptor))) {
            owner = parents.getOrDefault(owner, Set.of()).stream().filter(parents::containsKey).findFirst().orElse(null);
        }
        targets.add(owner == null ? call : new Method(owner, call.name, call.descriptor));
        for (Method method : bodies.keySet()) {
            if (method.name.equals(call.name) && method.descriptor.equals(call.descriptor) && !call.name.startsWith("<") && isA(method.owner, call.owner)) {
                targets.add(method);
            }
        }
        targets.addAll(lambdas.getOrDefault(call.owner, Set.of()));
        return targets;
    }

    private boolean isA(String type, String parent) {
        return parents.getOrDefault(type, Set.of()).stream().anyMatch(each -> each.equals(parent) || isA(each, parent));
    }

    private final class Reader extends ClassVisitor {
        private String owner;

        Reader() {
            super(Opcodes.ASM9);
        }

        @Override
        public void visit(int version, int access, String name, String signature, String parent, String[] interfaces) {
            owner = name;
            Set<String> all = new HashSet<>(List.of(interfaces));
            if (!"java/lang/Object".equals(parent)) {
                all.add(parent);
            }
            parents.put(name, all);
        }

        @Override
        public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
            Body body = new Body();
            body.takesMonitor = (access & Opcodes.ACC_SYNCHRONIZED) != 0;
            if ((access & Opcodes.ACC_ABSTRACT) == 0) {
                bodies.put(new Method(owner, name, descriptor), body);
            }
            return new MethodVisitor(Opcodes.ASM9) {
                @Override
                public void visitMethodInsn(int opcode, String callee, String called, String type, boolean isInterface) {
                    body.calls.add(new Method(callee, called, type));
                }

                @Override
                public void visitInvokeDynamicInsn(String called, String type, Handle bootstrap, Object... arguments) {
                    for (Object argument : arguments) {
                        if (argument instanceof Handle handle) {
                            Method target = new Method(handle.getOwner(), handle.getName(), handle.getDesc());
                            lambdas.computeIfAbsent(Type.getReturnType(type).getInternalName(), key -> new HashSet<>()).add(target);
                            body.calls.add(target);
                        }
                    }
                }

                @Override
                public void visitInsn(int opcode) {
                    body.takesMonitor |= opcode == Opcodes.MONITORENTER;
                }
            };
        }
    }
}
