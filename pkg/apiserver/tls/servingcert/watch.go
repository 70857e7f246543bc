// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// pause is the shortest time between two passes, and retryPause that after one that failed.
	pause      = 500 * time.Millisecond
	retryPause = 5 * time.Second
	// passTimeout bounds one pass.
	passTimeout = 30 * time.Second
)

// Run makes passes until the context ends: when an object changes, and regularly.
func (m *Manager) Run(ctx context.Context) {
	var watches sync.WaitGroup
	defer watches.Wait()
	secrets := corev1.SchemeGroupVersion.WithResource("secrets")
	watches.Go(func() { m.watch(ctx, secrets, m.Secret.Namespace, m.Secret.Name) })
	for _, target := range m.Targets {
		watches.Go(func() { m.watch(ctx, target.Resource, metav1.NamespaceAll, target.Name) })
	}
	for ctx.Err() == nil {
		next := m.Policy.pass()
		if err := m.boundedPass(ctx); err != nil {
			next = min(next, retryPause)
		}
		m.wait(ctx, pause, nil)
		m.wait(ctx, next, m.trigger)
	}
}

func (m *Manager) boundedPass(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	return m.Pass(ctx)
}

func (m *Manager) wait(ctx context.Context, at time.Duration, early <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-early:
	case <-m.Clock.After(at):
	}
}

// watch asks for a pass whenever the object changes. It needs the permission for this object alone, and keeps nothing
// of it but its version.
func (m *Manager) watch(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) {
	only := func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(m.Dynamic, resource, namespace, 0, cache.Indexers{}, only).Informer()
	notify := func() {
		select {
		case m.trigger <- struct{}{}:
		default: // A pass is asked for already.
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { notify() }, UpdateFunc: func(any, any) { notify() }, DeleteFunc: func(any) { notify() },
	})
	if err == nil {
		err = informer.SetTransform(versionOnly)
	}
	if err == nil {
		// A pass that cannot read the object says so.
		err = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
			klog.FromContext(ctx).V(1).Info("A watch has ended, and begins again", "resource", resource.Resource, "name", name, "reason", err)
		})
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Changes are noticed later, because the object cannot be watched", "resource", resource.Resource, "name",
			name)
		return
	}
	informer.RunWithContext(ctx)
}

func versionOnly(object any) (any, error) {
	full, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	short := &unstructured.Unstructured{}
	short.SetGroupVersionKind(full.GroupVersionKind())
	short.SetNamespace(full.GetNamespace())
	short.SetName(full.GetName())
	short.SetResourceVersion(full.GetResourceVersion())
	return short, nil
}
