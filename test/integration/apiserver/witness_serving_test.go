// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestWitnessWhileServing takes the key out of the store of a server that serves, and puts it back.
func TestWitnessWhileServing(t *testing.T) {
	tier.OnRequest(t, "several servers and stores at a time")
	newInstallation(t)
	etcd := plane.StartEtcd(t)
	server := plane.StartServer(t, withWitness(etcd.Flags...)...)
	plane.Aggregate(t, server)
	e := newEnv(t, server, plane.Config)
	e.create(t, jobSet("a"))
	watcher, err := e.typed.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	key := storedKey{etcd.Client(t), "/registry/jobset-apiserver"}
	var right witness.Key
	key.change(t, func(k *witness.Key) *witness.Key { right = *k; return nil })

	if _, err := e.typed.Get(t.Context(), "missing", metav1.GetOptions{}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("what does not exist is answered with %v", err)
	}
	for event := range watcher.ResultChan() {
		if event.Type == watch.Deleted || event.Type == watch.Error {
			t.Errorf("the watch has the event %+v", event)
		}
	}
	if out, err := plane.Kubectl(t, "get", "jobsets", "-n", e.namespace); err == nil || strings.Contains(out, "No resources found") {
		t.Errorf("kubectl get ends with %v and says: %s", err, out)
	}
	checkRefused(t, server)
	if refusal := awaitRefusal(t, witness.ReasonEmptyStore); !refusal.Served || !strings.Contains(refusal.Message, "restart it after the right store is back") {
		t.Errorf("the refusal does not say that the server has answered: %+v", refusal)
	}
	if err := checkNoDelay(t, server); err != nil {
		t.Error(err)
	}

	if _, err := key.client.Put(t.Context(), key.name(), string(right.Encode())); err != nil {
		t.Fatal(err)
	}
	if code := server.Wait(t); code != 1 || !strings.Contains(server.Log(), "the right one again") {
		t.Errorf("the server ends with code %d", code)
	}
	server = plane.StartServer(t, withWitness(etcd.Flags...)...)
	if _, err := clientset(t, server.Config(t)).JobSets(e.namespace).Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	framework.Eventually(t, "the refusal is over", func(context.Context) error {
		if r := record(t); r.Refusal != nil {
			return fmt.Errorf("%+v", r.Refusal)
		}
		return nil
	})
}

// checkNoDelay wants no header that would make clients repeat the request in place.
func checkNoDelay(t *testing.T, server *framework.Server) error {
	t.Helper()
	client, err := rest.HTTPClientFor(server.Anonymous(t))
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL()+"/apis", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if delay := response.Header.Get("Retry-After"); delay != "" || response.StatusCode != http.StatusServiceUnavailable {
		return fmt.Errorf("code %d, Retry-After %q", response.StatusCode, delay)
	}
	return nil
}

// TestWitnessOfSecondStore starts a server with another store beside one that serves.
func TestWitnessOfSecondStore(t *testing.T) {
	tier.OnRequest(t, "several servers and stores at a time")
	newInstallation(t)
	first := plane.StartServer(t, withWitness(framework.Embedded(filepath.Join(framework.ShortDir(t), "data"))...)...)
	second := launchRefused(t, framework.Embedded(filepath.Join(framework.ShortDir(t), "data"))...)
	awaitRefusal(t, witness.ReasonEmptyStore)
	checkRefused(t, second)
	e := newEnv(t, first, first.Config(t))
	e.create(t, jobSet("a"))
}

// TestWitnessOfReplicas starts servers at the same time on one empty store.
func TestWitnessOfReplicas(t *testing.T) {
	tier.OnRequest(t, "several servers and stores at a time")
	newInstallation(t)
	etcd := plane.StartEtcd(t)
	var servers []*framework.Server
	for range 3 {
		servers = append(servers, plane.LaunchServer(t, withWitness(etcd.Flags...)...))
	}
	for _, server := range servers {
		server.AwaitReady(t)
	}
	for i, server := range servers {
		e := newEnv(t, server, server.Config(t))
		e.create(t, jobSet(fmt.Sprint("a-", i)))
		if _, err := clientset(t, servers[0].Config(t)).JobSets(e.namespace).Get(t.Context(), fmt.Sprint("a-", i), metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
}

// TestWitnessWaitsForMainCluster starts a server that cannot read the record.
func TestWitnessWaitsForMainCluster(t *testing.T) {
	tier.OnRequest(t, "several servers and stores at a time")
	newInstallation(t)
	bindings := plane.Kube.RbacV1().RoleBindings(witness.Namespace)
	binding, err := bindings.Get(t.Context(), "jobset-apiserver:store", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := bindings.Delete(t.Context(), binding.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	binding.ResourceVersion, binding.UID = "", ""
	allow := func(ctx context.Context) error {
		_, err := bindings.Create(ctx, binding, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	t.Cleanup(func() {
		if err := allow(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	server := launchRefused(t, framework.Embedded(filepath.Join(framework.ShortDir(t), "data"))...)
	framework.Eventually(t, "the server has looked", func(context.Context) error {
		if !strings.Contains(server.Log(), "Cannot compare the store with the main cluster") {
			return errors.New("it does not say so")
		}
		return nil
	})
	checkRefused(t, server)
	if err := allow(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.AwaitReady(t)
	// A reason is not repeated.
	last := ""
	for line := range strings.Lines(server.Log()) {
		if _, reason, found := strings.Cut(line, "Cannot compare the store with the main cluster"); found {
			if reason == last {
				t.Errorf("two lines in a row about the same reason: %s", reason)
			}
			last = reason
		}
	}
}
