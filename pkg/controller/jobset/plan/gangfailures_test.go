// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
)

// without removes fields of the groups that exist, as an API does whose feature gates are off.
func without(kind string, path ...string) func(string, *unstructured.Unstructured) {
	return func(_ string, object *unstructured.Unstructured) {
		if object.GetKind() == kind {
			unstructured.RemoveNestedField(object.Object, path...)
		}
	}
}

func inRacks(s *jobsetv1alpha2.JobSetSchedulingConfiguration) {
	s.SchedulingConstraints = &jobsetv1alpha2.SchedulingConstraints{Topology: []jobsetv1alpha2.TopologyConstraint{{Key: "rack"}}}
}

func allOrNone(s *jobsetv1alpha2.JobSetSchedulingConfiguration) {
	s.DisruptionMode = &jobsetv1alpha2.DisruptionMode{All: &jobsetv1alpha2.AllDisruptionMode{}}
}

// TestGroupsThatCannotBeMade shows what a set says about groups for which its Jobs wait.
func TestGroupsThatCannotBeMade(t *testing.T) {
	const noGroupsAPI = "the cluster serves no Workloads and PodGroups of scheduling.k8s.io (v1beta1, v1alpha3 or v1alpha2); turn on the " +
		"feature gate GenericWorkload of kube-apiserver, kube-scheduler and kube-controller-manager, and " +
		"--runtime-config=scheduling.k8s.io/v1beta1=true of kube-apiserver (in Kubernetes 1.36 also the feature gate GangScheduling, and " +
		"v1alpha2 in place of v1beta1); or suspend the JobSet and remove spec.scheduling"
	const cannot = "the groups of the pods could not be created: "
	running := []*batchv1.Job{jobNamed("w", 0, inGroup("js")), jobNamed("w", 1, inGroup("js"))}
	for name, tc := range map[string]struct {
		set     []func(*jobsetv1alpha2.JobSet)
		jobs    []*batchv1.Job
		grouped gang.Observed
		have    func(string, *unstructured.Unstructured)
		// since is for how long there have been refusals.
		since time.Duration
		want  string
		after time.Duration
	}{
		"no API":                {grouped: gang.Observed{Absent: true}, want: "NotSupported: " + cannot + noGroupsAPI},
		"not known yet":         {after: 10 * time.Second},
		"cannot be read":        {grouped: gang.Observed{Problem: "podgroups (forbidden)"}, after: 10 * time.Second},
		"cannot be read still":  {grouped: gang.Observed{Problem: "podgroups (forbidden)"}, since: time.Minute, after: 10 * time.Second, want: "FailedCreate: " + cannot + "the groups that exist cannot be read: podgroups (forbidden)"},
		"no API, all Jobs run":  {grouped: gang.Observed{Absent: true}, jobs: running},
		"no API, one Job lacks": {grouped: gang.Observed{Absent: true}, jobs: running[:1], want: "NotSupported: " + cannot + noGroupsAPI},
		"no API, suspended":     {grouped: gang.Observed{Absent: true}, set: []func(*jobsetv1alpha2.JobSet){isSuspended}},
		"no API, not asked for": {grouped: gang.Observed{Absent: true}, set: []func(*jobsetv1alpha2.JobSet){func(js *jobsetv1alpha2.JobSet) { js.Spec.Scheduling = nil }}},
		"constraints are not kept": {
			set: []func(*jobsetv1alpha2.JobSet){scheduling(inRacks)}, grouped: gang.Observed{API: gang.V1beta1}, have: without("PodGroup", "spec", "schedulingConstraints"),
			want: "NotSupported: " + cannot + "the cluster does not keep schedulingConstraints of the PodGroup js-" + hash +
				"; turn on its feature gate TopologyAwareWorkloadScheduling, then suspend and resume the JobSet",
		},
		"the disruption mode of templates is not kept": {
			set: []func(*jobsetv1alpha2.JobSet){scheduling(allOrNone)}, grouped: gang.Observed{API: gang.V1beta1},
			have: func(_ string, object *unstructured.Unstructured) {
				if templates, found, _ := unstructured.NestedSlice(object.Object, "spec", "podGroupTemplates"); found {
					delete(templates[0].(map[string]any), "disruptionMode")
					_ = unstructured.SetNestedSlice(object.Object, templates, "spec", "podGroupTemplates")
				}
			},
			want: "NotSupported: " + cannot + "the cluster does not keep disruptionMode of the Workload js-" + hash +
				"; turn on its feature gate WorkloadAwarePreemption, then suspend and resume the JobSet",
		},
		"constraints are not kept, all Jobs run": {
			set: []func(*jobsetv1alpha2.JobSet){scheduling(inRacks)}, grouped: gang.Observed{API: gang.V1beta1}, jobs: running, have: without("PodGroup", "spec", "schedulingConstraints"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			js := newSet(append([]func(*jobsetv1alpha2.JobSet){with("w", 2), scheduling()}, tc.set...)...)
			o := observe(js, tc.jobs...)
			o.Grouped = &tc.grouped
			if tc.have != nil {
				o.Grouped.Objects = existing(js, tc.have)
			}
			if tc.since > 0 {
				o.RefusedSince = o.Now.Add(-tc.since)
			}
			p := Decide(o)
			out := Finish(o, p, Results{})
			got := ""
			if out.Status != nil {
				if c := meta.FindStatusCondition(out.Status.Conditions, jobsetv1alpha2.JobCreationFailure); c != nil && c.Status == metav1.ConditionTrue {
					got = c.Reason + ": " + c.Message
				}
			}
			diff(t, "condition", tc.want, got)
			diff(t, "changes", "", changedGroups(p.Groups))
			diff(t, "looks again after", tc.after, out.RequeueAfter)
			if !suspended(js) && js.Spec.Scheduling != nil && len(p.CreateJobs)+len(p.PatchJobs) > 0 {
				t.Error("Jobs start without their groups")
			}
		})
	}
}

// TestOtherGroupsGoOn has one group that the API does not keep as it is wanted. The Jobs of the other one do not wait for it.
func TestOtherGroupsGoOn(t *testing.T) {
	js := newSet(with("w", 2), with("other", 1), scheduling(func(s *jobsetv1alpha2.JobSetSchedulingConfiguration) {
		s.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJobScheduling{entry(false, "w"), entry(false, "other")}
		s.ReplicatedJobs[0].DisruptionMode = &jobsetv1alpha2.DisruptionMode{All: &jobsetv1alpha2.AllDisruptionMode{}}
	}))
	ofTemplate := func(_ string, object *unstructured.Unstructured) {
		if templates, found, _ := unstructured.NestedSlice(object.Object, "spec", "podGroupTemplates"); found {
			delete(templates[0].(map[string]any), "disruptionMode")
			_ = unstructured.SetNestedSlice(object.Object, templates, "spec", "podGroupTemplates")
		}
	}
	const turnOn = "; turn on its feature gate WorkloadAwarePreemption, then suspend and resume the JobSet"
	for name, tc := range map[string]struct {
		grouped gang.Observed
		have    func(string, *unstructured.Unstructured)
		want    string
	}{
		"in the PodGroup": {
			gang.Observed{API: gang.V1beta1}, without("PodGroup", "spec", "disruptionMode"),
			"the cluster does not keep disruptionMode of the PodGroup js-w-" + hash + turnOn,
		},
		"in the template": {gang.Observed{API: gang.V1beta1}, ofTemplate, "the cluster does not keep disruptionMode of the Workload js-" + hash + turnOn},
		"in both": {gang.Observed{API: gang.V1beta1}, func(name string, object *unstructured.Unstructured) {
			ofTemplate(name, object)
			without("PodGroup", "spec", "disruptionMode")(name, object)
		}, "the cluster does not keep disruptionMode of the PodGroup js-w-" + hash + turnOn},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(js)
			o.Grouped = &tc.grouped
			o.Grouped.Objects = existing(js, tc.have)
			p := Decide(o)
			diff(t, "groups", "", changedGroups(p.Groups))
			diff(t, "creates", "other-0 other js-other", createdIn(p))
			if p.Groups.Refusal == nil || p.Groups.Refusal.Message != tc.want || !p.Groups.Waiting {
				t.Errorf("refusal %+v, waiting %t, want %s", p.Groups.Refusal, p.Groups.Waiting, tc.want)
			}
		})
	}
}

// TestOtherGroupsOfMembersGoOn has one group that the scheduler cannot make.
func TestOtherGroupsOfMembersGoOn(t *testing.T) {
	js := newSet(with("w", 2), with("other", 1), scheduling(func(s *jobsetv1alpha2.JobSetSchedulingConfiguration) {
		s.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJobScheduling{entry(false, "w"), entry(false, "other")}
		inRacks(s)
		s.ReplicatedJobs[0].SchedulingConstraints, s.SchedulingConstraints = s.SchedulingConstraints, nil
	}))
	o := observe(js)
	o.Grouped = &gang.Observed{API: gang.Coscheduling, Provider: gang.Coscheduling.Provider()}
	p := Decide(o)
	diff(t, "groups", "PodGroup/js-other", changedGroups(p.Groups))
	o.Grouped.Objects = p.Groups.Create
	p = Decide(o)
	diff(t, "groups", "", changedGroups(p.Groups))
	diff(t, "creates", "other-0", createdIn(p))
	if p.Groups.Refusal == nil || !strings.HasPrefix(p.Groups.Refusal.Message, "schedulingConstraints cannot be asked of") || !p.Groups.Waiting {
		t.Errorf("refusal %+v, waiting %t", p.Groups.Refusal, p.Groups.Waiting)
	}
}

// TestGroupsFailureEnds keeps the condition until the Jobs exist.
func TestGroupsFailureEnds(t *testing.T) {
	js := newSet(with("w", 2), scheduling())
	js.Status.Conditions = []metav1.Condition{{Type: jobsetv1alpha2.JobCreationFailure, Status: metav1.ConditionTrue, Reason: "NotSupported", Message: "x"}}
	o := observe(js)
	o.Grouped = &gang.Observed{API: gang.V1beta1}
	status := func() metav1.ConditionStatus {
		p := Decide(o)
		out := Finish(o, p, Results{})
		if out.Status == nil {
			return metav1.ConditionTrue
		}
		return meta.FindStatusCondition(out.Status.Conditions, jobsetv1alpha2.JobCreationFailure).Status
	}
	diff(t, "while groups are created", metav1.ConditionTrue, status())
	o.Grouped.Objects = existing(js, nil)[:1]
	diff(t, "while a group lacks", metav1.ConditionTrue, status())
	o.Grouped.Objects = existing(js, nil)
	diff(t, "while Jobs are created", metav1.ConditionTrue, status())
	o.Jobs = []*batchv1.Job{jobNamed("w", 0, inGroup("js")), jobNamed("w", 1, inGroup("js"))}
	diff(t, "when the Jobs exist", metav1.ConditionFalse, status())
}
