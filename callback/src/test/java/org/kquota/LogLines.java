package org.kquota;

import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.Logger;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Configurator;
import org.apache.logging.log4j.core.config.Property;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** The lines that a class logs meanwhile; warnings and errors unless a level is given. */
public final class LogLines extends AbstractAppender implements AutoCloseable {
    private final List<String> lines = new CopyOnWriteArrayList<>();
    private final List<Throwable> faults = new CopyOnWriteArrayList<>();
    private final Logger logger;
    private final Level before;

    public LogLines(Class<?> of) {
        this(of, Level.WARN);
    }

    /** Those of this level, too. */
    public LogLines(Class<?> of, Level from) {
        super("lines of " + of.getName(), null, null, false, Property.EMPTY_ARRAY);
        start();
        logger = (Logger) LogManager.getLogger(of);
        before = logger.getLevel();
        logger.addAppender(this);
        Configurator.setLevel(of.getName(), from);
    }

    @Override
    public void append(LogEvent event) {
        lines.add(event.getMessage().getFormattedMessage());
        if (event.getThrown() != null) {
            faults.add(event.getThrown());
        }
    }

    public List<String> lines() {
        return List.copyOf(lines);
    }

    /** The faults logged with a stack trace. */
    public List<Throwable> faults() {
        return List.copyOf(faults);
    }

    @Override
    public void close() {
        logger.removeAppender(this);
        Configurator.setLevel(logger.getName(), before);
        stop();
    }
}
