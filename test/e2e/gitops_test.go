// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// recordedStates is the directory of the objects on which the tests of hack/gitops run the health checks of Argo CD and Flux.
const recordedStates = "hack/gitops/testdata/states"

// TestStatesForGitOps brings objects of all kinds into the states of recordedStates, and checks that they look as recorded there. With
// UPDATE_GOLDEN=1 it records them.
func TestStatesForGitOps(t *testing.T) {
	tier.OnRequest(t, "makes 37 states and waits for each")
	t.Parallel()
	c := gated.use(t)
	k := newKubectlFor(t, c)
	k.admitsPods()
	config, err := c.Config()
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(t, client, k.namespace) })
	files := map[string]bool{}
	for _, s := range gitopsStates() {
		for name := range s.until {
			files[s.file(name)] = true
		}
		t.Run(s.file(s.name), func(t *testing.T) {
			t.Parallel()
			r := &recorder{kubectl: newKubectlIn(t, k), client: client, state: s}
			r.run()
		})
	}
	found, err := filepath.Glob(filepath.Join(c.Root, recordedStates, "*", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		if name := filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path)); !files[name] {
			t.Errorf("%s: no test makes this state", path)
		}
	}
}

// newKubectlIn returns kubectl for a subtest, in the namespace of the test.
func newKubectlIn(t *testing.T, k *kubectl) *kubectl {
	copied := *k
	copied.T = t
	return &copied
}

// recorder brings one object into its states.
type recorder struct {
	*kubectl
	client dynamic.Interface
	state  gitopsState
	object *unstructured.Unstructured
}

func (r *recorder) run() {
	r.Helper()
	r.object = &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(r.state.manifest), &r.object.Object); err != nil {
		r.Fatal(err)
	}
	created, err := r.resource().Create(r.Context(), r.object, metav1.CreateOptions{FieldManager: "test"})
	if err != nil {
		r.Fatal(err)
	}
	if r.state.until["created"] != nil {
		r.compare("created", created)
	}
	for _, name := range r.state.order() {
		if change := r.state.change[name]; change != nil {
			change(r)
		}
		r.compare(name, r.await(r.state.until[name]))
	}
}

func (r *recorder) resource() dynamic.ResourceInterface {
	gvk := r.object.GroupVersionKind()
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	return r.client.Resource(resource).Namespace(r.namespace)
}

// await waits until the object has all of the facts, of which each may be the beginning of one.
func (r *recorder) await(want []string) (object *unstructured.Unstructured) {
	r.Helper()
	r.eventually(func() string {
		var err error
		if object, err = r.resource().Get(r.Context(), r.object.GetName(), metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		got := factsOf(object)
		if missing := lacks(got, want); missing != "" {
			return fmt.Sprintf("%s lacks %q: %q", r.object.GetName(), missing, got)
		}
		return ""
	})
	return object
}

// compare checks that the recorded object is in the state, and that the one of the cluster has the same lasting facts.
func (r *recorder) compare(state string, object *unstructured.Unstructured) {
	r.Helper()
	path := filepath.Join(r.cluster.Root, recordedStates, r.state.file(state))
	if os.Getenv("UPDATE_GOLDEN") != "" {
		record(r.T, path, object)
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		r.Errorf("%v: record it with UPDATE_GOLDEN=1", err)
		return
	}
	recorded := &unstructured.Unstructured{}
	if content, err = yaml.YAMLToJSON(content); err == nil {
		err = recorded.UnmarshalJSON(content)
	}
	if err != nil {
		r.Fatal(err)
	}
	if missing := lacks(factsOf(recorded), r.state.until[state]); missing != "" {
		r.Errorf("%s lacks %q: record it with UPDATE_GOLDEN=1", path, missing)
	}
	if diff := cmp.Diff(lasting(recorded), lasting(object)); diff != "" {
		r.Errorf("%s differs from what a cluster has: record it with UPDATE_GOLDEN=1 (-recorded +cluster):\n%s", path, diff)
	}
}

// record writes an object without what every run has in its own way.
func record(t *testing.T, path string, object *unstructured.Unstructured) {
	t.Helper()
	object = object.DeepCopy()
	for _, field := range []string{"managedFields", "uid", "resourceVersion", "annotations"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	object.SetNamespace("default")
	content, err := yaml.Marshal(object.Object)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// lacks returns a fact that is missing, or an empty string.
func lacks(got, want []string) string {
	for _, fact := range want {
		if !slices.ContainsFunc(got, func(f string) bool { return strings.HasPrefix(f, fact) }) {
			return fact
		}
	}
	return ""
}

// lasting returns the facts that do not depend on how far pods and controller have come meanwhile.
func lasting(object *unstructured.Unstructured) []string {
	deleted := object.GetDeletionTimestamp() != nil
	return slices.DeleteFunc(factsOf(object), func(fact string) bool {
		return deleted && strings.HasPrefix(fact, "observed=") || strings.HasPrefix(fact, "Progressing=") || strings.Contains(fact, "=False ") || strings.Contains(fact, "ready=") ||
			strings.HasPrefix(fact, "status.readyReplicas=") || strings.HasPrefix(fact, "status.running=")
	})
}

// factsOf returns what health checks can see of an object, without times and messages.
func factsOf(object *unstructured.Unstructured) (facts []string) {
	if object.GetDeletionTimestamp() != nil {
		facts = append(facts, "deleted")
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range conditions {
		if c, ok := item.(map[string]any); ok {
			facts = append(facts, fmt.Sprintf("%v=%v %v", c["type"], c["status"], c["reason"]))
		}
	}
	if observed, found, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration"); found {
		facts = append(facts, fmt.Sprintf("observed=%t", observed == object.GetGeneration()))
	}
	for _, path := range [][]string{{"spec", "suspend"}, {"spec", "paused"}, {"status", "phase"}, {"status", "terminalState"}, {"status", "readyReplicas"}, {"status", "running"}} {
		if value, found, _ := unstructured.NestedFieldNoCopy(object.Object, path...); found {
			facts = append(facts, fmt.Sprintf("%s=%v", strings.Join(path, "."), value))
		}
	}
	for _, list := range []string{"replicatedJobsStatus", "roleStatuses"} {
		items, _, _ := unstructured.NestedSlice(object.Object, "status", list)
		for _, item := range items {
			if counts, ok := item.(map[string]any); ok {
				facts = append(facts, fmt.Sprintf("%v ready=%v%v", counts["name"], counts["ready"], counts["readyReplicas"]))
			}
		}
	}
	slices.Sort(facts)
	return facts
}

// release removes the finalizers of the test, which would keep the namespace.
func release(t *testing.T, client dynamic.Interface, namespace string) {
	ctx := context.WithoutCancel(t.Context())
	for _, resource := range []apischema.GroupVersionResource{
		{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"},
		{Group: "batch.jobset-apiserver.io", Version: "v1alpha1", Resource: "sequentialjobs"},
		{Group: "batch.jobset-apiserver.io", Version: "v1alpha1", Resource: "podreadinessgroups"},
		{Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"},
		{Group: "disaggregatedset.x-k8s.io", Version: "v1", Resource: "disaggregatedsets"},
	} {
		objects := client.Resource(resource).Namespace(namespace)
		list, err := objects.List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Error(err)
			continue
		}
		for i := range list.Items {
			if slices.Contains(list.Items[i].GetFinalizers(), keepFinalizer) {
				_, err = objects.Patch(ctx, list.Items[i].GetName(), "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
}
