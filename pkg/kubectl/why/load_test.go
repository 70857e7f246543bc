// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	jobsetfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/outage"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// env has fake clients of one cluster.
type env struct {
	*cli.Clients
	kube    *kubefake.Clientset
	jobSets *jobsetfake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
}

// newEnv returns clients of a cluster that has the objects of the evidence.
func newEnv(t *testing.T, e *Evidence, others ...runtime.Object) *env {
	t.Helper()
	var objects []runtime.Object
	for _, job := range e.Jobs {
		objects = append(objects, job)
	}
	for _, pod := range e.Pods {
		objects = append(objects, pod)
	}
	for i := range e.Leases {
		objects = append(objects, &e.Leases[i])
	}
	for i := range e.Events {
		e.Events[i].Namespace, e.Events[i].Name = "team", string(e.Events[i].InvolvedObject.UID)+e.Events[i].Reason
		objects = append(objects, &e.Events[i])
	}
	w := &env{kube: kubefake.NewClientset(objects...), jobSets: jobsetfake.NewClientset()}
	if e.JobSet != nil {
		if err := w.jobSets.Tracker().Add(e.JobSet); err != nil {
			t.Fatal(err)
		}
	}
	w.dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		apiServices: "APIServiceList", kueue("v1beta1", "workloads"): "WorkloadList", kueue("v1beta1", "localqueues"): "LocalQueueList",
		kueue("v1beta2", "workloads"): "WorkloadList", kueue("v1beta1", "clusterqueues"): "ClusterQueueList",
	}, others...)
	w.Clients = &cli.Clients{Namespace: "team", Kube: w.kube, JobSets: w.jobSets, Dynamic: w.dynamic}
	return w
}

// refuses makes the cluster refuse to show a resource.
func (w *env) refuses(fake *clienttesting.Fake, resource string, err error) {
	fake.PrependReactor("*", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

func (w *env) load(t *testing.T) *Evidence {
	t.Helper()
	e, err := Load(context.Background(), w.Clients, "train")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func forbidden(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
}

func TestLoadOfARunningSetMakesFewCalls(t *testing.T) {
	w := newEnv(t, healthy())
	if report := Diagnose(w.load(t)); report.Findings[0].Cause == NotFound {
		t.Errorf("the set was not read: %+v", report)
	}
	lists := 0
	for _, action := range append(w.kube.Actions(), w.jobSets.Actions()...) {
		if action.GetVerb() == "list" {
			lists++
		}
	}
	if lists != 5 { // Jobs, pods, budgets, and twice events
		t.Errorf("%d lists, want 5: %v", lists, w.kube.Actions())
	}
}

func TestLoadListsForbiddenSources(t *testing.T) {
	w := newEnv(t, healthy(pods(crashing("ImagePullBackOff", 0))))
	for _, resource := range []string{"events", "nodes", "leases", "services", "poddisruptionbudgets"} {
		w.refuses(&w.kube.Fake, resource, forbidden(resource))
	}
	w.refuses(&w.dynamic.Fake, "apiservices", forbidden("apiservices"))
	e := w.load(t)
	var sources []string
	for _, gap := range e.NotLookedAt {
		sources = append(sources, gap.Source+" "+gap.Reason)
	}
	want := []string{"apiservices forbidden", "events forbidden", "leases forbidden", "nodes forbidden", "poddisruptionbudgets forbidden", "services forbidden"}
	if diff := cmp.Diff(want, sources); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
	if got := Diagnose(e).Findings[0].Cause; got != ImagePull {
		t.Errorf("the cause that could be seen is %s", got)
	}
}

func TestLoadReadsWhyTheServerRefuses(t *testing.T) {
	away := apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "get", schema.GroupResource{Group: jobsetv1alpha2.GroupName, Resource: "jobsets"}, "train", "", 0, true)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: witness.Namespace, Name: witness.Name}}
	if err := (&witness.Record{UUID: "uuid", Refusal: &witness.Refusal{Reason: witness.ReasonRolledBack, Message: "The store is old."}}).Write(cm); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(*env)
		cause  Cause
		says   string
		gap    Gap
	}{
		"a refusal is recorded": {func(*env) {}, StoreRefused, "says: The store is old.", Gap{}},
		"the record is forbidden": {
			func(w *env) { w.refuses(&w.kube.Fake, "configmaps", forbidden("configmaps")) }, APIServiceUnavailable,
			"ask an administrator of the cluster to run `kubectl jobset doctor`", Gap{outage.Location, "forbidden"},
		},
	} {
		service := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1alpha2.jobset.x-k8s.io"},
		}}
		w := newEnv(t, healthy(), service)
		if err := w.kube.Tracker().Add(cm); err != nil {
			t.Fatal(err)
		}
		w.refuses(&w.jobSets.Fake, "jobsets", away)
		tc.change(w)
		e := w.load(t)
		finding := Diagnose(e).Findings[0]
		if says := func(f Fact) bool { return strings.Contains(f.Text, tc.says) }; finding.Cause != tc.cause || !slices.ContainsFunc(finding.Evidence, says) {
			t.Errorf("%s: the finding is %+v", name, finding)
		}
		if found := slices.Contains(e.NotLookedAt, tc.gap); found != (tc.gap != Gap{}) {
			t.Errorf("%s: not looked at: %v", name, e.NotLookedAt)
		}
	}
}

func TestLoadReadsReferencedObjects(t *testing.T) {
	claim := func(pod *corev1.Pod) {
		noNode("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.")(pod)
		selects(pod)
		pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	}
	w := newEnv(t, healthy(pods(claim), warns("Job", "uid-train-workers-0", "FailedCreate", "exceeded quota: tight, requested: pods=1")))
	for _, object := range []runtime.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", Labels: map[string]string{"pool": "gpu"}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cpu-1"}},
		&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "tight"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train"}},
	} {
		if err := w.kube.Tracker().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	e := w.load(t)
	if len(e.Candidates) != 1 || e.Candidates[0].Name != "gpu-1" || !e.CandidatesRead {
		t.Errorf("nodes that fit: %v", e.Candidates)
	}
	if claim, read := e.Claims["data"]; !read || claim != nil {
		t.Errorf("the claim does not exist, and was looked for: %v %v", claim, read)
	}
	if len(e.Quotas) != 1 || e.Services["train"] == nil {
		t.Errorf("quotas %v, services %v", e.Quotas, e.Services)
	}
}

func TestLoadLooksForALeaseEverywhere(t *testing.T) {
	w := newEnv(t, healthy(func(e *Evidence) { e.Leases[0].Namespace = "elsewhere" }))
	if err := w.kube.Tracker().Add(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "other"}}); err != nil {
		t.Fatal(err)
	}
	if e := w.load(t); len(e.Leases) != 1 || e.Leases[0].Namespace != "elsewhere" {
		t.Errorf("leases: %v", e.Leases)
	}
}

func TestLoadSuggestsSimilarNames(t *testing.T) {
	w := newEnv(t, &Evidence{})
	for _, at := range []struct{ namespace, name string }{{"team", "trains"}, {"team", "unlike"}, {"other", "train"}} {
		if err := w.jobSets.Tracker().Add(&jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: at.namespace, Name: at.name}}); err != nil {
			t.Fatal(err)
		}
	}
	e := w.load(t)
	if diff := cmp.Diff([]string{"js/trains"}, e.Near); diff != "" {
		t.Errorf("similar names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"other"}, e.Elsewhere); diff != "" {
		t.Errorf("other namespaces (-want +got):\n%s", diff)
	}
}

func TestLoadFallsBackToAnOlderKueue(t *testing.T) {
	object := func(kind, namespace, name string, labels map[string]any, fields map[string]any) *unstructured.Unstructured {
		fields["apiVersion"], fields["kind"] = "kueue.x-k8s.io/v1beta1", kind
		meta := map[string]any{"namespace": namespace, "name": name, "labels": labels}
		if kind == "Workload" {
			meta["ownerReferences"] = []any{map[string]any{"uid": "uid-train"}}
		}
		fields["metadata"] = meta
		return &unstructured.Unstructured{Object: fields}
	}
	w := newEnv(t, inQueue(),
		object("Workload", "team", "w", map[string]any{jobUIDLabel: "uid-train"}, map[string]any{}),
		object("Workload", "team", "other", map[string]any{jobUIDLabel: "uid-other"}, map[string]any{}),
		object("LocalQueue", "team", "research", nil, map[string]any{"spec": map[string]any{"clusterQueue": "shared"}}),
		object("ClusterQueue", "", "shared", nil, map[string]any{}))
	w.dynamic.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.GetResource().Version == "v1beta2", nil, apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{}, "", "", 0, true)
	})
	k := w.load(t).Kueue
	if !k.Served || k.Workload == nil || k.Workload.GetName() != "w" || k.LocalQueue == nil || k.ClusterQueue == nil {
		t.Errorf("what Kueue says: %+v", k)
	}
}

func TestLoadFailsWhenTheSetMayNotBeRead(t *testing.T) {
	w := newEnv(t, healthy())
	w.refuses(&w.jobSets.Fake, "jobsets", forbidden("jobsets"))
	if _, err := Load(context.Background(), w.Clients, "train"); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want the refusal", err)
	}
}
