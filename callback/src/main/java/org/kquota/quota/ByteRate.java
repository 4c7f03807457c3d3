package org.kquota.quota;

import java.math.BigDecimal;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Rates in bytes per second as operators write them: 2M is two million, 2Mi is two times 2^20. */
public final class ByteRate {
    /** The allowed forms of a rate, for error messages. */
    public static final String ALLOWED =
        "allowed are bytes per second from 1K to 1000T, such as 2M (10^6), 1.5M or 2Mi (2^20), with K, M, G, T, Ki, Mi, Gi or Ti";

    /** The least rate of a quota: Kafka takes a limit of 0 for none, and mutes for next to ever, or not at all, at one near it. */
    public static final double MIN = 1e3;

    private static final Pattern FORM = Pattern.compile("([0-9]{1,16}(?:\\.[0-9]{1,6})?)(|[KMGT]i?)");
    private static final Map<String, Double> FACTORS = Map.of("", 1.0, "K", 1e3, "M", 1e6, "G", 1e9, "T", 1e12,
        "Ki", 0x1p10, "Mi", 0x1p20, "Gi", 0x1p30, "Ti", 0x1p40);
    private static final double MAX = 1e15;

    private ByteRate() {
    }

    /**
     * A rate in bytes per second.
     *
     * @throws IllegalArgumentException if the text is none, or out of range; the message names what is allowed
     */
    public static double parse(String text) {
        Matcher matcher = FORM.matcher(text.strip());
        if (matcher.matches()) {
            double rate = new BigDecimal(matcher.group(1)).multiply(BigDecimal.valueOf(FACTORS.get(matcher.group(2)))).doubleValue();
            if (rate >= MIN && rate <= MAX) {
                return rate;
            }
        }
        throw new IllegalArgumentException("'" + text + "' is no such rate; " + ALLOWED);
    }
}
