// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// TestThroughKubeAPIServer covers what users see through the aggregation layer.
func TestThroughKubeAPIServer(t *testing.T) {
	server := plane.StartServer(t, framework.Embedded(framework.ShortDir(t))...)
	plane.Aggregate(t, server)
	cases := map[string]func(*testing.T, *env){
		"create drops the status and starts at generation 1":         testCreate,
		"update counts changes of the spec and nothing else":         testGeneration,
		"update needs the current resourceVersion":                   testConflict,
		"status takes the status and nothing else":                   testStatus,
		"updates of the status keep what upstream lacks":             testKeptStatus,
		"replicas 0 survives and a missing name is refused":          testValues,
		"every patch type works on both resources":                   testPatchTypes,
		"strategic merge patch merges replicatedJobs by name":        testStrategicMerge,
		"applying the same manifest twice changes nothing":           testApplyTwice,
		"typed apply configurations work":                            testTypedApply,
		"owners of spec and status are kept apart":                   testOwnership,
		"two appliers conflict until one forces":                     testApplyConflict,
		"dry run changes nothing":                                    testDryRun,
		"delete honors propagation and preconditions":                testDelete,
		"deletecollection works with protobuf options":               testDeleteCollection,
		"a deleted namespace is emptied the way its controller does": testNamespaceContent,
		"watch delivers events and bookmarks":                        testWatch,
		"watch streams the initial list":                             testStreamingList,
		"lists select by fields and labels and in pages":             testList,
		"watch selects by fields":                                    testWatchSelectors,
		"tables have upstream's columns":                             testTable,
		"discovery has verbs, names and storage version":             testDiscovery,
		"aggregated discovery includes the group":                    testAggregatedDiscovery,
		"OpenAPI v3 carries what clients need":                       testOpenAPIV3,
		"OpenAPI v2 carries what clients need":                       testOpenAPIV2,
		"generated informers follow":                                 testInformer,
		"unknown fields are refused, warned of or ignored":           testFieldValidation,
		"warnings reach the client":                                  testWarnings,
		"every user may read the feature gates":                      testServedFeatureGates,
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { test(t, newEnv(t, server, plane.Config)) })
	}
}

func testCreate(t *testing.T, e *env) {
	js := jobSet("a", func(js *jobsetv1alpha2.JobSet) {
		js.Generation = 7
		js.Status = jobsetv1alpha2.JobSetStatus{Restarts: 3, TerminalState: "Completed"}
	})
	created := e.create(t, js)
	if diff := cmp.Diff(jobsetv1alpha2.JobSetStatus{}, created.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if created.Generation != 1 || created.UID == "" || created.CreationTimestamp.IsZero() {
		t.Errorf("metadata is %+v", created.ObjectMeta)
	}
	want := jobsetv1alpha2.SuccessPolicy{Operator: jobsetv1alpha2.OperatorAll}
	if diff := cmp.Diff(&want, created.Spec.SuccessPolicy); diff != "" {
		t.Errorf("success policy (-want +got):\n%s", diff)
	}
	raw, err := e.dynamic.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := raw.Object["status"]; ok {
		t.Errorf("a new JobSet has a status on the wire: %v", raw.Object["status"])
	}
	if _, err := e.typed.Create(t.Context(), jobSet("a"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("creating it again: %v", err)
	}
	generated := e.create(t, jobSet("", func(js *jobsetv1alpha2.JobSet) { js.GenerateName = "gen-" }))
	if len(generated.Name) != len("gen-")+5 {
		t.Errorf("generated name is %q", generated.Name)
	}
}

func testGeneration(t *testing.T, e *env) {
	js := e.create(t, jobSet("a"))
	update := func(change func(*jobsetv1alpha2.JobSet)) *jobsetv1alpha2.JobSet {
		t.Helper()
		next := js.DeepCopy()
		change(next)
		got, err := e.typed.Update(t.Context(), next, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	same := update(func(*jobsetv1alpha2.JobSet) {})
	if same.ResourceVersion != js.ResourceVersion || same.Generation != 1 {
		t.Errorf("writing the same object moved it to resourceVersion %s, generation %d", same.ResourceVersion, same.Generation)
	}
	js = update(func(js *jobsetv1alpha2.JobSet) { js.Labels = map[string]string{"a": "b"} })
	if js.Generation != 1 {
		t.Errorf("a new label moved generation to %d", js.Generation)
	}
	js = update(func(js *jobsetv1alpha2.JobSet) { js.Status.Restarts = 5 })
	if js.Generation != 1 || js.Status.Restarts != 0 {
		t.Errorf("a status in an update of the main resource had an effect: generation %d, status %+v", js.Generation, js.Status)
	}
	js = update(func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) })
	if js.Generation != 2 {
		t.Errorf("a new spec moved generation to %d, not 2", js.Generation)
	}
}

func testConflict(t *testing.T, e *env) {
	js := e.create(t, jobSet("a"))
	next := js.DeepCopy()
	next.Spec.Suspend = ptr.To(true)
	if _, err := e.typed.Update(t.Context(), next, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.typed.Update(t.Context(), next, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("updating an old version: %v", err)
	}
	next.ResourceVersion = ""
	if _, err := e.typed.Update(t.Context(), next, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("updating without a version: %v", err)
	}
	missing := jobSet("b", func(b *jobsetv1alpha2.JobSet) { b.ResourceVersion = js.ResourceVersion })
	if _, err := e.typed.Update(t.Context(), missing, metav1.UpdateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("updating what does not exist: %v", err)
	}
}

func testStatus(t *testing.T, e *env) {
	js := e.create(t, jobSet("a"))
	next := js.DeepCopy()
	next.Labels = map[string]string{"a": "b"}
	next.Spec.Suspend = ptr.To(true)
	next.Status = jobsetv1alpha2.JobSetStatus{
		Restarts: 1,
		Conditions: []metav1.Condition{{
			Type: "Suspended", Status: metav1.ConditionTrue, Reason: "SuspendedJobs", Message: "jobset is suspended",
			LastTransitionTime: metav1.NewTime(time.Unix(1e9, 0)),
		}},
		ReplicatedJobsStatus: []jobsetv1alpha2.ReplicatedJobStatus{{Name: "workers", Ready: 1}},
	}
	got, err := e.typed.UpdateStatus(t.Context(), next, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(next.Status, got.Status) {
		t.Errorf("status (-want +got):\n%s", cmp.Diff(next.Status, got.Status))
	}
	if diff := cmp.Diff(js.Spec, got.Spec); diff != "" {
		t.Errorf("spec changed (-want +got):\n%s", diff)
	}
	if got.Labels != nil || got.Generation != 1 || got.ResourceVersion == js.ResourceVersion {
		t.Errorf("metadata is %+v", got.ObjectMeta)
	}
	bad := got.DeepCopy()
	bad.Status.Conditions[0].Status = "Perhaps"
	if _, err := e.typed.UpdateStatus(t.Context(), bad, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a condition that is neither true nor false: %v", err)
	}
}

func testValues(t *testing.T, e *env) {
	e.create(t, jobSet("a", func(js *jobsetv1alpha2.JobSet) { js.Spec.ReplicatedJobs[0].Replicas = ptr.To[int32](0) }))
	if got := e.get(t, "a").Spec.ReplicatedJobs[0].Replicas; got == nil || *got != 0 {
		t.Errorf("replicas is %v, not 0", got)
	}
	e.create(t, jobSet("b", func(js *jobsetv1alpha2.JobSet) { js.Spec.ReplicatedJobs[0].Replicas = nil }))
	if got := e.get(t, "b").Spec.ReplicatedJobs[0].Replicas; got == nil || *got != 1 {
		t.Errorf("replicas is %v, not 1", got)
	}
	_, err := e.typed.Create(t.Context(), jobSet("c", func(js *jobsetv1alpha2.JobSet) { js.Spec.ReplicatedJobs[0].Name = "" }), metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("a replicatedJob without a name: %v", err)
	}
}
