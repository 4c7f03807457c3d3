package org.kquota.admission;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Clients that produce, wait and try again as Kafka's do, before an admission on a clock of the test. Sizes of requests are learnt late, as from the broker's window. */
final class SimulatedClients {
    static final long STEP_NANOS = 1_000_000L;
    private static final int LOOK_STEPS = 100;
    /** The known size of requests follows the real one with this delay. */
    private static final double LEARNT_SECONDS = 5;

    /** One client with one connection. */
    final class Client {
        final ClientShare share = new ClientShare(clients.size());
        final double rate;
        final double largestRequest;
        double weight;
        /** Of the topic that it writes to; 0 for that of all. */
        double factor;
        double backlog;
        double landed;
        private double arrived;
        double lastLandedSeconds;
        double longestSilence;
        double learntBytes;
        long nextNanos;
        int attempts;
        boolean stopped;
        /** Whether the size of its requests becomes known. */
        boolean sizeIsLearnt = true;

        Client(double rate, double weight, double request, double largestRequest) {
            this.rate = rate;
            this.weight = weight;
            this.learntBytes = request;
            this.largestRequest = largestRequest;
            share.know(weight, request);
        }

        private void step(double request) {
            backlog += stopped ? 0 : rate * STEP_NANOS / 1e9;
            if (nowNanos < nextNanos || backlog < request) {
                return;
            }
            double bytes = Math.min(backlog, largestRequest);
            asked++;
            if (admission.admits(share, factor > 0 ? factor : target.factor(), nowNanos)) {
                backlog -= bytes;
                landed += bytes;
                arrived += bytes;
                everLanded += bytes;
                underWay.add(bytes);
                longestSilence = Math.max(longestSilence, seconds() - lastLandedSeconds);
                lastLandedSeconds = seconds();
                learntBytes += !sizeIsLearnt ? 0 : (bytes - learntBytes) * Math.min(1, (seconds() - learntAt) / LEARNT_SECONDS + 0.05);
                learntAt = seconds();
                attempts = 0;
                nextNanos = nowNanos + STEP_NANOS;
            } else {
                refusedBytes += bytes;
                double backoff = Math.min(1000, 100 * Math.pow(2, attempts++)) * (0.8 + 0.4 * random.nextDouble());
                nextNanos = nowNanos + (long) (backoff * 1e6);
            }
        }

        private double learntAt;
        private double request = 1;

        double silence() {
            return Math.max(longestSilence, seconds() - lastLandedSeconds);
        }
    }

    final Admission admission = new Admission();
    final List<Client> clients = new ArrayList<>();
    final Random random;
    private final List<Double> underWay = new ArrayList<>();
    long nowNanos = 5_000_000_000L;
    private final long startNanos = nowNanos;
    long landedBytes = 1_000_000;
    double refusedBytes;
    long asked;
    Target target;
    /** The most that has landed beyond what might have, bytes. */
    double mostOver;
    private double allowed;
    private double everLanded;
    private long steps;
    /** Whether the broker's rates show what a request brought; those of a client with many at a time do not. */
    boolean arrivalsAreSeen = true;
    /** Bytes per second that exempt principals land meanwhile. */
    double othersRate;

    SimulatedClients(long seed) {
        random = new Random(seed);
    }

    Client add(double rate, double request, double largestRequest) {
        return add(rate, rate, request, largestRequest);
    }

    Client add(double rate, double weight, double request, double largestRequest) {
        Client client = new Client(rate, weight, request, largestRequest);
        client.request = request;
        clients.add(client);
        return client;
    }

    double known() {
        return clients.stream().mapToDouble(client -> client.weight).sum();
    }

    void factor(double factor) {
        target = new Target(factor, known(), known(), 0.05, 1, 0);
    }

    double seconds() {
        return (nowNanos - startNanos) / 1e9;
    }

    void run(double forSeconds) {
        for (long i = 0; i < forSeconds * 1e9 / STEP_NANOS; i++) {
            underWay.forEach(bytes -> landedBytes += bytes.longValue());
            underWay.clear();
            landedBytes += (long) (othersRate * STEP_NANOS / 1e9);
            if (steps++ % LOOK_STEPS == 0) {
                clients.forEach(client -> {
                    client.share.know(client.weight, client.learntBytes);
                    client.share.arrived(arrivalsAreSeen ? client.arrived : 0);
                    client.arrived = 0;
                });
                admission.plan(target, () -> landedBytes, nowNanos);
            }
            int first = random.nextInt(Math.max(1, clients.size()));
            for (int c = 0; c < clients.size(); c++) {
                Client client = clients.get((first + c) % clients.size());
                client.step(client.request);
            }
            allowed += target.factor() * target.unthrottled(clients.stream().anyMatch(client -> client.weight == 0)) * STEP_NANOS / 1e9;
            mostOver = Math.max(mostOver, everLanded - allowed);
            nowNanos += STEP_NANOS;
        }
    }

    double total() {
        return clients.stream().mapToDouble(client -> client.landed).sum();
    }

    /** Counts from now on. */
    void forget() {
        clients.forEach(client -> {
            client.landed = 0;
            client.longestSilence = 0;
            client.lastLandedSeconds = seconds();
        });
        asked = 0;
        refusedBytes = 0;
    }

    double longestSilence() {
        return clients.stream().mapToDouble(Client::silence).max().orElseThrow();
    }

    /** Jain's index of what each got of its weight: 1 where all got the same share. */
    double fairness() {
        double[] shares = clients.stream().filter(client -> client.weight > 0).mapToDouble(client -> client.landed / client.weight).toArray();
        double sum = 0;
        double squares = 0;
        for (double share : shares) {
            sum += share;
            squares += share * share;
        }
        return sum * sum / (shares.length * squares);
    }
}
