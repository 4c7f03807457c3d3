package org.kquota.bench;

import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Path;

/** The cost of metering one produce request, with this many clients in turn. */
@State(Scope.Benchmark)
public class RequestPath {
    /** Too few for {@link ProduceQuotas.Kind#KQUOTA_WITHOUT_QUOTAS} with 10,000 clients: those share one, as by default. */
    private static final int TAG_SETS_MAX = 2000;

    @Param
    private ProduceQuotas.Kind kind;

    @Param({"10", "1000", "10000"})
    private int clients;

    private ProduceQuotas quotas;
    private int next;

    @Setup(Level.Trial)
    public void start() throws ReflectiveOperationException {
        quotas = ProduceQuotas.of(kind, clients, Path.of(System.getProperty("bench.directory")), TAG_SETS_MAX);
    }

    @TearDown(Level.Trial)
    public void stop() throws Exception {
        quotas.close();
    }

    /**
     * Processor time of the measuring thread, in addition to the time by the clock: on a machine with other work
     * only the former is the cost of a request.
     */
    @State(Scope.Thread)
    @AuxCounters(AuxCounters.Type.EVENTS)
    public static class Used {
        private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

        public long processorNanos;
        public long requests;
        private long before;

        @Setup(Level.Iteration)
        public void begin() {
            requests = 0;
            processorNanos = 0;
            before = THREADS.getCurrentThreadCpuTime();
        }

        @TearDown(Level.Iteration)
        public void end() {
            processorNanos = THREADS.getCurrentThreadCpuTime() - before;
        }
    }

    /** One request of the next client. */
    @Benchmark
    public int record(Used used) {
        used.requests++;
        next = next + 1 == quotas.clients() ? 0 : next + 1;
        return quotas.record(next, 10_000);
    }
}
