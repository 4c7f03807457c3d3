package org.kquota.quota;

import org.apache.kafka.common.security.auth.KafkaPrincipal;

import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Which tag set a principal with a client id has, so that a request pays for one look-up instead of one for its principal,
 * some for its quotas and one for its tag set. Entries hold until {@link #forget}: code that changes the basis of a tag
 * set calls it after the change. Bounded: where there is no room, a new client takes the place of another, so
 * that clients that invent client ids cost others a look-up at most. Reads and writes never wait for another thread.
 */
public final class TagSetMemo {
    /** This many are remembered at most. While half of them are used, nearly all are found in the first place. */
    static final int MAX_PLACES = 1 << 15;
    private static final int FIRST_PLACES = 64;
    /** A client is looked for in this many places. */
    private static final int REACH = 8;
    private static final int MAX_CLIENT_ID_LENGTH = 128;

    private final AtomicReference<Generation> current = new AtomicReference<>(new Generation(FIRST_PLACES));

    /**
     * A client and its tag set. The tags are here a second time: a request can go on with them while the tag set,
     * in which it is only counted, is still on its way from memory.
     */
    public static final class Known {
        private final KafkaPrincipal principal;
        private final String clientId;
        private final int hash;
        private final TagSet tagSet;
        private final String taggedUser;
        private final String taggedClientId;

        public Known(KafkaPrincipal principal, String clientId, TagSet tagSet) {
            this.principal = principal;
            this.clientId = clientId;
            this.hash = hash(principal, clientId);
            this.tagSet = tagSet;
            this.taggedUser = tagSet.user();
            this.taggedClientId = tagSet.clientId();
        }

        public TagSet tagSet() {
            return tagSet;
        }

        /** Those of its tag set. */
        public Map<String, String> tags() {
            return Tags.of(taggedUser, taggedClientId);
        }

        private boolean is(int otherHash, KafkaPrincipal otherPrincipal, String otherClientId) {
            return hash == otherHash && clientId.equals(otherClientId) && principal.equals(otherPrincipal);
        }
    }

    /** The entries between two changes. */
    public static final class Generation {
        private final AtomicReferenceArray<Known> places;
        /** Or a few more: it only shows when to make room. */
        private final AtomicInteger used = new AtomicInteger();

        private Generation(int length) {
            places = new AtomicReferenceArray<>(length);
        }

        /** This principal with this client id, or null where it is not remembered. */
        public Known find(KafkaPrincipal principal, String clientId) {
            int hash = hash(principal, clientId);
            int mask = places.length() - 1;
            for (int i = 0; i < REACH; i++) {
                Known known = places.getAcquire(hash + i & mask);
                if (known == null || known.is(hash, principal, clientId)) {
                    return known;
                }
            }
            return null;
        }

        private void put(Known known) {
            int mask = places.length() - 1;
            for (int i = 0; i < REACH; i++) {
                int place = known.hash + i & mask;
                Known there = places.getAcquire(place);
                if (there == null || there.is(known.hash, known.principal, known.clientId)) {
                    places.setRelease(place, known);
                    if (there == null) {
                        used.incrementAndGet();
                    }
                    return;
                }
            }
            places.setRelease(known.hash & mask, known);
        }

        private boolean isCrowded() {
            return 2 * used.get() >= places.length();
        }
    }

    private static int hash(KafkaPrincipal principal, String clientId) {
        int hash = 31 * principal.hashCode() + clientId.hashCode();
        // Names that differ in their last digits only would lie side by side.
        hash = (hash ^ hash >>> 16) * 0x85ebca6b;
        hash = (hash ^ hash >>> 13) * 0xc2b2ae35;
        return hash ^ hash >>> 16;
    }

    /** To be asked for before a tag set is worked out that is to be remembered in it. */
    public Generation generation() {
        return current.get();
    }

    /** Remembers a client whose tag set was worked out since this generation was asked for. */
    public void remember(Generation generation, Known known) {
        if (known.clientId.length() > MAX_CLIENT_ID_LENGTH) {
            return;
        }
        Generation roomy = generation.isCrowded() && generation.places.length() < MAX_PLACES ? grown(generation) : generation;
        roomy.put(known);
    }

    /** A generation with the same content and twice the room; of use only if nothing has changed meanwhile. */
    private Generation grown(Generation generation) {
        Generation larger = new Generation(2 * generation.places.length());
        for (int place = 0; place < generation.places.length(); place++) {
            Known known = generation.places.getAcquire(place);
            if (known != null) {
                larger.put(known);
            }
        }
        current.compareAndSet(generation, larger);
        return larger;
    }

    /** The basis of tag sets has changed. */
    public void forget() {
        current.set(new Generation(FIRST_PLACES));
    }

    /** For how many there is room. */
    int places() {
        return current.get().places.length();
    }

    /** How many are remembered, or a few more. */
    int size() {
        return current.get().used.get();
    }
}
