package org.kquota.quota;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.LambdaValidator;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigException;

import java.util.function.Consumer;

/** The broker properties of quotas that are not set with the standard tools. */
public final class QuotaProperties {
    public static final String PREFIX = "kquota.quota.";
    public static final String PRODUCE_DEFAULT = "kquota.quota.produce.default";
    public static final String PRODUCE_OVERRIDES = "kquota.quota.produce.overrides";
    public static final String FETCH_DEFAULT = "kquota.quota.fetch.default";
    public static final String FETCH_OVERRIDES = "kquota.quota.fetch.overrides";
    public static final String GROUPS = "kquota.quota.groups";

    private static final String RATE = "a rate from 1K to 1000T, such as 2M (10^6) or 2Mi (2^20), or empty";

    private QuotaProperties() {
    }

    public static ConfigDef define(ConfigDef definition) {
        return definition
            .define(PRODUCE_DEFAULT, Type.STRING, "", checked(StaticQuotas::parseDefault, RATE), Importance.MEDIUM,
                "Produce quota of each client id on this broker, in bytes per second, where the standard tools have set none that covers the client. "
                    + "Clients without a client id share one. Empty: none.")
            .define(PRODUCE_OVERRIDES, Type.STRING, "", checked(StaticQuotas::parseOverrides, "clientA:4M,clientB:10M, or empty"), Importance.MEDIUM,
                "Produce quotas of single client ids, as the default otherwise.")
            .define(FETCH_DEFAULT, Type.STRING, "", checked(StaticQuotas::parseDefault, RATE), Importance.MEDIUM,
                "Fetch quota of each client id on this broker, in bytes per second, as for produce.")
            .define(FETCH_OVERRIDES, Type.STRING, "", checked(StaticQuotas::parseOverrides, "clientC:3M,clientD:5M, or empty"), Importance.MEDIUM,
                "Fetch quotas of single client ids, as the default otherwise.")
            .define(GROUPS, Type.LIST, "", LambdaValidator.with((name, value) -> { }, () -> "names of letters, digits, _, - and ., each once"),
                Importance.MEDIUM,
                "Names of the quota groups, separated by commas. Each has properties of its own, kquota.quota.group.NAME.*. Where patterns of several "
                    + "groups match a client, the first of this list counts.");
    }

    /** The default and the overrides of these two properties. */
    public static StaticQuotas staticQuotas(String byDefault, String overrides) {
        return StaticQuotas.of(StaticQuotas.parseDefault(byDefault), StaticQuotas.parseOverrides(overrides));
    }

    /** A validator from a parser whose exceptions name what is allowed. */
    public static ConfigDef.Validator checked(Consumer<String> parser, String allowed) {
        return LambdaValidator.with((name, value) -> {
            try {
                parser.accept((String) value);
            } catch (IllegalArgumentException e) {
                throw new ConfigException(name, value, e.getMessage());
            }
        }, () -> allowed);
    }

    /** A validator of a rate in bytes per second, which may be missing. */
    public static ConfigDef.Validator rate() {
        return checked(text -> {
            if (!text.isBlank()) {
                ByteRate.parse(text);
            }
        }, RATE);
    }
}
