package org.kquota.bench;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

import java.net.InetAddress;

/** A request as an authorizer sees it. */
record ProduceRequest(int requestType, KafkaPrincipal principal, String clientId) implements AuthorizableRequestContext {
    @Override
    public String listenerName() {
        return "CLIENTS";
    }

    @Override
    public SecurityProtocol securityProtocol() {
        return SecurityProtocol.SASL_SSL;
    }

    @Override
    public InetAddress clientAddress() {
        return InetAddress.getLoopbackAddress();
    }

    @Override
    public int requestVersion() {
        return 12;
    }

    @Override
    public int correlationId() {
        return 1;
    }
}
