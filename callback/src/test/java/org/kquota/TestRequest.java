package org.kquota;

import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

import java.net.InetAddress;

/** A request as an authorizer sees it. */
public record TestRequest(int requestType, KafkaPrincipal principal, String clientId) implements AuthorizableRequestContext {
    public static TestRequest of(ApiKeys type, String user) {
        return new TestRequest(type.id, new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user), "app");
    }

    public static Action action(AclOperation operation, ResourceType type, String name) {
        return new Action(operation, new ResourcePattern(type, name, PatternType.LITERAL), 1, true, true);
    }

    public static Action writeTo(String topic) {
        return action(AclOperation.WRITE, ResourceType.TOPIC, topic);
    }

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
