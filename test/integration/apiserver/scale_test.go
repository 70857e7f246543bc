// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

const scaleKey = "jobset-apiserver.io/scale-replicated-job"

// TestScale covers jobsets/scale as autoscalers and kubectl scale reach it.
func TestScale(t *testing.T) {
	server := plane.StartServer(t, append(framework.Embedded(framework.ShortDir(t)), "--feature-gates=ElasticJobSet=true")...)
	plane.Aggregate(t, server)
	cases := map[string]func(*testing.T, *env){
		"the client of autoscalers finds and changes the size": testScaleClient,
		"every patch type works on a scale":                    testScalePatches,
		"a dry run answers and stores nothing":                 testScaleDryRun,
		"the annotation chooses among several":                 testScaleChoice,
		"bad sizes are refused":                                testBadScales,
		"who scales owns the size":                             testScaleOwnership,
		"kubectl prints a scale":                               testScaleTable,
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { test(t, newEnv(t, server, plane.Config)) })
	}
}

func TestScaleWithoutTheGate(t *testing.T) {
	tier.OnRequest(t, "a second server")
	server := plane.StartServer(t, framework.Embedded(framework.ShortDir(t))...)
	e := newEnv(t, server, server.Config(t))
	e.create(t, jobSet("a"))
	_, err := e.typed.GetScale(t.Context(), "a", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "while the feature gate ElasticJobSet is off") {
		t.Errorf("got %v", err)
	}
}

func (e *env) size(t *testing.T, name string) [2]int32 {
	t.Helper()
	job := e.get(t, name).Spec.ReplicatedJobs[0].Template.Spec
	return [2]int32{ptr.Deref(job.Parallelism, 0), ptr.Deref(job.Completions, 0)}
}

func testScaleClient(t *testing.T, e *env) {
	js := e.running(t, "a")
	discoverer, err := discovery.NewDiscoveryClientForConfig(e.config)
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer))
	// The horizontal pod autoscaler uses this client: it discovers of which kind the scale of a resource is.
	client, err := scale.NewForConfig(e.config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(discoverer))
	if err != nil {
		t.Fatal(err)
	}
	scales, resource := client.Scales(e.namespace), jobsets.GroupResource()
	got, err := scales.Get(t.Context(), resource, "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"3", "3", "jobset.sigs.k8s.io/job-index=0,jobset.sigs.k8s.io/jobset-name=a,jobset.sigs.k8s.io/replicatedjob-name=workers"}
	if diff := cmp.Diff(want, []string{fmt.Sprint(got.Spec.Replicas), fmt.Sprint(got.Status.Replicas), got.Status.Selector}); diff != "" {
		t.Errorf("the scale (-want +got):\n%s", diff)
	}
	if got.UID != js.UID || got.ResourceVersion != js.ResourceVersion {
		t.Errorf("the scale is %+v", got.ObjectMeta)
	}
	got.Spec.Replicas = 5
	updated, err := scales.Update(t.Context(), resource, got, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if updated.Spec.Replicas != 5 || e.get(t, "a").Generation != 2 {
		t.Errorf("updated to %+v", updated)
	}
	if diff := cmp.Diff([2]int32{5, 5}, e.size(t, "a")); diff != "" {
		t.Errorf("parallelism and completions (-want +got):\n%s", diff)
	}
	if _, err := scales.Update(t.Context(), resource, got, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an outdated scale: %v", err)
	}
	// Through the generated client, in protobuf.
	current, err := e.typed.GetScale(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	current.Spec.Replicas = 2
	if _, err := e.typed.UpdateScale(t.Context(), "a", current, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([2]int32{2, 2}, e.size(t, "a")); diff != "" {
		t.Errorf("parallelism and completions (-want +got):\n%s", diff)
	}
	// As of a custom resource, a Scale without a version sets the size of whatever version there is.
	unconditional := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	if answer, err := e.typed.UpdateScale(t.Context(), "a", unconditional, metav1.UpdateOptions{}); err != nil || answer.Spec.Replicas != 3 {
		t.Errorf("without a version: %v, size %v", err, answer)
	}
	if diff := cmp.Diff([2]int32{3, 3}, e.size(t, "a")); diff != "" {
		t.Errorf("parallelism and completions (-want +got):\n%s", diff)
	}
}

func testScalePatches(t *testing.T, e *env) {
	patches := map[types.PatchType]string{
		types.MergePatchType:          `{"spec":{"replicas":7}}`,
		types.StrategicMergePatchType: `{"spec":{"replicas":7}}`,
		types.JSONPatchType:           `[{"op":"replace","path":"/spec/replicas","value":7}]`,
		types.ApplyYAMLPatchType:      `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"%s"},"spec":{"replicas":7}}`,
	}
	i := 0
	for kind, patch := range patches {
		i++
		name, options := fmt.Sprintf("a%d", i), metav1.PatchOptions{}
		if kind == types.ApplyYAMLPatchType {
			options.FieldManager, options.Force = "scaler", ptr.To(true)
			patch = fmt.Sprintf(patch, name)
		}
		e.create(t, jobSet(name))
		got, err := e.dynamic.Patch(t.Context(), name, kind, []byte(patch), options, "scale")
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if got.GetAPIVersion() != "autoscaling/v1" || got.GetKind() != "Scale" {
			t.Errorf("%s: the answer is %v", kind, got)
		}
		if diff := cmp.Diff([2]int32{7, 7}, e.size(t, name)); diff != "" {
			t.Errorf("%s: parallelism and completions (-want +got):\n%s", kind, diff)
		}
	}
}

func testScaleDryRun(t *testing.T, e *env) {
	before := e.create(t, jobSet("a"))
	answer, err := e.dynamic.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"replicas":7}}`),
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "scale")
	if err != nil {
		t.Fatal(err)
	}
	if size, _, _ := unstructured.NestedInt64(answer.Object, "spec", "replicas"); size != 7 {
		t.Errorf("the answer is %v", answer)
	}
	if diff := cmp.Diff(before, e.get(t, "a")); diff != "" {
		t.Errorf("a dry run changed the set (-before +after):\n%s", diff)
	}
}

func testScaleChoice(t *testing.T, e *env) {
	two := func(js *jobsetv1alpha2.JobSet) {
		launcher := *js.Spec.ReplicatedJobs[0].DeepCopy()
		launcher.Name, launcher.Replicas = "launcher", ptr.To[int32](1)
		launcher.Template.Spec.Parallelism, launcher.Template.Spec.Completions = ptr.To[int32](1), ptr.To[int32](1)
		fixed := *launcher.DeepCopy()
		fixed.Name, fixed.Template.Spec.Completions = "fixed", ptr.To[int32](4)
		js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, launcher, fixed)
	}
	cases := map[string]struct {
		annotation, want string
		wantSize         int32
	}{
		"a workers":  {annotation: "workers", wantSize: 3},
		"b launcher": {annotation: "launcher", wantSize: 1},
		"c none":     {want: "metadata.annotations[" + scaleKey + "]: Required value: must name one of the elastic replicatedJobs: workers, launcher"},
		"d fixed":    {annotation: "fixed", want: `Invalid value: "fixed": must name one of the elastic replicatedJobs: workers, launcher`},
		"e unknown":  {annotation: "other", want: `Invalid value: "other": must name one of the elastic replicatedJobs: workers, launcher`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set := name[:1]
			e.create(t, jobSet(set, two, func(js *jobsetv1alpha2.JobSet) {
				if tc.annotation != "" {
					js.Annotations = map[string]string{scaleKey: tc.annotation}
				}
			}))
			got, err := e.typed.GetScale(t.Context(), set, metav1.GetOptions{})
			if tc.want != "" {
				_, patchErr := e.dynamic.Patch(t.Context(), set, types.MergePatchType, []byte(`{"spec":{"replicas":7}}`), metav1.PatchOptions{}, "scale")
				for verb, err := range map[string]error{"get": err, "patch": patchErr} {
					if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want) {
						t.Errorf("%s: got %v, want %s", verb, err, tc.want)
					}
				}
				return
			}
			if err != nil || got.Spec.Replicas != tc.wantSize || got.Status.Replicas != 0 {
				t.Errorf("got %v, %+v", err, got)
			}
			if only := strings.Contains(got.Status.Selector, "job-index"); only != (tc.annotation == "workers") {
				t.Errorf("the selector is %s", got.Status.Selector)
			}
		})
	}
}

func testBadScales(t *testing.T, e *env) {
	e.create(t, jobSet("a"))
	put := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: autoscalingv1.ScaleSpec{Replicas: 0}}
	_, err := e.typed.UpdateScale(t.Context(), "a", put, metav1.UpdateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `Scale.autoscaling "a" is invalid: spec.replicas: Invalid value: 0: must be at least 1; suspend the JobSet to run no pods`) {
		t.Errorf("size 0: %v", err)
	}
	if _, err := e.typed.GetScale(t.Context(), "missing", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a missing set: %v", err)
	}
	js := e.get(t, "a")
	js.Status.TerminalState = "Failed"
	js.Status.Conditions = []metav1.Condition{{Type: "Failed", Status: metav1.ConditionTrue, Reason: "FailedJobs", LastTransitionTime: metav1.Now()}}
	if _, err := e.typed.UpdateStatus(t.Context(), js, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = e.dynamic.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"replicas":7}}`), metav1.PatchOptions{}, "scale")
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "parallelism and completions cannot be changed after the JobSet has finished") {
		t.Errorf("of a finished set: %v", err)
	}
}

// testScaleOwnership: a manifest that leaves the size to an autoscaler does not take it back, nor half of it; one that
// sets the size gets a conflict that names its owner.
func testScaleOwnership(t *testing.T, e *env) {
	content := fmt.Sprintf(manifest, "a")
	if _, err := e.apply(t, "a", content, "kubectl", metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	patch := `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a"},"spec":{"replicas":7}}`
	_, err := e.dynamic.Patch(t.Context(), "a", types.ApplyYAMLPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "scaler"}, "scale")
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "kubectl"`) {
		t.Errorf("applying a size that another manager owns: %v", err)
	}
	if _, err := e.dynamic.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"replicas":7}}`), metav1.PatchOptions{FieldManager: "autoscaler"}, "scale"); err != nil {
		t.Fatal(err)
	}
	_, err = e.apply(t, "a", content, "kubectl", metav1.PatchOptions{})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflicts with "autoscaler" with subresource "scale"`) ||
		!strings.Contains(err.Error(), ".parallelism") || !strings.Contains(err.Error(), ".completions") {
		t.Errorf("applying the old size: %v", err)
	}
	without := strings.NewReplacer("        parallelism: 2\n", "", "        completions: 2\n", "").Replace(content)
	if _, err := e.apply(t, "a", without, "kubectl", metav1.PatchOptions{}); err != nil {
		t.Errorf("applying without a size: %v", err)
	}
	if diff := cmp.Diff([2]int32{7, 7}, e.size(t, "a")); diff != "" {
		t.Errorf("parallelism and completions (-want +got):\n%s", diff)
	}
	if _, err := e.dynamic.Patch(t.Context(), "a", types.ApplyYAMLPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "scaler"}, "scale"); err != nil {
		t.Errorf("applying the size that is there: %v", err)
	}
	if _, err := e.apply(t, "a", without, "kubectl", metav1.PatchOptions{}); err != nil {
		t.Errorf("applying without a size again: %v", err)
	}
	if diff := cmp.Diff([2]int32{7, 7}, e.size(t, "a")); diff != "" {
		t.Errorf("parallelism and completions in the end (-want +got):\n%s", diff)
	}
}

func testScaleTable(t *testing.T, e *env) {
	e.running(t, "a")
	client, err := discovery.NewDiscoveryClientForConfig(e.config)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := client.RESTClient().Get().AbsPath("/apis/jobset.x-k8s.io/v1alpha2/namespaces/"+e.namespace+"/jobsets/a/scale").
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	decode(t, raw, &table)
	if len(table.Rows) != 1 || len(table.ColumnDefinitions) != 4 {
		t.Fatalf("the table is %s", raw)
	}
	if diff := cmp.Diff([]any{"a", 3.0, 3.0}, table.Rows[0].Cells[:3]); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}
