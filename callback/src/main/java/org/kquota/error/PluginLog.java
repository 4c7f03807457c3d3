package org.kquota.error;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The logger of the plug-in. It has the name of the class that configurations name, so that operators can set its level whatever package logs. */
public final class PluginLog {
    public static final Logger LOG = LoggerFactory.getLogger("org.kquota.KquotaCallback");

    private PluginLog() {
    }
}
