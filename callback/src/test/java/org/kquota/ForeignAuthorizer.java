package org.kquota;

import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.Reconfigurable;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.authorizer.AuthorizerServerInfo;
import org.kquota.fence.AllowAll;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;

/** An authorizer as other products have it: no ACLs in Kafka, one rule that can be changed while the broker runs. */
public final class ForeignAuthorizer implements Authorizer, Reconfigurable {
    public static final String DENIED = "foreign.denied.user";

    private final AllowAll rest = new AllowAll();
    private volatile String denied;

    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        return actions.stream().map(action -> action.operation() == AclOperation.WRITE && context.principal().getName().equals(denied)
            ? AuthorizationResult.DENIED : AuthorizationResult.ALLOWED).toList();
    }

    @Override
    public void configure(Map<String, ?> properties) {
        denied = (String) properties.get(DENIED);
    }

    @Override
    public Set<String> reconfigurableConfigs() {
        return Set.of(DENIED);
    }

    @Override
    public void validateReconfiguration(Map<String, ?> properties) {
        if ("nobody".equals(properties.get(DENIED))) {
            throw new ConfigException(DENIED, "nobody");
        }
    }

    @Override
    public void reconfigure(Map<String, ?> properties) {
        configure(properties);
    }

    @Override
    public Map<Endpoint, ? extends CompletionStage<Void>> start(
            AuthorizerServerInfo serverInfo) {
        return rest.start(serverInfo);
    }

    @Override
    public List<? extends CompletionStage<AclCreateResult>> createAcls(
            AuthorizableRequestContext context, List<AclBinding> bindings) {
        return rest.createAcls(context, bindings);
    }

    @Override
    public List<? extends CompletionStage<AclDeleteResult>> deleteAcls(
            AuthorizableRequestContext context, List<AclBindingFilter> filters) {
        return rest.deleteAcls(context, filters);
    }

    @Override
    public Iterable<AclBinding> acls(AclBindingFilter filter) {
        return rest.acls(filter);
    }

    @Override
    public void close() {
        rest.close();
    }
}
