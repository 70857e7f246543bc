// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// withWitness makes a server look at its store, as it does unless a test says otherwise.
func withWitness(flags ...string) []string { return append(flags, "--store-witness=true") }

// newInstallation forgets the store of earlier tests and what they left of its children, beside which no server starts
// for the first time. Tests with a witness do not run at the same time.
func newInstallation(t *testing.T) {
	t.Helper()
	forget := func() {
		deleteOwned(t)
		if err := framework.ForgetStore(context.WithoutCancel(t.Context()), plane.Kube); err != nil {
			t.Error(err)
		}
	}
	forget()
	t.Cleanup(forget)
}

// deleteOwned deletes everything that can have an owner of our kinds and has one. No garbage collector runs here.
func deleteOwned(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	client, err := metadata.NewForConfig(plane.Config)
	if err != nil {
		t.Fatal(err)
	}
	served, err := owners.ServedBy(ctx, plane.Kube.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range served {
		list, err := client.Resource(resource.GroupVersionResource).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, child := range list.Items {
			if len(child.OwnerReferences) == 0 {
				continue
			}
			children := client.Resource(resource.GroupVersionResource).Namespace(child.Namespace)
			// A claim has a finalizer that no controller removes here.
			_, err := children.Patch(ctx, child.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			if err == nil {
				err = children.Delete(ctx, child.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
			}
			if err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("deleting what an earlier test has left: %v", err)
			}
		}
	}
}

// record reads the half of the witness in the main cluster; it is nil if there is none.
func record(t *testing.T) *witness.Record {
	t.Helper()
	cm, err := plane.Kube.CoreV1().ConfigMaps(witness.Namespace).Get(t.Context(), witness.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := witness.Read(cm)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// changeRecord changes the half of the witness in the main cluster, as an administrator would.
func changeRecord(t *testing.T, change func(*witness.Record)) {
	t.Helper()
	framework.Eventually(t, "the record is changed", func(ctx context.Context) error {
		maps := plane.Kube.CoreV1().ConfigMaps(witness.Namespace)
		cm, err := maps.Get(ctx, witness.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		r, err := witness.Read(cm)
		if err != nil {
			return err
		}
		change(r)
		if err := r.Write(cm); err != nil {
			return err
		}
		_, err = maps.Update(ctx, cm, metav1.UpdateOptions{})
		return err
	})
}

// awaitRefusal waits until a server has published that it refuses its store.
func awaitRefusal(t *testing.T, reason witness.Reason) *witness.Refusal {
	t.Helper()
	var refusal *witness.Refusal
	framework.Eventually(t, "the refusal is published", func(context.Context) error {
		r := record(t)
		if r == nil || r.Refusal == nil || r.Refusal.Reason != reason {
			return fmt.Errorf("the record is %+v", r)
		}
		refusal = r.Refusal
		return nil
	})
	return refusal
}

// checkRefused wants a server to answer 503 for everything under /apis, and to live.
func checkRefused(t *testing.T, server *framework.Server) {
	t.Helper()
	awaitStarted(t, server)
	for path, want := range map[string]int{
		"/apis": http.StatusServiceUnavailable, "/apis/": http.StatusServiceUnavailable, "/apis/jobset.x-k8s.io": http.StatusServiceUnavailable,
		"/apis/jobset.x-k8s.io/v1alpha2": http.StatusServiceUnavailable, "/apis/nothing": http.StatusServiceUnavailable,
		"/apis/jobset.x-k8s.io/v1alpha2/jobsets": http.StatusServiceUnavailable, "/readyz": http.StatusInternalServerError, "/livez": http.StatusOK,
		"/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets/a": http.StatusServiceUnavailable,
	} {
		if code, body := server.Get(t, path); code != want {
			t.Errorf("%s: code %d, want %d: %s", path, code, want, body)
		}
	}
}

// awaitStarted waits until the server itself answers. Before that, something else says that it starts.
func awaitStarted(t *testing.T, server *framework.Server) {
	t.Helper()
	if err := server.Await(t.Context(), "has started", func(context.Context) error {
		if code, body := server.TryGet(t, "/readyz"); code == 0 || code == http.StatusServiceUnavailable {
			return fmt.Errorf("code %d: %s", code, body)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// launchRefused starts a server and waits until it serves its port; nothing more is to be expected of it.
func launchRefused(t *testing.T, flags ...string) *framework.Server {
	t.Helper()
	server := plane.LaunchServer(t, withWitness(flags...)...)
	if err := server.Await(t.Context(), "lives", func(context.Context) error {
		if code, body := server.TryGet(t, "/livez"); code != http.StatusOK {
			return fmt.Errorf("code %d: %s", code, body)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return server
}

func TestWitnessOfFirstStart(t *testing.T) {
	tier.OnRequest(t, "stops and starts servers on one store")
	newInstallation(t)
	dir := filepath.Join(framework.ShortDir(t), "data")
	server := plane.StartServer(t, withWitness(framework.Embedded(dir)...)...)
	first := record(t)
	if first == nil || first.UUID == "" || first.Floor == 0 || first.Refusal != nil {
		t.Fatalf("the record after the first start is %+v", first)
	}
	e := newEnv(t, server, server.Config(t))
	e.create(t, jobSet("a"))
	server.Stop(t)
	if stopped := record(t); stopped.UUID != first.UUID || stopped.Floor <= first.Floor {
		t.Errorf("the record after the server has stopped is %+v, was %+v", stopped, first)
	}
	server = plane.StartServer(t, withWitness(framework.Embedded(dir)...)...)
	e = &env{server: server, namespace: e.namespace, typed: clientset(t, server.Config(t)).JobSets(e.namespace)}
	e.get(t, "a")
}

func TestWitnessOfEmptyStore(t *testing.T) {
	tier.Safety(t)
	newInstallation(t)
	server := plane.StartServer(t, withWitness(framework.Embedded(filepath.Join(framework.ShortDir(t), "data"))...)...)
	server.Stop(t)
	before := record(t)

	server = launchRefused(t, framework.Embedded(filepath.Join(framework.ShortDir(t), "other"))...)
	refusal := awaitRefusal(t, witness.ReasonEmptyStore)
	checkRefused(t, server)
	changeRecord(t, func(r *witness.Record) {
		r.Accepted = &witness.Acceptance{NewUUID: refusal.NewUUID, Revision: refusal.Revision}
	})
	server.AwaitReady(t)
	after := record(t)
	if after.UUID != refusal.NewUUID || after.UUID == before.UUID || after.Refusal != nil || after.Accepted != nil || after.Restored == nil {
		t.Errorf("the record after the store was accepted is %+v", after)
	}
	e := newEnv(t, server, server.Config(t))
	e.create(t, jobSet("a"))
}
