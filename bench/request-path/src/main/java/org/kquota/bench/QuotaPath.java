package org.kquota.bench;

import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

import java.nio.file.Path;

/** The cost of one produce request with {@link ManyQuotas}, before and after its append; the clients come in turn. */
@State(Scope.Benchmark)
public class QuotaPath {
    @Param
    private ManyQuotas.Kind kind;

    private ManyQuotas quotas;
    private int next;

    @Setup(Level.Trial)
    public void start() throws Exception {
        quotas = new ManyQuotas(kind, Path.of(System.getProperty("bench.directory")));
    }

    @TearDown(Level.Trial)
    public void stop() throws Exception {
        quotas.close();
    }

    private int client() {
        next = next + 1 == ManyQuotas.CLIENTS ? 0 : next + 1;
        return next;
    }

    /** Authorizing one request. */
    @Benchmark
    public int authorize(RequestPath.Used used) {
        used.requests++;
        return quotas.authorize(client());
    }

    /** Metering one request. */
    @Benchmark
    public int meter(RequestPath.Used used) {
        used.requests++;
        return quotas.record(client(), 10_000);
    }
}
