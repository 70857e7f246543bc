// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto/x509"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
)

const host = "jobset-apiserver.jobset-system.svc"

var (
	jobSets   = APIService(schema.GroupVersion{Group: "jobset.x-k8s.io", Version: "v1alpha2"})
	groupSets = APIService(schema.GroupVersion{Group: "leaderworkerset.x-k8s.io", Version: "v1"})
	pods      = MutatingWebhook("jobset-apiserver-pods")
	begin     = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// cluster has the objects that managers share. Its API refuses writes of versions that are not the current ones.
type cluster struct {
	*testing.T
	kube    *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
	clock   *clocktesting.FakeClock
}

func newCluster(t *testing.T, objects ...runtime.Object) *cluster {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "jobset-system", Name: "certs", ResourceVersion: "1"}}
	kinds := map[schema.GroupVersionResource]string{jobSets.Resource: "APIServiceList", pods.Resource: "MutatingWebhookConfigurationList"}
	c := &cluster{T: t, kube: fake.NewClientset(secret), clock: clocktesting.NewFakeClock(begin)}
	c.dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
	c.kube.PrependReactor("update", "*", locking(c.kube.Tracker()))
	c.dynamic.PrependReactor("update", "*", locking(c.dynamic.Tracker()))
	return c
}

// locking makes updates of other versions than the current one conflict, as the real API does.
func locking(tracker clienttesting.ObjectTracker) clienttesting.ReactionFunc {
	var mu sync.Mutex
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		update := action.(clienttesting.UpdateAction)
		next := update.GetObject().DeepCopyObject()
		accessor, err := meta.Accessor(next)
		if err != nil {
			return true, nil, err
		}
		current, err := tracker.Get(update.GetResource(), update.GetNamespace(), accessor.GetName())
		if err != nil {
			return true, nil, err
		}
		stored, err := meta.Accessor(current)
		if err != nil {
			return true, nil, err
		}
		if stored.GetResourceVersion() != accessor.GetResourceVersion() {
			return true, nil, apierrors.NewConflict(update.GetResource().GroupResource(), accessor.GetName(), nil)
		}
		version, err := strconv.Atoi(stored.GetResourceVersion())
		if err != nil {
			return true, nil, err
		}
		accessor.SetResourceVersion(strconv.Itoa(version + 1))
		return true, next, tracker.Update(update.GetResource(), next, update.GetNamespace())
	}
}

func (c *cluster) manager(policy Policy) *Manager {
	return New(Config{
		Kube: c.kube, Dynamic: c.dynamic, Secret: types.NamespacedName{Namespace: "jobset-system", Name: "certs"}, Names: []string{host},
		Targets: []Target{jobSets, groupSets, pods}, Policy: policy, Clock: c.clock, Skew: func() time.Duration { return 0 },
	})
}

// service is the reference of our Service.
func service(name string) map[string]any {
	return map[string]any{"name": name, "namespace": "jobset-system"}
}

func apiService(target Target, fields map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": target.Name, "resourceVersion": "1"}, "spec": fields,
	}}
}

func webhookOf(configs ...map[string]any) *unstructured.Unstructured {
	var webhooks []any
	for _, config := range configs {
		webhooks = append(webhooks, map[string]any{"name": "mpod.kb.io", "clientConfig": config})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
		"metadata": map[string]any{"name": pods.Name, "resourceVersion": "1"}, "webhooks": webhooks,
	}}
}

// installed are the objects of an installation.
func installed() []runtime.Object {
	return []runtime.Object{
		apiService(jobSets, map[string]any{"service": service("jobset-apiserver")}), apiService(groupSets, map[string]any{"service": service("jobset-apiserver")}),
		webhookOf(map[string]any{"service": service("jobset-apiserver")}),
	}
}

func (c *cluster) get(target Target) *unstructured.Unstructured {
	c.Helper()
	object, err := c.dynamic.Resource(target.Resource).Get(c.Context(), target.Name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return object
}

// bundle returns the caBundle of the first part of the target that names our Service.
func (c *cluster) bundle(target Target) []*x509.Certificate {
	c.Helper()
	configs := clientConfigs(c.get(target), []string{host})
	if len(configs) == 0 {
		c.Fatalf("%s does not name the Service", target)
	}
	certs, clean := certificates(configs[0].bundle())
	if !clean {
		c.Errorf("the caBundle of %s has more than certificates", target)
	}
	return certs
}

// served returns what a manager serves with.
func (c *cluster) served(m *Manager) *authority.Pair {
	c.Helper()
	cert, key := m.CurrentCertKeyContent()
	pair, err := authority.Parse(cert, key)
	if err != nil {
		c.Fatal(err)
	}
	return pair
}

// accepted checks that clients with the current caBundles accept what a manager serves.
func (c *cluster) accepted(m *Manager) {
	c.Helper()
	for _, target := range []Target{jobSets, groupSets, pods} {
		if !trusts(c.bundle(target), c.served(m).Certificate, c.clock.Now()) {
			c.Fatalf("after %s: the caBundle of %s does not trust the serving certificate", c.clock.Since(begin), target)
		}
	}
}

func (c *cluster) secret() *corev1.Secret {
	c.Helper()
	secret, err := c.kube.CoreV1().Secrets("jobset-system").Get(c.Context(), "certs", metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return secret
}

func (c *cluster) setSecret(change func(*corev1.Secret)) {
	c.Helper()
	secret := c.secret()
	change(secret)
	if _, err := c.kube.CoreV1().Secrets("jobset-system").Update(c.Context(), secret, metav1.UpdateOptions{}); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) pass(m *Manager) {
	c.Helper()
	if err := m.Pass(c.Context()); err != nil {
		c.Fatalf("after %s: %v", c.clock.Since(begin), err)
	}
}
