// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
)

// rulesSet returns a set whose worker has a restart rule, and two Jobs.
func rulesSet(strategy jobsetv1alpha2.JobSetRestartStrategy) *jobsetv1alpha2.JobSet {
	js := sizedSet(2)
	js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 3, RestartStrategy: strategy}
	job := &js.Spec.ReplicatedJobs[0].Template.Spec
	job.Parallelism, job.Completions = ptr.To[int32](1), ptr.To[int32](1)
	job.Template.Spec.Containers = []corev1.Container{
		{Name: "logs", Image: "logs"},
		{Name: "worker", Image: "worker", RestartPolicyRules: []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}},
	}
	return js
}

// TestRestartRulesMissing shows that a set reports what an old kube-apiserver has left out of its Jobs, until new Jobs have it.
func TestRestartRulesMissing(t *testing.T) {
	const message = "kube-apiserver has left out the restart rules of container worker of Job js-a-0, so that its pods are recreated when they fail: " +
		"the feature gate ContainerRestartRules of kube-apiserver is off, or it is older than 1.35"
	drops := true
	r := newRulesRig(t, rulesSet(jobsetv1alpha2.RestartStrategyInPlaceRestart), &drops)
	r.deps.Runner = children.NewSlowStart(1) // for an order that does not change
	r.pass(t)
	r.store(t)
	diff(t, "condition", metav1.Condition{Type: jobsetv1alpha2.RestartRulesMissing, Status: metav1.ConditionTrue, Reason: "ContainerRestartRulesMissing", Message: message}, r.rulesMissing())

	drops = false
	for _, job := range r.caches.jobs.GetIndexer().List() { // as if they had been deleted
		if err := r.caches.jobs.GetIndexer().Delete(job); err != nil {
			t.Fatal(err)
		}
	}
	r.pass(t)
	r.store(t)
	diff(t, "condition after the update of kube-apiserver", metav1.Condition{Type: jobsetv1alpha2.RestartRulesMissing, Status: metav1.ConditionFalse,
		Reason: "ContainerRestartRulesStored", Message: "the Jobs have the restart rules of their containers"}, r.rulesMissing())
}

// TestNoRulesAreMissing shows that other sets have no such condition.
func TestNoRulesAreMissing(t *testing.T) {
	drops, keeps := true, false
	for name, tc := range map[string]struct {
		strategy jobsetv1alpha2.JobSetRestartStrategy
		drops    *bool
	}{
		"the rules are kept":                       {jobsetv1alpha2.RestartStrategyInPlaceRestart, &keeps},
		"the set does not restart in place anyhow": {jobsetv1alpha2.RestartStrategyRecreate, &drops},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRulesRig(t, rulesSet(tc.strategy), tc.drops)
			r.pass(t)
			r.store(t)
			diff(t, "condition", metav1.Condition{}, r.rulesMissing())
		})
	}
}

// newRulesRig returns passes over a main API that leaves restart rules out of Jobs while drops is true.
func newRulesRig(t *testing.T, js *jobsetv1alpha2.JobSet, drops *bool) *passes {
	t.Helper()
	r := newPasses(t, js, func(string) error { return nil })
	r.build(t, gates.Gates{InPlaceRestart: true})
	if err := r.caches.jobSets.GetIndexer().Add(js); err != nil {
		t.Fatal(err)
	}
	r.kube.PrependReactor("create", "jobs", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		job := action.(clientgotesting.CreateAction).GetObject().(*batchv1.Job).DeepCopy()
		job.UID = types.UID("uid-" + job.Name)
		for i := range job.Spec.Template.Spec.Containers {
			if *drops {
				job.Spec.Template.Spec.Containers[i].RestartPolicyRules = nil
			}
		}
		return true, job, r.caches.jobs.GetIndexer().Add(job)
	})
	return r
}

// store shows the stored set to the controller.
func (r *passes) store(t *testing.T) {
	t.Helper()
	stored, err := r.jobSets.JobsetV1alpha2().JobSets(r.set.Namespace).Get(t.Context(), r.set.Name, metav1.GetOptions{})
	if err == nil {
		err = r.caches.jobSets.GetIndexer().Update(stored)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// rulesMissing returns the condition as the cache of the controller shows it, without what depends on the time.
func (r *passes) rulesMissing() metav1.Condition {
	object, _, _ := r.caches.jobSets.GetIndexer().GetByKey(cache.MetaObjectToName(r.set).String())
	c := ptr.Deref(meta.FindStatusCondition(object.(*jobsetv1alpha2.JobSet).Status.Conditions, jobsetv1alpha2.RestartRulesMissing), metav1.Condition{})
	c.LastTransitionTime, c.ObservedGeneration = metav1.Time{}, 0
	return c
}
