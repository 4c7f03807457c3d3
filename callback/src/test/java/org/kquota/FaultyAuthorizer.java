package org.kquota;

import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.kquota.fence.Fence;

import java.util.List;

/** The fence with a fault inside: whatever it does for a client whose id starts with poison throws. */
public final class FaultyAuthorizer extends AuthorizerWithoutMetrics {
    @Override
    String whyRefused(Fence asked, AuthorizableRequestContext context, List<Action> actions, List<AuthorizationResult> results) {
        if (context.clientId().startsWith("poison")) {
            throw new StackOverflowError("an injected error");
        }
        return super.whyRefused(asked, context, actions, results);
    }
}
