package org.kquota.quota;

import org.apache.kafka.common.security.auth.KafkaPrincipal;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;

import javax.management.ObjectName;

/** Names as Kafka writes them. Its own classes for this are internal, and have moved in 4.4. */
public final class KafkaNames {
    private static final Pattern PLAIN = Pattern.compile("[\\w%. \\t-]*");

    private KafkaNames() {
    }

    /** A user's name as an entity of quotas has it: percent-encoded, all but letters, digits and "-", "_" and ".". */
    public static String sanitized(String user) {
        return URLEncoder.encode(user, StandardCharsets.UTF_8).replace("+", "%20").replace("*", "%2A");
    }

    /** A value as the name of an MBean has it: quoted where it has other characters than most names. */
    public static String inMBean(String value) {
        return PLAIN.matcher(value).matches() ? value : ObjectName.quote(value);
    }

    /** The principal of this Type:name. */
    public static KafkaPrincipal principal(String typeAndName) {
        int colon = typeAndName.indexOf(':');
        return new KafkaPrincipal(typeAndName.substring(0, colon), typeAndName.substring(colon + 1));
    }
}
