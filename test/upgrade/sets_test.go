// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

const (
	namespace = "default"
	jobs      = 3
	outcome   = "jobset-apiserver.io/kwok-outcome"
)

// kind is a kind that we serve, with an object of it whose pods run until they are released.
type kind struct {
	schema.GroupVersionResource
	// share is how many of a hundred objects are of this kind.
	share    int
	manifest string
	// running reports whether the status of an object says that all of its pods are ready.
	running func(status map[string]any) bool
	// pods is how many pods run for an object.
	pods int
}

var (
	jobSets = kind{
		schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}, 60, `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
spec:
  replicatedJobs:
  - name: workers
    replicas: 3
    template: {spec: {template: {metadata: {annotations: {jobset-apiserver.io/kwok-outcome: running}}, spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}}}
`, func(status map[string]any) bool {
			jobs, _, _ := unstructured.NestedSlice(status, "replicatedJobsStatus")
			if len(jobs) != 1 {
				return false
			}
			ready, _, _ := unstructured.NestedInt64(jobs[0].(map[string]any), "ready")
			return ready == 3
		}, jobs,
	}
	sequences = kind{
		schema.GroupVersionResource{Group: "batch.jobset-apiserver.io", Version: "v1alpha1", Resource: "sequentialjobs"}, 20, `
apiVersion: batch.jobset-apiserver.io/v1alpha1
kind: SequentialJob
spec:
  containers: [{name: first, image: busybox}, {name: second, image: busybox}]
  template: {metadata: {annotations: {jobset-apiserver.io/kwok-outcome: running}}}
`, func(status map[string]any) bool {
			phase, _, _ := unstructured.NestedString(status, "phase")
			return phase == "Running"
		}, 1,
	}
	leaderWorkerSets = kind{
		schema.GroupVersionResource{Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"}, 15, `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 2
    workerTemplate: {metadata: {annotations: {jobset-apiserver.io/kwok-outcome: running}}, spec: {containers: [{name: main, image: nginx}]}}
`, func(status map[string]any) bool {
			ready, _, _ := unstructured.NestedInt64(status, "readyReplicas")
			return ready == 1
		}, 2,
	}
	disaggregatedSets = kind{
		schema.GroupVersionResource{Group: "disaggregatedset.x-k8s.io", Version: "v1", Resource: "disaggregatedsets"}, 5, `
apiVersion: disaggregatedset.x-k8s.io/v1
kind: DisaggregatedSet
spec:
  roles:
  - &role
    name: prefill
    spec: {replicas: 1, leaderWorkerTemplate: {size: 1, workerTemplate: {metadata: {annotations: {jobset-apiserver.io/kwok-outcome: running}}, spec: {containers: [{name: main, image: nginx}]}}}}
  - {<<: *role, name: decode}
`, func(map[string]any) bool { return true }, 2,
	}
	kinds = []kind{jobSets, sequences, leaderWorkerSets, disaggregatedSets}

	pods         = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	children     = []schema.GroupVersionResource{{Group: "batch", Version: "v1", Resource: "jobs"}, pods, statefulSets, {Version: "v1", Resource: "services"}}
)

// object returns the object of the kind with a number.
func (k *kind) object(t *testing.T, i int) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(k.manifest), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetName(fmt.Sprintf("%s-%d", strings.ToLower(object.GetKind()), i))
	return object
}

// begin creates that many objects and waits until all of their pods run and the status says so.
func (u *upgraded) begin(t *testing.T, sets int) {
	t.Helper()
	u.registerRoles(t)
	want := 0
	for _, k := range kinds {
		framework.Eventually(t, k.Resource+" are served", func(ctx context.Context) error {
			_, err := u.dynamic.Resource(k.GroupVersionResource).Namespace(namespace).List(ctx, metav1.ListOptions{})
			return err
		})
		n := max(1, sets*k.share/100)
		want += n * k.pods
		for i := range n {
			if _, err := u.dynamic.Resource(k.GroupVersionResource).Namespace(namespace).Create(t.Context(), k.object(t, i), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	framework.Eventually(t, "all pods run, and the status says so", func(ctx context.Context) error {
		list, err := u.dynamic.Resource(pods).Namespace(namespace).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
		if err != nil {
			return err
		}
		if len(list.Items) != want {
			return fmt.Errorf("%d pods run, want %d", len(list.Items), want)
		}
		for _, k := range kinds {
			list, err := u.dynamic.Resource(k.GroupVersionResource).Namespace(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for i := range list.Items {
				if status, _, _ := unstructured.NestedMap(list.Items[i].Object, "status"); !k.running(status) {
					return fmt.Errorf("%s has status %+v", list.Items[i].GetName(), status)
				}
			}
		}
		return nil
	})
}

// state is what an upgrade must not change: of children each version, of what we serve the identity and the generation.
func (u *upgraded) state(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, r := range children {
		list, err := u.dynamic.Resource(r).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			version := list.Items[i].GetResourceVersion()
			if r == statefulSets { // those of a LeaderWorkerSet have its annotations, one of which the test changes
				version = fmt.Sprint("generation ", list.Items[i].GetGeneration())
			}
			state[r.Resource+"/"+list.Items[i].GetName()] = string(list.Items[i].GetUID()) + "@" + version
		}
	}
	for _, k := range kinds {
		list, err := u.dynamic.Resource(k.GroupVersionResource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			restarts, _, _ := unstructured.NestedInt64(object.Object, "status", "restarts")
			state[k.Resource+"/"+object.GetName()] = fmt.Sprintf("%s generation %d restarts %d", object.GetUID(), object.GetGeneration(), restarts)
		}
	}
	return state
}

// unchanged looks for a while.
func (u *upgraded) unchanged(t *testing.T, what string, want map[string]string) {
	t.Helper()
	for end := time.Now().Add(watched()); time.Now().Before(end); time.Sleep(time.Second) {
		if diff := cmp.Diff(want, u.state(t)); diff != "" {
			t.Fatalf("%s (-before +after):\n%s", what, diff)
		}
	}
	t.Logf("%s: %d objects unchanged", what, len(want))
}

// complete lets all pods of Jobs succeed and scales the LeaderWorkerSets, and waits until that has its effect: the programs still do
// their work.
func (u *upgraded) complete(t *testing.T) {
	t.Helper()
	list, err := u.dynamic.Resource(pods).Namespace(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name"})
	if err != nil {
		t.Fatal(err)
	}
	u.patchAll(t, pods, list.Items, `{"metadata":{"annotations":{"`+outcome+`":"succeeded"}}}`)
	groups := slices.DeleteFunc(u.listed(t, leaderWorkerSets), func(set unstructured.Unstructured) bool { return metav1.GetControllerOf(&set) != nil })
	u.patchAll(t, leaderWorkerSets.GroupVersionResource, groups, `{"spec":{"replicas":2}}`)
	u.eventually(t, "the JobSets are completed", jobSets, func(object map[string]any) bool {
		state, _, _ := unstructured.NestedString(object, "status", "terminalState")
		return state == "Completed"
	})
	u.eventually(t, "the sequences are at their second step", sequences, func(object map[string]any) bool {
		index, _, _ := unstructured.NestedInt64(object, "status", "progress", "currentIndex")
		return index == 1
	})
	u.eventually(t, "the LeaderWorkerSets have all of their groups", leaderWorkerSets, func(object map[string]any) bool {
		replicas, _, _ := unstructured.NestedInt64(object, "spec", "replicas")
		ready, _, _ := unstructured.NestedInt64(object, "status", "readyReplicas")
		return ready == replicas
	})
}

func (u *upgraded) listed(t *testing.T, k kind) []unstructured.Unstructured {
	t.Helper()
	list, err := u.dynamic.Resource(k.GroupVersionResource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func (u *upgraded) patchAll(t *testing.T, r schema.GroupVersionResource, objects []unstructured.Unstructured, patch string) {
	t.Helper()
	for i := range objects {
		if _, err := u.dynamic.Resource(r).Namespace(namespace).Patch(t.Context(), objects[i].GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// eventually waits until all objects of a kind are as wanted.
func (u *upgraded) eventually(t *testing.T, what string, k kind, wanted func(object map[string]any) bool) {
	t.Helper()
	framework.Eventually(t, what, func(ctx context.Context) error {
		list, err := u.dynamic.Resource(k.GroupVersionResource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if !wanted(list.Items[i].Object) {
				return fmt.Errorf("%s: %+v", list.Items[i].GetName(), list.Items[i].Object["status"])
			}
		}
		return nil
	})
}
