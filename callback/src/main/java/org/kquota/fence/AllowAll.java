package org.kquota.fence;

import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.errors.SecurityDisabledException;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.authorizer.AuthorizerServerInfo;

import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;

/** As a broker without an authorizer: everything is allowed, and there are no ACLs to read or to change. */
public final class AllowAll implements Authorizer {
    private static final String NO_AUTHORIZER = "No Authorizer is configured.";

    @Override
    public Map<Endpoint, ? extends CompletionStage<Void>> start(AuthorizerServerInfo serverInfo) {
        Map<Endpoint, CompletionStage<Void>> ready = new HashMap<>();
        serverInfo.endpoints().forEach(endpoint -> ready.put(endpoint, CompletableFuture.completedFuture(null)));
        return ready;
    }

    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        return Collections.nCopies(actions.size(), AuthorizationResult.ALLOWED);
    }

    @Override
    public AuthorizationResult authorizeByResourceType(AuthorizableRequestContext context, AclOperation operation, ResourceType type) {
        return AuthorizationResult.ALLOWED;
    }

    @Override
    public List<? extends CompletionStage<AclCreateResult>> createAcls(AuthorizableRequestContext context, List<AclBinding> bindings) {
        return refused(bindings, AclCreateResult::new);
    }

    @Override
    public List<? extends CompletionStage<AclDeleteResult>> deleteAcls(AuthorizableRequestContext context, List<AclBindingFilter> filters) {
        return refused(filters, AclDeleteResult::new);
    }

    private static <T> List<CompletionStage<T>> refused(List<?> asked, Function<SecurityDisabledException, T> result) {
        return asked.stream().map(each -> (CompletionStage<T>)
            CompletableFuture.completedFuture(result.apply(new SecurityDisabledException(NO_AUTHORIZER)))).toList();
    }

    @Override
    public Iterable<AclBinding> acls(AclBindingFilter filter) {
        throw new SecurityDisabledException(NO_AUTHORIZER);
    }

    @Override
    public int aclCount() {
        return 0;
    }

    @Override
    public void configure(Map<String, ?> properties) {
        // It has no properties.
    }

    @Override
    public void close() {
        // It holds nothing.
    }
}
