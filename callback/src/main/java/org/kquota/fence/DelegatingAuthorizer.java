package org.kquota.fence;

import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.Reconfigurable;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.metadata.authorizer.AclMutator;
import org.apache.kafka.metadata.authorizer.ClusterMetadataAuthorizer;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.authorizer.AuthorizerServerInfo;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;

/**
 * An authorizer that leaves everything to another one. Kafka asks what an authorizer can do by its type, and loads ACLs
 * only into a {@link ClusterMetadataAuthorizer}: so this is all that an authorizer can be, and where the other one is less,
 * these methods do nothing.
 */
public class DelegatingAuthorizer implements ClusterMetadataAuthorizer, Reconfigurable {
    private Authorizer delegate;
    /** The same object as far as it is one, or null. */
    private ClusterMetadataAuthorizer metadataDelegate;

    /** Sets the authorizer to leave everything to; before anything else is called. */
    protected final void delegateTo(Authorizer authorizer) {
        delegate = authorizer;
        metadataDelegate = authorizer instanceof ClusterMetadataAuthorizer loadsAcls ? loadsAcls : null;
    }

    /** The authorizer that everything is left to. */
    protected final Authorizer delegate() {
        return delegate;
    }

    /**
     * A new authorizer of that class.
     *
     * @param key the property that names it, for the error
     * @throws ConfigException if there is no such class, it is no authorizer, or it cannot be made
     */
    protected static Authorizer newInstance(String key, String className) {
        String allowed = "allowed is the name of a class that implements " + Authorizer.class.getName() + ", or none to let every client do everything";
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        try {
            Class<?> type = Class.forName(className, true, context != null ? context : DelegatingAuthorizer.class.getClassLoader());
            if (!Authorizer.class.isAssignableFrom(type) || DelegatingAuthorizer.class.isAssignableFrom(type)) {
                throw new ConfigException(key, className, "it is no authorizer to wrap; " + allowed);
            }
            return (Authorizer) type.getDeclaredConstructor().newInstance();
        } catch (InvocationTargetException e) {
            throw new ConfigException(key, className, "it cannot be made, " + e.getCause() + "; " + allowed);
        } catch (ReflectiveOperationException | LinkageError e) {
            throw new ConfigException(key, className, "it cannot be made, " + e + "; " + allowed);
        }
    }

    // ---- Authorizer

    @Override
    public void configure(Map<String, ?> properties) {
        delegate.configure(properties);
    }

    @Override
    public Map<Endpoint, ? extends CompletionStage<Void>> start(AuthorizerServerInfo serverInfo) {
        return delegate.start(serverInfo);
    }

    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        return delegate.authorize(context, actions);
    }

    @Override
    public AuthorizationResult authorizeByResourceType(AuthorizableRequestContext context, AclOperation operation, ResourceType type) {
        return delegate.authorizeByResourceType(context, operation, type);
    }

    @Override
    public List<? extends CompletionStage<AclCreateResult>> createAcls(AuthorizableRequestContext context, List<AclBinding> bindings) {
        return delegate.createAcls(context, bindings);
    }

    @Override
    public List<? extends CompletionStage<AclDeleteResult>> deleteAcls(AuthorizableRequestContext context, List<AclBindingFilter> filters) {
        return delegate.deleteAcls(context, filters);
    }

    @Override
    public Iterable<AclBinding> acls(AclBindingFilter filter) {
        return delegate.acls(filter);
    }

    @Override
    public int aclCount() {
        return delegate.aclCount();
    }

    @Override
    public void close() throws IOException {
        if (delegate != null) {
            delegate.close();
        }
    }

    // ---- ClusterMetadataAuthorizer

    @Override
    public void setAclMutator(AclMutator aclMutator) {
        if (metadataDelegate != null) {
            metadataDelegate.setAclMutator(aclMutator);
        }
    }

    @Override
    public AclMutator aclMutatorOrException() {
        if (metadataDelegate == null) {
            throw new IllegalStateException(delegate.getClass().getName() + " keeps its ACLs itself");
        }
        return metadataDelegate.aclMutatorOrException();
    }

    @Override
    public void completeInitialLoad() {
        if (metadataDelegate != null) {
            metadataDelegate.completeInitialLoad();
        }
    }

    @Override
    public void completeInitialLoad(Exception error) {
        if (metadataDelegate != null) {
            metadataDelegate.completeInitialLoad(error);
        }
    }

    @Override
    public void loadSnapshot(Map<Uuid, StandardAcl> acls) {
        if (metadataDelegate != null) {
            metadataDelegate.loadSnapshot(acls);
        }
    }

    @Override
    public void addAcl(Uuid id, StandardAcl acl) {
        if (metadataDelegate != null) {
            metadataDelegate.addAcl(id, acl);
        }
    }

    @Override
    public void removeAcl(Uuid id) {
        if (metadataDelegate != null) {
            metadataDelegate.removeAcl(id);
        }
    }

    // ---- other interfaces that an authorizer may have

    @Override
    public Set<String> reconfigurableConfigs() {
        return delegate instanceof Reconfigurable reconfigurable ? reconfigurable.reconfigurableConfigs() : Set.of();
    }

    @Override
    public void validateReconfiguration(Map<String, ?> properties) {
        if (delegate instanceof Reconfigurable reconfigurable) {
            reconfigurable.validateReconfiguration(properties);
        }
    }

    @Override
    public void reconfigure(Map<String, ?> properties) {
        if (delegate instanceof Reconfigurable reconfigurable) {
            reconfigurable.reconfigure(properties);
        }
    }
}
