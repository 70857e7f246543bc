// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	typedbatch "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// sequences is what a case about SequentialJobs works with.
type sequences struct {
	*env
	// typed speaks protobuf, dynamic speaks JSON.
	typed   typedbatch.SequentialJobInterface
	groups  typedbatch.PodReadinessGroupInterface
	dynamic dynamic.ResourceInterface
}

func newSequences(t testing.TB, e *env) *sequences {
	t.Helper()
	untyped, err := dynamic.NewForConfig(e.config)
	if err != nil {
		t.Fatal(err)
	}
	batch := batchClients(t, e.config)
	return &sequences{
		env: e, typed: batch.SequentialJobs(e.namespace), groups: batch.PodReadinessGroups(e.namespace),
		dynamic: untyped.Resource(batchv1alpha1.SchemeGroupVersion.WithResource("sequentialjobs")).Namespace(e.namespace),
	}
}

// batchClients speak protobuf.
func batchClients(t testing.TB, config *rest.Config) typedbatch.BatchV1alpha1Interface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients.BatchV1alpha1()
}

// sequence returns three containers that run one after another.
func sequence(name string, change ...func(*batchv1alpha1.SequentialJob)) *batchv1alpha1.SequentialJob {
	sj := &batchv1alpha1.SequentialJob{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, image := range []string{"extract", "transform", "load"} {
		sj.Spec.Containers = append(sj.Spec.Containers, corev1.Container{Name: image, Image: image})
	}
	for _, f := range change {
		f(sj)
	}
	return sj
}

func (s *sequences) create(t testing.TB, sj *batchv1alpha1.SequentialJob) *batchv1alpha1.SequentialJob {
	t.Helper()
	created, err := s.typed.Create(t.Context(), sj, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// TestSequentialJobs covers what users see of SequentialJobs and PodReadinessGroups through the aggregation layer.
func TestSequentialJobs(t *testing.T) {
	log, flags := auditFlags(t)
	server := plane.StartServer(t, append(framework.Embedded(framework.ShortDir(t)), flags...)...)
	plane.Aggregate(t, server)
	cases := map[string]func(*testing.T, *sequences){
		"create drops the status":                    testSequenceCreate,
		"the status takes the status alone":          testSequenceStatus,
		"lists and watches select by fields":         testSequenceSelectors,
		"kubectl prints the columns":                 testSequenceColumns,
		"PodReadinessGroups are served":              testPodReadinessGroups,
		"appliers own steps by their names":          testSequenceApply,
		"containers are applied as a whole":          testSequenceApplyContainers,
		"typed apply configurations work":            testSequenceTypedApply,
		"every type of patch works":                  testSequencePatches,
		"strategic merge patch merges steps by name": testSequenceStrategicMerge,
		"what has run cannot be changed":             testSequenceChanges,
		"discovery has names and categories":         testSequenceDiscovery,
		"kubectl explains every field":               testSequenceExplain,
		"collections and namespaces are emptied":     testSequenceDelete,
		"quota counts sequences":                     testSequenceQuota,
		"a creation is on record":                    func(t *testing.T, s *sequences) { testSequenceAudit(t, s, log) },
		"roles allow what they should":               testSequenceRoles,
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { test(t, newSequences(t, newEnv(t, server, plane.Config))) })
	}
}

func testSequenceCreate(t *testing.T, s *sequences) {
	created := s.create(t, sequence("a", func(sj *batchv1alpha1.SequentialJob) {
		sj.Generation = 7
		sj.Status.State.Succeeded = 3
		sj.Spec.Containers[1].Name = ""
	}))
	want := batchv1alpha1.SequentialJobStatus{
		Phase: batchv1alpha1.PhasePending, StepsGeneration: 1,
	}
	if diff := cmp.Diff(want, created.Status); diff != "" || created.Generation != 1 {
		t.Errorf("generation %d, status (-want +got):\n%s", created.Generation, diff)
	}
	if name := created.Spec.Containers[1].Name; name != "step-1" {
		t.Errorf("a container without a name is called %q, want step-1", name)
	}
	raw, err := s.dynamic.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	status := map[string]any{
		"phase": "Pending", "stepsGeneration": int64(1), "progress": map[string]any{"completedIndices": []any{}},
		"state": map[string]any{"active": int64(0), "succeeded": int64(0), "failed": int64(0)},
	}
	if diff := cmp.Diff(status, raw.Object["status"]); diff != "" {
		t.Errorf("status on the wire (-want +got):\n%s", diff)
	}
	_, err = s.typed.Create(t.Context(), sequence("b", func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Containers = nil }), metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.containers: Required value: at least one container must be specified") {
		t.Errorf("without containers: %v", err)
	}
}

func testSequenceStatus(t *testing.T, s *sequences) {
	sj := s.create(t, sequence("a"))
	next := sj.DeepCopy()
	next.Labels = map[string]string{"a": "b"}
	next.Spec.Suspend = ptr.To(true)
	next.Status.Phase = batchv1alpha1.PhaseCompleted
	next.Status.StepsGeneration = 9
	next.Status.Progress.CurrentIndex = ptr.To[int32](0)
	next.Status.State.Active = 1
	next.Status.Steps = []batchv1alpha1.SequentialJobStepStatus{{
		Name: "extract", Kind: batchv1alpha1.StepKindJob, ChildName: "a-0", State: batchv1alpha1.StepRunning, Attempts: 1,
	}}
	got, err := s.typed.UpdateStatus(t.Context(), next, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := next.Status.DeepCopy()
	want.Phase, want.StepsGeneration = batchv1alpha1.PhaseRunning, 1
	if diff := cmp.Diff(*want, got.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(sj.Spec, got.Spec); diff != "" || got.Labels != nil || got.Generation != 1 {
		t.Errorf("metadata is %+v; spec (-want +got):\n%s", got.ObjectMeta, diff)
	}
}

func testSequenceSelectors(t *testing.T, s *sequences) {
	s.create(t, sequence("a"))
	s.create(t, sequence("b", func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Suspend = ptr.To(true) }))
	for selector, want := range map[string][]string{
		"spec.suspend=false": {"a"}, "status.phase=Suspended": {"b"}, "status.phase!=Suspended": {"a"}, "metadata.name=b": {"b"}, "status.phase=Running": nil,
	} {
		list, err := s.typed.List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			t.Error(err)
			continue
		}
		var got []string
		for i := range list.Items {
			got = append(got, list.Items[i].Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", selector, diff)
		}
	}
	if _, err := s.typed.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.ttl=1"}); !apierrors.IsBadRequest(err) {
		t.Errorf("an unknown field: %v", err)
	}
}

func testSequenceColumns(t *testing.T, s *sequences) {
	s.create(t, sequence("a"))
	for command, want := range map[string]string{
		"get sqj":         "NAME STATUS STEP SUCCEEDED AGE",
		"get sqj -o wide": "NAME STATUS STEP SUCCEEDED AGE CURRENT DURATION REASON",
	} {
		out, err := plane.Kubectl(t, append(strings.Fields(command), "-n", s.namespace)...)
		header, rest, _ := strings.Cut(out, "\n")
		if err != nil || strings.Join(strings.Fields(header), " ") != want || !strings.HasPrefix(strings.Join(strings.Fields(rest), " "), "a Pending 0/3 0 ") {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	out, err := plane.Kubectl(t, "get", "all", "-n", s.namespace, "-o", "name")
	if err != nil || strings.TrimSpace(out) != "sequentialjob.batch.jobset-apiserver.io/a" {
		t.Errorf("get all: %v\n%s", err, out)
	}
}

func testPodReadinessGroups(t *testing.T, s *sequences) {
	group, err := s.groups.Create(t.Context(), &batchv1alpha1.PodReadinessGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: batchv1alpha1.PodReadinessGroupSpec{MinMember: ptr.To[int32](3)},
		Status: batchv1alpha1.PodReadinessGroupStatus{Pods: 5},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if group.Spec.ReadyWhen != batchv1alpha1.ReadyWhenRunning || group.Status.Pods != 0 || group.Status.Phase != batchv1alpha1.GroupPending {
		t.Errorf("created %+v", group)
	}
	group.Spec.MinMember = nil
	group.Status = batchv1alpha1.PodReadinessGroupStatus{Phase: batchv1alpha1.GroupReady, Pods: 3, Running: 3, Ready: 3}
	if group, err = s.groups.UpdateStatus(t.Context(), group, metav1.UpdateOptions{}); err != nil || group.Status.Ready != 3 || group.Spec.MinMember == nil {
		t.Errorf("updating the status: %v, %+v", err, group)
	}
	out, err := plane.Kubectl(t, "get", "podreadinessgroups", "-n", s.namespace, "-o", "wide")
	if fields := strings.Fields(out); err != nil || strings.Join(fields[:8], " ") != "NAME PHASE PODS RUNNING READY AGE MIN-MEMBER READY-WHEN" ||
		strings.Join(fields[8:13], " ") != "a Ready 3 3 3" {
		t.Errorf("table: %v\n%s", err, out)
	}
	_, err = s.groups.Create(t.Context(), &batchv1alpha1.PodReadinessGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: batchv1alpha1.PodReadinessGroupSpec{MinMember: ptr.To[int32](0), ReadyWhen: "Soon"},
	}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.minMember") || !strings.Contains(err.Error(), "spec.readyWhen") {
		t.Errorf("a bad group: %v", err)
	}
}
