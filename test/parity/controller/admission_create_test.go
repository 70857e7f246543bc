// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

func (e *env) tryCreate(js *jobSet) error {
	_, err := e.sets.Create(e.Context(), js, metav1.CreateOptions{})
	return err
}

// dynamic is a client without types, which sends what it is given.
func (e *env) dynamic() dynamic.ResourceInterface {
	return e.stack.Dynamic.Resource(jobsetv1alpha2.SchemeGroupVersion.WithResource("jobsets")).Namespace(e.namespace)
}

// createCase is a set that is refused at the field, with the text, or, without a field, is accepted.
type createCase struct {
	set         *jobSet
	field, text string
}

func createCases(t *testing.T, cases map[string]createCase) {
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, released)
			err := e.tryCreate(tc.set)
			if tc.field != "" {
				e.refused(err, tc.field, tc.text)
			} else if err != nil {
				t.Errorf("the set is refused: %v", err)
			}
		})
	}
}

func TestRow7_2_11_SuccessPolicyTarget(t *testing.T) {
	createCases(t, map[string]createCase{
		"that exists": {set: testJobSet(successPolicy(jobsetv1alpha2.OperatorAll, groupB))},
		"that does not exist": {testJobSet(successPolicy(jobsetv1alpha2.OperatorAll, groupB, "nobody")),
			"spec.successPolicy.targetReplicatedJobs[1]", "nobody"},
	})
}

func TestRow7_2_13_DependsOnAndStartupPolicy(t *testing.T) {
	after := dependsOn(1, on(groupA, jobsetv1alpha2.DependencyReady))
	createCases(t, map[string]createCase{
		"AnyOrder": {set: testJobSet(after, startup(jobsetv1alpha2.AnyOrder))},
		"InOrder":  {testJobSet(after, startup(jobsetv1alpha2.InOrder)), "spec", "dependsOn"},
	})
}

func TestRow7_2_14_DependsOn(t *testing.T) {
	createCases(t, map[string]createCase{
		"of the first replicatedJob": {testJobSet(dependsOn(0, on(groupB, jobsetv1alpha2.DependencyReady))),
			"spec.replicatedJobs[0].dependsOn", "first"},
		"with the status Failed": {testJobSet(dependsOn(1, on(groupA, "Failed"))),
			"spec.replicatedJobs[1].dependsOn[0].status", "supported values"},
	})
}

func TestRow7_2_15_SetWithoutJobs(t *testing.T) {
	createCases(t, map[string]createCase{"is accepted": {set: builders.JobSet(setName, func(js *jobSet) { js.Namespace = "" })}})
}

func TestRow7_2_16_CoordinatorThatIsTooLongForALabel(t *testing.T) {
	long := func(coordinator *jobsetv1alpha2.Coordinator) *jobSet {
		js := builders.JobSet(strings.Repeat("a", 40), builders.WithJobs("rj", 1, 1))
		js.Namespace, js.Spec.Coordinator = "", coordinator
		return js
	}
	sixty := builders.JobSet(strings.Repeat("a", 60), builders.WithJobs("rj", 1, 1))
	sixty.Namespace, sixty.Spec.Coordinator = "", &jobsetv1alpha2.Coordinator{ReplicatedJob: "rj"}
	createCases(t, map[string]createCase{
		"a name of 60 characters":                        {sixty, "spec.coordinator", "63"},
		"a name of 40 characters, whose pods' names fit": {long(&jobsetv1alpha2.Coordinator{ReplicatedJob: "rj"}), "spec.coordinator", "63"},
		"the same name without a coordinator passes":     {set: long(nil)},
	})
}

func TestRow7_2_17_VolumeClaimPolicies(t *testing.T) {
	t.Run("retention is Delete by default", func(t *testing.T) {
		e := newEnv(t, released)
		js := e.create(testJobSet(suspend, claim("one", jobsetv1alpha2.RetentionPolicyRetain), func(js *jobSet) {
			js.Spec.VolumeClaimPolicies[0].RetentionPolicy = nil
		}))
		want := &jobsetv1alpha2.VolumeRetentionPolicy{WhenDeleted: ptr.To(jobsetv1alpha2.RetentionPolicyDelete)}
		if diff := cmp.Diff(want, js.Spec.VolumeClaimPolicies[0].RetentionPolicy); diff != "" {
			t.Errorf("retention policy (-want +got):\n%s", diff)
		}
	})
	createCases(t, map[string]createCase{
		"a namespace in a template": {testJobSet(claim("one", jobsetv1alpha2.RetentionPolicyDelete), func(js *jobSet) {
			js.Spec.VolumeClaimPolicies[0].Templates[0].Namespace = "elsewhere"
		}), "spec.volumeClaimPolicies[0]", "namespace cannot be set"},
		"50 policies": {set: testJobSet(claims(50))},
		"51 policies": {testJobSet(claims(51)), "spec.volumeClaimPolicies", "50"},
		"51 templates in a policy": {testJobSet(claims(51), func(js *jobSet) {
			all := []corev1.PersistentVolumeClaim{}
			for _, p := range js.Spec.VolumeClaimPolicies {
				all = append(all, p.Templates...)
			}
			js.Spec.VolumeClaimPolicies = js.Spec.VolumeClaimPolicies[:1]
			js.Spec.VolumeClaimPolicies[0].Templates = all
		}), "spec.volumeClaimPolicies[0].templates", "50"},
	})
}

// claims adds so many policies with one claim each.
func claims(n int) func(*jobSet) {
	return func(js *jobSet) {
		for i := range n {
			claim(fmt.Sprintf("claim-%d", i), jobsetv1alpha2.RetentionPolicyDelete)(js)
		}
	}
}
