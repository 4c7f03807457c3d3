package org.kquota.quota;

import org.kquota.admission.ClientShare;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.List;
import java.util.Map;

/**
 * The clients that share one set of metric tags, and so one limit. The governor's figures are written by its thread
 * only; the request threads read {@link #limit()} and the flags, and write {@link #touch}.
 */
public final class TagSet {
    /** The limit of a tag set that the governor does not hold. */
    public static final double NO_LIMIT = Double.POSITIVE_INFINITY;

    /** For this long after a write to a topic at stake, its factor is that of the clients. */
    private static final int STAKE_SECONDS = 10;
    private static final int NEVER = Integer.MIN_VALUE;
    private static final VarHandle REQUESTS;
    private static final VarHandle SHARE;

    static {
        try {
            REQUESTS = MethodHandles.lookup().findVarHandle(TagSet.class, "requests", long.class);
            SHARE = MethodHandles.lookup().findVarHandle(TagSet.class, "share", ClientShare.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final String user;
    private final String clientId;
    private final WrittenTopics written = new WrittenTopics();
    private volatile int lastTouchSeconds;
    private volatile int lastMeteredSeconds = NEVER;
    @SuppressWarnings("unused") // by its handle
    private long requests;
    private volatile double limit = NO_LIMIT;
    private volatile boolean hasBaseline;
    private volatile boolean forgotten;
    private volatile ClientShare share;
    private volatile Stake stake;

    /** The worst throttle factor among the topics that these clients wrote to, and when it was seen last. */
    private record Stake(double factor, int seconds) {
        boolean isOld(int nowSeconds) {
            return nowSeconds - seconds > STAKE_SECONDS;
        }
    }

    public TagSet(Map<String, String> tags) {
        this.user = tags.get(Tags.USER);
        this.clientId = tags.get(Tags.CLIENT_ID);
    }

    public Map<String, String> tags() {
        return Tags.of(user, clientId);
    }

    String user() {
        return user;
    }

    String clientId() {
        return clientId;
    }

    /** A request uses these tags at that second. */
    public void touch(int seconds) {
        // Two threads at once may count one request: a mean of sizes bears that, and every request would pay for better.
        REQUESTS.setOpaque(this, (long) REQUESTS.getOpaque(this) + 1);
        ask(seconds);
    }

    /** A request asks to be admitted at that second; perhaps it is refused. */
    public void ask(int seconds) {
        if (lastTouchSeconds != seconds) {
            lastTouchSeconds = seconds;
        }
    }

    public int lastTouchSeconds() {
        return lastTouchSeconds;
    }

    /** The broker meters a request by these tags at that second, and not by those of a pool. */
    public void meter(int seconds) {
        if (lastMeteredSeconds != seconds) {
            lastMeteredSeconds = seconds;
        }
    }

    /** Whether the broker has metered a request by these tags at that second or later. */
    public boolean isMeteredSince(int seconds) {
        return lastMeteredSeconds >= seconds;
    }

    /** How many requests have used these tags, or a few less. */
    public long requests() {
        return (long) REQUESTS.getOpaque(this);
    }

    /** The governor's limit in bytes per second, or {@link #NO_LIMIT}. */
    public double limit() {
        return limit;
    }

    public void limit(double bytesPerSecond) {
        limit = bytesPerSecond;
    }

    /** Whether these clients were producing when OPEN was left. */
    public boolean hasBaseline() {
        return hasBaseline;
    }

    public void hasBaseline(boolean known) {
        hasBaseline = known;
    }

    /** A request writes to a topic with this throttle factor at that second, or would. */
    public void noteFactor(double factor, int seconds) {
        Stake before = stake;
        if (before == null || factor < before.factor || factor == before.factor && seconds != before.seconds || before.isOld(seconds)) {
            stake = new Stake(factor, seconds);
        }
    }

    /** The worst throttle factor among the topics that these clients wrote to in the ten seconds before that second; 1 if none of them was at stake. */
    public double factor(int nowSeconds) {
        Stake last = stake;
        return last == null || last.isOld(nowSeconds) ? 1 : last.factor;
    }

    /** A request writes to a topic at that second, or would. */
    public void noteTopic(String topic, int seconds) {
        written.note(topic, seconds);
    }

    /** The topics noted in the minute before that second, sorted; null where there were too many to keep. */
    public List<String> topics(int nowSeconds) {
        return written.names(nowSeconds);
    }

    /** The part that these clients have together where requests are admitted. */
    public ClientShare share() {
        ClientShare made = share;
        if (made == null) {
            SHARE.compareAndSet(this, null, new ClientShare());
            made = share;
        }
        return made;
    }

    /** Whether another tag set takes its place where these tags are used again. */
    public boolean forgotten() {
        return forgotten;
    }

    void forget() {
        forgotten = true;
    }

    @Override
    public String toString() {
        return tags().toString();
    }
}
