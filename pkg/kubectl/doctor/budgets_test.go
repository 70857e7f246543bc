// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// budget is one of the namespace team that could not be computed, for pods with a label.
func budget(name, key, value string, changes ...func(*policyv1.PodDisruptionBudget)) runtime.Object {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Generation: 1},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{Conditions: []metav1.Condition{{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: "jobs.batch does not implement the scale subresource",
		}}},
	}
	for _, change := range changes {
		change(b)
	}
	return b
}

func TestBudgets(t *testing.T) {
	const (
		fine   = "no PodDisruptionBudget over pods of JobSets or SequentialJobs blocks drains"
		blocks = "PodDisruptionBudgets allow no disruption and block drains, because maxUnavailable and percentages need the scale of the owners of pods, and Jobs have none: "
		use    = "; docs/operations/nodes.md says what to use instead"
	)
	set := func(changes ...func(*jobsetv1alpha2.JobSet)) runtime.Object {
		js := builders.JobSet("train", builders.WithJobs("workers", 2, 1))
		js.Namespace = "team"
		js.Spec.ReplicatedJobs[0].Template.Spec.Template.Labels = map[string]string{"app": "llm"}
		for _, change := range changes {
			change(js)
		}
		return js
	}
	sequence := builders.SequentialJob("etl", builders.WithContainers("extract", "load"))
	sequence.Namespace = "team"
	var many []runtime.Object
	for i := range 7 {
		many = append(many, budget(fmt.Sprintf("guard-%d", i), "app", "llm"))
	}
	var tooMany []runtime.Object
	for i := range maxBudgets + 3 {
		tooMany = append(tooMany, budget(fmt.Sprintf("guard-%d", i), "app", "web"))
	}
	one := func(key, value string, changes ...func(*policyv1.PodDisruptionBudget)) []runtime.Object {
		return []runtime.Object{budget("guard", key, value, changes...)}
	}
	for name, tc := range map[string]struct {
		cluster cluster
		status  Status
		message string
	}{
		"none":              {cluster{}, OK, fine},
		"a label of pods":   {cluster{objects: one("app", "llm"), sets: []runtime.Object{set()}}, Warn, blocks + "team/guard (jobset train)" + use},
		"the name of a set": {cluster{objects: one(jobsetv1alpha2.JobSetNameKey, "train"), sets: []runtime.Object{set()}}, Warn, blocks + "team/guard (jobset train)" + use},
		"one Job of a set":  {cluster{objects: one(jobsetv1alpha2.JobIndexKey, "1"), sets: []runtime.Object{set()}}, Warn, blocks + "team/guard (jobset train)" + use},
		"another set":       {cluster{objects: one(jobsetv1alpha2.JobSetNameKey, "other"), sets: []runtime.Object{set()}}, OK, fine},
		"another namespace": {cluster{objects: one("app", "llm"), sets: []runtime.Object{set(func(js *jobsetv1alpha2.JobSet) { js.Namespace = "other" })}}, OK, fine},
		"a suspended set":   {cluster{objects: one("app", "llm"), sets: []runtime.Object{set(func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) })}}, OK, fine},
		"a set that has ended": {cluster{objects: one("app", "llm"), sets: []runtime.Object{set(func(js *jobsetv1alpha2.JobSet) {
			js.Status.TerminalState = string(jobsetv1alpha2.JobSetCompleted)
		})}}, OK, fine},
		"a sequence": {cluster{objects: one(batchv1alpha1.SequentialJobNameKey, "etl"), sets: []runtime.Object{sequence}}, Warn, blocks + "team/guard (sequentialjob etl)" + use},
		"it was computed": {cluster{objects: one("app", "llm", func(b *policyv1.PodDisruptionBudget) {
			b.Status.ObservedGeneration, b.Status.Conditions[0].Reason = 1, policyv1.InsufficientPodsReason
		}), sets: []runtime.Object{set()}}, OK, fine},
		"it is not computed yet": {cluster{objects: one("app", "llm", func(b *policyv1.PodDisruptionBudget) { b.Status.Conditions = nil }), sets: []runtime.Object{set()}}, Warn,
			blocks + "team/guard (jobset train)" + use},
		"many": {cluster{objects: many, sets: []runtime.Object{set()}}, Warn,
			blocks + "team/guard-0 (jobset train), team/guard-1 (jobset train), team/guard-2 (jobset train), team/guard-3 (jobset train), team/guard-4 (jobset train) and 2 more" + use},
		"too many of others": {cluster{objects: tooMany, sets: []runtime.Object{set()}}, Skip,
			"53 PodDisruptionBudgets of the cluster cannot be computed, which are too many to find out whether they concern Jobs of JobSets"},

		"budgets are forbidden": {cluster{refused: map[string]error{"poddisruptionbudgets": forbidden("poddisruptionbudgets")}}, Warn,
			"you have no permission to read PodDisruptionBudgets; the ClusterRole jobset-doctor grants it"},
		"sets are forbidden": {cluster{objects: one("app", "llm"), refused: map[string]error{"jobsets": forbidden("jobsets")}}, Warn,
			"you have no permission to read JobSets; the ClusterRole jobset-doctor grants it"},
		"sets are forbidden, and of no interest": {cluster{refused: map[string]error{"jobsets": forbidden("jobsets")}}, OK, fine},
		"the API of the sets does not answer": {cluster{objects: one("app", "llm"), refused: map[string]error{"jobsets": apierrors.NewServiceUnavailable("away")}}, Warn,
			"JobSets cannot be listed while their API does not answer"},
		"sequences are switched off": {cluster{objects: one("app", "llm"), sets: []runtime.Object{set()}, refused: map[string]error{
			"sequentialjobs": apierrors.NewNotFound(schema.GroupResource{}, ""),
		}}, Warn, blocks + "team/guard (jobset train)" + use},
		"sequences cannot be listed": {cluster{objects: one("app", "llm"), refused: map[string]error{"sequentialjobs": errors.New("broken")}}, Fail, "SequentialJobs could not be read: broken"},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.cluster.find(t, "budgets")
			if got.status != tc.status || got.message != tc.message {
				t.Errorf("%s: %s\nwant %s: %s", got.status, got.message, tc.status, tc.message)
			}
			if (got.fix != "") != strings.HasPrefix(tc.message, blocks) {
				t.Errorf("fix %q", got.fix)
			}
		})
	}
}

// TestBudgetsCountsPodsOfTheCurrentStep knows the labels of the templates of both kinds of steps, and leaves a JobSet to itself.
func TestBudgetsCountsPodsOfTheCurrentStep(t *testing.T) {
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "etl"}}}
	selector := labels.SelectorFromSet(labels.Set{"app": "etl"})
	for name, tc := range map[string]struct {
		change func(*batchv1alpha1.SequentialJob)
		want   bool
	}{
		"a container": {func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Template = &template }, true},
		"no template": {func(*batchv1alpha1.SequentialJob) {}, false},
		"a Job": {func(sj *batchv1alpha1.SequentialJob) {
			steps(sj, batchv1alpha1.SequentialJobStep{Job: &batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}}})
		}, true},
		"a JobSet": {func(sj *batchv1alpha1.SequentialJob) {
			steps(sj, batchv1alpha1.SequentialJobStep{JobSet: &batchv1alpha1.JobSetTemplateSpec{}})
		}, false},
		"suspended":             {func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Template, sj.Spec.Suspend = &template, ptr.To(true) }, false},
		"nothing of the labels": {func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Template = &corev1.PodTemplateSpec{} }, false},
	} {
		sj := builders.SequentialJob("etl", builders.WithContainers("extract"))
		tc.change(sj)
		of := []*suspect{{selector: selector}}
		compare(of, "sequentialjob etl", podsOfSequence(sj))
		if got := of[0].owner != ""; got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}

func steps(sj *batchv1alpha1.SequentialJob, step batchv1alpha1.SequentialJobStep) {
	sj.Spec.Containers, sj.Spec.Steps = nil, []batchv1alpha1.SequentialJobStep{step}
}
