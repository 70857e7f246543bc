// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/outage"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/migration"
)

const (
	// automanaged marks APIServices that kube-apiserver keeps for CustomResourceDefinitions.
	automanaged = "kube-aggregator.kubernetes.io/automanaged"
	// serverService is the Service of jobset-apiserver.
	serverService = "jobset-apiserver"
	routePoll     = 200 * time.Millisecond
	// routeTimeout is how long kube-apiserver may take until it has changed the way of a group.
	routeTimeout = time.Minute
)

// ownAPIService leads to jobset-apiserver wherever it is installed: no CustomResourceDefinition has its group.
var ownAPIService = batchv1alpha1.SchemeGroupVersion.Version + "." + batchv1alpha1.SchemeGroupVersion.Group

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// router says which server answers for a group.
type router struct {
	client dynamic.Interface
}

// toServer makes kube-apiserver forward a group to jobset-apiserver. It may be repeated.
func (r *router) toServer(ctx context.Context, group schema.GroupVersion) error {
	service, authority, err := r.backend(ctx)
	if err != nil {
		return err
	}
	name := group.Version + "." + group.Group
	services := r.client.Resource(outage.APIServices)
	wanted := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"group": group.Group, "version": group.Version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(100),
			"caBundle": authority, "service": service,
		},
	}}
	wanted.SetLabels(map[string]string{"app.kubernetes.io/name": "jobset-apiserver"})
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		// An update and no apply: the label automanaged must go, or kube-apiserver puts its own object back.
		current, err := services.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = services.Create(ctx, wanted, metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		wanted.SetResourceVersion(current.GetResourceVersion())
		_, err = services.Update(ctx, wanted, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("routing %s to jobset-apiserver: APIService %s: %w", group, name, err)
	}
	return nil
}

// backend is where an APIService of jobset-apiserver leads, which no CustomResourceDefinition has: the Service, and the
// authority of its certificate.
func (r *router) backend(ctx context.Context) (service map[string]any, authority string, err error) {
	name := ownAPIService
	object, err := r.client.Resource(outage.APIServices).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, "", fmt.Errorf("APIService %s, which an installation of jobset-apiserver has: %w", name, err)
	}
	service, _, err = unstructured.NestedMap(object.Object, "spec", "service")
	if err == nil {
		authority, _, err = unstructured.NestedString(object.Object, "spec", "caBundle")
	}
	if err == nil && (service == nil || authority == "") {
		err = errors.New("it has no service or no caBundle yet: wait until jobset-apiserver has started")
	}
	if err != nil {
		return nil, "", fmt.Errorf("APIService %s: %w", name, err)
	}
	return service, authority, nil
}

// awaitServer waits until jobset-apiserver serves.
func (r *router) awaitServer(ctx context.Context) error { return r.awaitAvailable(ctx, ownAPIService) }

// awaitAvailable waits until kube-apiserver forwards requests for an APIService.
func (r *router) awaitAvailable(ctx context.Context, name string) error {
	last, asked := "it has no condition Available yet", time.Time{}
	err := wait.PollUntilContextTimeout(ctx, routePoll, routeTimeout, true, func(ctx context.Context) (bool, error) {
		service, err := r.client.Resource(outage.APIServices).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			if ctx.Err() == nil {
				last = err.Error()
			}
			return false, nil
		}
		condition := outage.Available(service)
		if condition != nil {
			last = condition.Message
		}
		if condition != nil && condition.Status == metav1.ConditionTrue {
			return true, nil
		}
		if now := time.Now(); now.Sub(asked) >= lookAgainEvery {
			asked = now
			r.lookAgain(ctx, name, now.UTC().Format(time.RFC3339Nano))
		}
		return false, nil
	})
	if !asked.IsZero() {
		r.lookAgain(context.WithoutCancel(ctx), name, nil)
	}
	if wait.Interrupted(err) {
		return fmt.Errorf("APIService %s does not become available: %s", name, last)
	}
	return err
}

// awaitServed waits until objects can be read. The server does not serve a group before it has looked at the owners of all objects,
// which it does once the group is routed to it.
func (r *router) awaitServed(ctx context.Context, s subject) error {
	return await(ctx, fmt.Sprintf("jobset-apiserver does not serve %s", s.resource.GroupVersion()), func(ctx context.Context) error {
		return r.list(ctx, s.resource)
	})
}

// list returns why the objects of a resource cannot be listed; nil if they can.
func (r *router) list(ctx context.Context, resource schema.GroupVersionResource) error {
	_, err := r.client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
	return err
}

// await waits until a check of a route passes. The error says what is unserved, and what the last check returned.
func await(ctx context.Context, unserved string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, routePoll, routeTimeout, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if wait.Interrupted(err) && last != nil {
		return fmt.Errorf("%s: %w", unserved, last)
	}
	return err
}

const (
	// lookAgainKey is the annotation of an APIService that changes while a migration waits for it, every lookAgainEvery.
	lookAgainKey   = "migration.jobset-apiserver.io/look-again"
	lookAgainEvery = time.Second
)

// lookAgain makes kube-apiserver look at once whether an APIService is available. Otherwise it looks every 30 seconds at one that was
// not, and writes would be refused for so much longer. An error makes no difference but that.
func (r *router) lookAgain(ctx context.Context, name string, value any) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{lookAgainKey: value}}})
	if err == nil {
		_, _ = r.client.Resource(outage.APIServices).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
}

// toDefinition gives a group back to kube-apiserver, which replaces the APIService by its own for the CustomResourceDefinition, and
// waits until it has. It may be repeated.
func (r *router) toDefinition(ctx context.Context, s subject) error {
	patch := []byte(fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, automanaged))
	_, err := r.client.Resource(outage.APIServices).Patch(ctx, s.apiService(), types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("giving %s back to its CustomResourceDefinition: %w", s.resource.GroupVersion(), err)
	}
	unserved := fmt.Sprintf("kube-apiserver does not serve %s from the CustomResourceDefinition, although APIService %s has the label %s",
		s.resource.GroupVersion(), s.apiService(), automanaged)
	return await(ctx, unserved, func(ctx context.Context) error {
		if routed, err := r.routed(ctx, s); err != nil || routed {
			return cmp.Or(err, errStillRouted)
		}
		return r.list(ctx, s.resource)
	})
}

// errStillRouted means that kube-apiserver has not looked at an APIService that was given back.
var errStillRouted = errors.New("it still has the Service of jobset-apiserver")

// routed returns whether kube-apiserver forwards a group to another server.
func (r *router) routed(ctx context.Context, s subject) (bool, error) {
	service, err := r.client.Resource(outage.APIServices).Get(ctx, s.apiService(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	server, found, err := unstructured.NestedMap(service.Object, "spec", "service")
	return found && server != nil, err
}

// openMigration routes the migration API, also while the server is not ready because it refuses its store.
func (r *router) openMigration(ctx context.Context) error {
	if err := r.publishNotReady(ctx, true); err != nil {
		return err
	}
	if err := r.toServer(ctx, migration.GroupVersion); err != nil {
		return err
	}
	return r.awaitAvailable(ctx, migration.Version+"."+migration.Group)
}

// closeMigration ends what openMigration began.
func (r *router) closeMigration(ctx context.Context) error {
	name := migration.Version + "." + migration.Group
	if err := r.client.Resource(outage.APIServices).Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting APIService %s: %w", name, err)
	}
	return r.publishNotReady(ctx, false)
}

func (r *router) publishNotReady(ctx context.Context, publish bool) error {
	services := r.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "services"}).Namespace(systemNamespace)
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"publishNotReadyAddresses": publish}})
	if err != nil {
		return err
	}
	if _, err := services.Patch(ctx, serverService, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("changing Service %s/%s: %w", systemNamespace, serverService, err)
	}
	return nil
}
