// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	typed "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

const (
	lwsService     = "v1.leaderworkerset.x-k8s.io"
	definitionName = "leaderworkersets.leaderworkerset.x-k8s.io"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func takenName(i int) string { return fmt.Sprintf("taken-%d", i) }

func (o *takeover) sets() typed.LeaderWorkerSetInterface {
	return o.JobSets.LeaderworkersetV1().LeaderWorkerSets(o.namespace)
}

// begin makes the state before a take-over: sets that a CustomResourceDefinition serves, with the children that upstream's controller
// makes. Our controller makes them: other tests show that it makes the same children as upstream. Then the sets move, with their UIDs, from
// our etcd into the etcd of kube-apiserver.
func (o *takeover) begin(t *testing.T) {
	t.Helper()
	o.createSets(t)
	o.controller(t, "stop")
	o.rest(t)
	o.define(t)
	o.do(t, "kubectl apply -f artifacts/take-over/freeze.yaml")
	main := o.mainEtcd(t)
	for i := range takenSets {
		set, err := o.sets().Get(t.Context(), takenName(i), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		o.uids[set.Name] = set.UID
		set.APIVersion, set.Kind, set.ResourceVersion = leaderworkersetv1.SchemeGroupVersion.String(), "LeaderWorkerSet", ""
		set.Status.ReadyReplicas = 0 // the other controller has stopped before it saw the last change
		if _, err := main.Put(t.Context(), "/registry/leaderworkerset.x-k8s.io/leaderworkersets/"+o.namespace+"/"+set.Name, string(encode(t, set))); err != nil {
			t.Fatal(err)
		}
	}
	o.saveService(t)
	if err := o.dynamic.Resource(apiservice.Resource).Delete(t.Context(), lwsService, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	o.local(t)
	o.awaitUIDs(t)
	// The garbage collector must not see the deletions in our store. Its watch ends with the server.
	o.serve(t, on(o.right))
	if _, err := o.etcd.Delete(t.Context(), "/registry/jobset-apiserver/leaderworkerset.x-k8s.io/leaderworkersets/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	var err error
	if o.was, err = o.versions(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Per set: 2 StatefulSets, 2 pods, a Service, and the ControllerRevisions of the set and of both StatefulSets.
	if len(o.was) != 8*takenSets {
		t.Fatalf("children: %q", slices.Sorted(maps.Keys(o.was)))
	}
}

// createSets creates sets of one group of two pods, and waits until they run.
func (o *takeover) createSets(t *testing.T) {
	t.Helper()
	for i := range takenSets {
		set := &leaderworkersetv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: takenName(i)}, Spec: leaderworkersetv1.LeaderWorkerSetSpec{
			Replicas: ptr.To[int32](1),
			LeaderWorkerTemplate: leaderworkersetv1.LeaderWorkerTemplate{
				GroupSize:      ptr.To[int32](2),
				WorkerTemplate: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main:1"}}}},
			},
		}}
		if _, err := o.sets().Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	framework.Eventually(t, "all sets are available", func(ctx context.Context) error {
		for i := range takenSets {
			set, err := o.sets().Get(ctx, takenName(i), metav1.GetOptions{})
			if err != nil {
				return err
			}
			if !meta.IsStatusConditionTrue(set.Status.Conditions, leaderworkersetv1.ConditionAvailable) || set.Status.ReadyReplicas != 1 {
				return fmt.Errorf("%s: %+v", set.Name, set.Status)
			}
		}
		return nil
	})
}

// rest waits until nothing writes to the children any more: another controller may have written a status after jobset-controller looked at it.
func (o *takeover) rest(t *testing.T) {
	t.Helper()
	var last map[string]string
	since := time.Now()
	framework.Eventually(t, "the children rest", func(ctx context.Context) error {
		now, err := o.versions(ctx)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(last, now); diff != "" {
			last, since = now, time.Now()
			return fmt.Errorf("they have changed (-before +now):\n%s", diff)
		}
		if rested := time.Since(since); rested < 10*time.Second {
			return fmt.Errorf("nothing has changed for %s", rested)
		}
		return nil
	})
}

// define creates the definition. Our APIService still has the group.
func (o *takeover) define(t *testing.T) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "leaderworkersets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	definition := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(content, &definition.Object); err != nil {
		t.Fatal(err)
	}
	if _, err := o.dynamic.Resource(definitions).Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the definition is established", func(ctx context.Context) error {
		got, err := o.dynamic.Resource(definitions).Get(ctx, definitionName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
		for _, condition := range conditions {
			if c := condition.(map[string]any); c["type"] == "Established" && c["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", conditions)
	})
}

// mainEtcd returns the etcd of kube-apiserver.
func (o *takeover) mainEtcd(t *testing.T) *clientv3.Client {
	t.Helper()
	pid, err := os.ReadFile(filepath.Join(o.Dir, "pids", "kube-apiserver.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for flag := range strings.SplitSeq(string(line), "\x00") {
		if address, ok := strings.CutPrefix(flag, "--etcd-servers="); ok {
			client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Close() })
			return client
		}
	}
	t.Fatalf("kube-apiserver has no --etcd-servers: %q", line)
	return nil
}

// saveService writes our APIService to a file, as the page asks for.
func (o *takeover) saveService(t *testing.T) {
	t.Helper()
	service, err := o.dynamic.Resource(apiservice.Resource).Get(t.Context(), lwsService, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	saved := map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": lwsService}, "spec": service.Object["spec"],
	}
	o.service = filepath.Join(t.TempDir(), "apiservice.json")
	if err := os.WriteFile(o.service, encode(t, saved), 0o600); err != nil {
		t.Fatal(err)
	}
}

// versions returns the UID, the version and the generation of all children by kind and name.
func (o *takeover) versions(ctx context.Context) (map[string]string, error) {
	found := map[string]string{}
	for kind, resource := range map[string]schema.GroupVersionResource{
		"StatefulSet":        {Group: "apps", Version: "v1", Resource: "statefulsets"},
		"ControllerRevision": {Group: "apps", Version: "v1", Resource: "controllerrevisions"},
		"Pod":                {Version: "v1", Resource: "pods"},
		"Service":            {Version: "v1", Resource: "services"},
	} {
		list, err := o.dynamic.Resource(resource).Namespace(o.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			item := &list.Items[i]
			found[kind+" "+item.GetName()] = fmt.Sprintf("UID %s, version %s, generation %d", item.GetUID(), item.GetResourceVersion(), item.GetGeneration())
		}
	}
	return found, nil
}

// unchanged fails the test if a child has changed. Before it looks, it waits until the garbage collector has asked for
// an owner: it deletes an object of one that does not exist.
func (o *takeover) unchanged(t *testing.T, when string) {
	t.Helper()
	decoy := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "decoy-", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: leaderworkersetv1.SchemeGroupVersion.String(), Kind: "LeaderWorkerSet", Name: takenName(0), UID: uuid.NewUUID()},
	}}}
	created, err := o.Kube.CoreV1().ConfigMaps(o.namespace).Create(t.Context(), decoy, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the garbage collector deletes the decoy "+when, func(ctx context.Context) error {
		_, err := o.Kube.CoreV1().ConfigMaps(o.namespace).Get(ctx, created.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it exists"))
	})
	now, err := o.versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(o.was, now); diff != "" {
		t.Fatalf("%s (-before +now):\n%s", when, diff)
	}
}

// end deletes what is left, so that the other steps find the cluster as it was.
func (o *takeover) end(t *testing.T) {
	t.Helper()
	// kube-apiserver may not reach the group of a server that has just started yet.
	framework.Eventually(t, "the sets are deleted", func(ctx context.Context) error {
		return o.sets().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	})
	o.deleteNamespace(t, o.namespace)
	o.namespaceEnds(t, o.namespace)
}
