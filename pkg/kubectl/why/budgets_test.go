// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

// budget is one for pods with a label, that the disruption controller could not compute.
func budget(name, key, value string, changes ...func(*policyv1.PodDisruptionBudget)) policyv1.PodDisruptionBudget {
	b := policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Generation: 1},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{Conditions: []metav1.Condition{{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: "jobs.batch does not implement the scale subresource",
		}}},
	}
	for _, change := range changes {
		change(&b)
	}
	return b
}

const needsScale = ". maxUnavailable and percentages need the scale of the owners of the pods, and Jobs have none: use minAvailable with a number, or no budget"

// blocked is what is said of a budget that could not be computed.
func blocked(name string) string {
	return "PodDisruptionBudget " + name + " selects 2 pods of the set and allows no disruption, so that drains of their nodes do not end: " +
		"its condition DisruptionAllowed is False (SyncFailed): jobs.batch does not implement the scale subresource"
}

func TestDrainsBlocked(t *testing.T) {
	const name = jobsetv1alpha2.JobSetNameKey
	budgets := func(all ...policyv1.PodDisruptionBudget) func(*Evidence) {
		return func(e *Evidence) { e.Budgets = all }
	}
	sequence := func(changes ...func(*Evidence)) *Evidence {
		e := runningSequence()
		for _, change := range changes {
			change(e)
		}
		return e
	}
	groups := runningLeaderWorkerSet()
	groups.Budgets = append(groups.Budgets, budget("guard", leaderworkersetv1.SetNameLabelKey, "vllm"))
	var many []policyv1.PodDisruptionBudget
	for i := range 5 {
		many = append(many, budget(fmt.Sprintf("guard-%d", i), name, "train", func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = nil }))
	}
	for name, tc := range map[string]struct {
		evidence *Evidence
		want     []string
	}{
		"no budget":            {healthy(), nil},
		"maxUnavailable":       {healthy(budgets(budget("guard", name, "train"))), []string{blocked("guard") + needsScale}},
		"of other pods":        {healthy(budgets(budget("guard", name, "other"))), nil},
		"pods have ended":      {healthy(budgets(budget("guard", name, "train")), pods(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded })), nil},
		"pods of StatefulSets": {groups.evidence(), nil},
		"it may be computed": {healthy(budgets(budget("guard", name, "train", func(b *policyv1.PodDisruptionBudget) {
			b.Status.ObservedGeneration, b.Status.Conditions[0].Reason = 1, policyv1.InsufficientPodsReason
		}))), nil},
		"not computed": {healthy(budgets(budget("guard", name, "train", func(b *policyv1.PodDisruptionBudget) { b.Status.Conditions = nil }))), []string{
			"PodDisruptionBudget guard selects 2 pods of the set and allows no disruption, so that drains of their nodes do not end: its status is not computed" + needsScale,
		}},
		"a sequence": {sequence(budgets(budget("guard", batchv1alpha1.SequentialJobNameKey, "etl"))), []string{
			"PodDisruptionBudget guard selects 1 pod of the sequence and allows no disruption, so that drains of their nodes do not end: its condition DisruptionAllowed is False (SyncFailed): " +
				"jobs.batch does not implement the scale subresource" + needsScale,
		}},
		"the JobSet of a sequence": {sequence(func(e *Evidence) {
			e.Jobs, e.Pods = nil, nil
			e.Child = healthy(budgets(budget("guard", name, "train")))
		}), []string{"step 2/3 (transform): " + blocked("guard") + needsScale}},
		"many": {healthy(budgets(many...)), []string{
			blocked("guard-0"), blocked("guard-1"), blocked("guard-2"), "the same holds of 2 other PodDisruptionBudgets of the namespace",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnose(tc.evidence)
			if diff := cmp.Diff(tc.want, r.Notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			if !r.Findings[0].Cause.Normal() {
				t.Errorf("a budget makes nothing ill: %+v", r.Findings[0])
			}
		})
	}
}

// A pod that has no node is in the way of no drain, and a user who may not list budgets misses nothing.
func TestDrainsOfPodsWithoutNode(t *testing.T) {
	e := healthy()
	e.Budgets = append(e.Budgets, budget("guard", jobsetv1alpha2.JobSetNameKey, "train"))
	pods(func(pod *corev1.Pod) { pod.Spec.NodeName = "" })(e)
	if notes := diagnose(e).Notes; len(notes) > 0 {
		t.Errorf("notes about pods without a node: %q", notes)
	}
}

func TestRenderBlockedDrains(t *testing.T) {
	e := healthy()
	e.Budgets = append(e.Budgets, budget("guard", jobsetv1alpha2.JobSetNameKey, "train"))
	var out bytes.Buffer
	if err := render(&out, cli.JobSet, Diagnose(e), cli.Terminal{Width: 100}, now); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "drains-blocked.txt", out.String())
}

// TestLoadReadsBudgetsOfPodsOfJobs reads none for pods of StatefulSets.
func TestLoadReadsBudgetsOfPodsOfJobs(t *testing.T) {
	guard := budget("guard", jobsetv1alpha2.JobSetNameKey, "train")
	w := newEnv(t, healthy())
	if err := w.kube.Tracker().Add(&guard); err != nil {
		t.Fatal(err)
	}
	if notes := Diagnose(w.load(t)).Notes; len(notes) != 1 {
		t.Errorf("notes %q", notes)
	}
	w = newEnv(t, &Evidence{})
	l := &loader{Clients: w.Clients, e: runningLeaderWorkerSet().evidence()}
	l.readBudgets(t.Context())
	if actions := w.kube.Actions(); len(actions) > 0 {
		t.Errorf("read %v for pods of StatefulSets", actions)
	}
}
