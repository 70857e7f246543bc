// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespaces keeps controllers from running objects that are older than their namespace: the namespace was
// deleted while the server of the objects was away, and another one has its name by now.
package namespaces

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/permission"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

const (
	// lookupTimeout bounds the question for a namespace that the cache does not have.
	lookupTimeout = 5 * time.Second
	// maxSkew is by how much the clocks of the servers of an object and of its namespace may differ. An object that was
	// created later than that after its namespace is not older, whatever was recorded: the server took the UID from a
	// cache.
	maxSkew = 5 * time.Minute
)

// Watch knows the namespaces of the main cluster.
type Watch struct {
	cached *informers.Informer
	live   corev1client.NamespaceInterface
	clock  clock.PassiveClock
	// refusals are the refusals of live.
	denials permission.Series
}

// New declares that a kind needs namespaces. Without the permission to watch them each object asks for its own. Without that to get them,
// the kind runs, and holds nothing.
func New(kind *informers.Kind, client kubernetes.Interface, clock clock.PassiveClock) *Watch {
	return &Watch{
		cached: kind.Informer(informers.Need{Resource: kind.Namespaces(), Transform: transform, Optional: true}),
		live:   client.CoreV1().Namespaces(), clock: clock,
	}
}

// transform keeps what tells one namespace from the next.
func transform(obj any) (any, error) {
	namespace, ok := obj.(metav1.Object)
	if !ok {
		return obj, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: namespace.GetName(), UID: namespace.GetUID(), ResourceVersion: namespace.GetResourceVersion(),
	}}, nil
}

// Object is an object that may be older than its namespace.
type Object interface {
	runtime.Object
	metav1.Object
}

// Hold returns whether a controller must not act on an object because it is older than its namespace, and says so in
// its conditions and in an event. It returns an error while that cannot be found out, or while the condition is not stored. The resource is
// the resource of the object.
func Hold[T Object](ctx context.Context, w *Watch, host *children.Host, client children.OwnerClient[T], resource string,
	recorder events.EventRecorder, object T, conditions func(T) *[]metav1.Condition,
) (bool, error) {
	if object.GetDeletionTimestamp() != nil || unreadable.Is(object) {
		return false, nil
	}
	present, err := w.successor(ctx, object)
	if err != nil {
		return false, fmt.Errorf("finding out whether %s is the namespace in which the object was created: %w", object.GetNamespace(), err)
	}
	was := meta.FindStatusCondition(*conditions(object), namespaceuid.Condition)
	if present == "" && (was == nil || was.Status != metav1.ConditionTrue) {
		return false, nil
	}
	next := w.condition(object, present)
	if was != nil && was.Status == next.Status && was.Message == next.Message {
		return true, nil
	}
	if err := write(ctx, host, client, resource, object, conditions, next); err != nil || present == "" {
		return true, err // the change of the object is a reason to look again
	}
	klog.FromContext(ctx).Info("The object is older than its namespace, and is left alone", "recordedUID",
		object.GetAnnotations()[namespaceuid.Annotation], "namespaceUID", present)
	recorder.Eventf(object, nil, corev1.EventTypeWarning, next.Reason, "Hold", "%s", next.Message)
	return true, nil
}

// condition returns that of an object which is older than its namespace, or of one that is not any more because present is empty.
func (w *Watch) condition(object metav1.Object, present types.UID) metav1.Condition {
	c := metav1.Condition{
		Type: namespaceuid.Condition, Status: metav1.ConditionFalse, Reason: namespaceuid.ReasonConfirmed,
		Message:            "the object belongs to the present namespace",
		ObservedGeneration: object.GetGeneration(), LastTransitionTime: metav1.NewTime(w.clock.Now()),
	}
	if present != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, namespaceuid.ReasonOlderThanNamespace, message(object, present)
	}
	return c
}

// message says what is wrong and what to do.
func message(object metav1.Object, present types.UID) string {
	return fmt.Sprintf("the namespace %[1]s was deleted and created again after this object was created, so nothing is run for it; delete "+
		"the object, or if it belongs to the new namespace, "+
		"set its annotation %[2]s to %[3]s", object.GetNamespace(), namespaceuid.Annotation, present)
}

// successor returns the UID of the namespace of an object if the object is older; empty if it is not, or if nothing was recorded.
func (w *Watch) successor(ctx context.Context, object metav1.Object) (types.UID, error) {
	recorded := types.UID(object.GetAnnotations()[namespaceuid.Annotation])
	if recorded == "" {
		return "", nil
	}
	if w.cached.HasSynced() {
		obj, err := w.cached.GetByKey(object.GetNamespace())
		if err != nil {
			return "", err
		}
		if namespace, found := obj.(metav1.Object); found && namespace.GetUID() == recorded {
			return "", nil
		}
	}
	// What the cache has may be older than the object. It has nothing if it may not be filled, or if kube-apiserver had
	// just started and did not know all roles.
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	namespace, err := w.live.Get(ctx, object.GetNamespace(), metav1.GetOptions{})
	w.denials.Note(err, w.clock.Now())
	switch {
	case apierrors.IsNotFound(err), w.denials.Last(w.clock.Now()):
		return "", nil // nothing can be created there, or nothing can be known
	case err != nil:
		return "", err
	case namespace.UID == recorded, object.GetCreationTimestamp().After(namespace.CreationTimestamp.Add(maxSkew)):
		return "", nil
	}
	return namespace.UID, nil
}

// write stores a condition. An object that was changed meanwhile is looked at again.
func write[T Object](ctx context.Context, host *children.Host, client children.OwnerClient[T], resource string, object T,
	conditions func(T) *[]metav1.Condition, next metav1.Condition) error {
	copied, ok := object.DeepCopyObject().(T)
	if !ok {
		return fmt.Errorf("a copy of %T is none", object)
	}
	meta.SetStatusCondition(conditions(copied), next)
	if _, _, err := children.StoreStatus(ctx, host, client, resource, "object", object, copied); err != nil {
		return fmt.Errorf("writing the condition %s: %w", next.Type, err)
	}
	return nil
}
