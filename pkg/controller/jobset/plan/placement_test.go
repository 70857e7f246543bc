// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
)

const rack = "example.com/rack"

func byRack(js *jobsetv1alpha2.JobSet) {
	js.Annotations = map[string]string{jobsetv1alpha2.ExclusiveKey: rack}
}

// racks is a placement of Jobs of the replicatedJob w for an attempt.
func racks(restarts, priority int32, domains ...string) *jobsetv1alpha2.Placement {
	entry := jobsetv1alpha2.ReplicatedJobPlacement{Name: "w", TopologyKey: rack, Priority: priority}
	for _, domain := range domains {
		entry.Jobs = append(entry.Jobs, jobsetv1alpha2.JobPlacement{Domain: domain})
	}
	return &jobsetv1alpha2.Placement{Restarts: restarts, ReplicatedJobs: []jobsetv1alpha2.ReplicatedJobPlacement{entry}}
}

func placedAt(at *jobsetv1alpha2.Placement) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) { js.Status.Placement = at }
}

// TestPlacement shows for a set of two exclusive Jobs, and one that is not, which Jobs wait for a domain and what a
// decision does about them.
func TestPlacement(t *testing.T) {
	waits := &domains.Placed{Reason: "NoDomain", Message: "all are taken"}
	pending := withCondition(jobsetv1alpha2.PlacementPending, metav1.ConditionTrue, "NoDomain", "all are taken")
	for name, tc := range map[string]struct {
		set    []func(*jobsetv1alpha2.JobSet)
		jobs   []*batchv1.Job
		off    bool
		placed *domains.Placed
		// asks are the indexes of the Jobs that need a domain, creates and resumes are Jobs, each with its domain if it has one.
		asks, creates, resumes, deletes, condition, next string
	}{
		"nobody has answered yet":     {asks: "0 1", creates: "other-0"},
		"there is no room":            {placed: waits, asks: "0 1", creates: "other-0", condition: "True NoDomain all are taken"},
		"there are domains":           {placed: &domains.Placed{Placement: racks(0, 0, "a", "b")}, asks: "0 1", creates: "other-0", next: "0: a b"},
		"there are domains at last":   {set: []func(*jobsetv1alpha2.JobSet){pending}, placed: &domains.Placed{Placement: racks(0, 0, "a", "b")}, asks: "0 1", creates: "other-0", next: "0: a b", condition: "False Placed the jobs have their domains"},
		"the status holds them":       {set: []func(*jobsetv1alpha2.JobSet){placedAt(racks(0, 0, "a", "b"))}, creates: "w-0 a, w-1 b, other-0", next: "0: a b"},
		"they are of another attempt": {set: []func(*jobsetv1alpha2.JobSet){placedAt(racks(0, 0, "a", "b")), restarted(1, 1)}, asks: "0 1", creates: "other-0", next: "0: a b"},
		"they are of another attempt, which waits": {
			set: []func(*jobsetv1alpha2.JobSet){placedAt(racks(0, 0, "a", "b")), restarted(1, 1)}, placed: waits, asks: "0 1", creates: "other-0",
			condition: "True NoDomain all are taken",
		},
		"they are of another attempt, and nodes are not known": {
			set:    []func(*jobsetv1alpha2.JobSet){placedAt(racks(0, 0, "a", "b")), restarted(1, 1)},
			placed: &domains.Placed{Reason: "NodesUnknown", Message: "not known yet"}, asks: "0 1", creates: "other-0",
			condition: "True NodesUnknown not known yet", next: "0: a b",
		},
		"they are of another topology": {set: []func(*jobsetv1alpha2.JobSet){placedAt(racks(0, 0, "a", "b")), func(js *jobsetv1alpha2.JobSet) {
			js.Annotations[jobsetv1alpha2.ExclusiveKey] = "zone"
		}}, asks: "0 1", creates: "other-0", next: "0: a b"},
		"a Job was added": {set: []func(*jobsetv1alpha2.JobSet){placedAt(racks(0, 0, "a"))}, asks: "1", creates: "other-0", next: "0: a"},
		"a Job runs":      {jobs: []*batchv1.Job{jobNamed("w", 0)}, asks: "1", creates: "other-0"},
		"a Job has ended": {jobs: []*batchv1.Job{jobNamed("w", 1, succeeded)}, asks: "0", creates: "other-0"},
		"a Job of an earlier attempt ends": {
			set: []func(*jobsetv1alpha2.JobSet){restarted(1, 1)}, jobs: []*batchv1.Job{jobNamed("w", 0)}, asks: "0 1", creates: "other-0", deletes: "js-w-0",
		},
		"the set is suspended": {set: []func(*jobsetv1alpha2.JobSet){isSuspended}, creates: "w-0, w-1, other-0"},
		"the set is suspended, and gives its domains back": {
			set:     []func(*jobsetv1alpha2.JobSet){isSuspended, placedAt(racks(0, 0, "a", "b"))},
			jobs:    []*batchv1.Job{jobNamed("w", 0, jobIsSuspended), jobNamed("w", 1, jobIsSuspended), jobNamed("other", 0, jobIsSuspended)},
			creates: "",
		},
		"the set is suspended, and a Job runs still": {
			set:  []func(*jobsetv1alpha2.JobSet){isSuspended, placedAt(racks(0, 0, "a", "b"))},
			jobs: []*batchv1.Job{jobNamed("w", 0), jobNamed("w", 1, jobIsSuspended), jobNamed("other", 0, jobIsSuspended)}, next: "0: a b",
		},
		"suspended Jobs wait": {jobs: []*batchv1.Job{jobNamed("w", 0, jobIsSuspended), jobNamed("w", 1, jobIsSuspended)}, asks: "0 1", creates: "other-0"},
		"suspended Jobs are resumed in their domains": {
			set:  []func(*jobsetv1alpha2.JobSet){placedAt(racks(0, 0, "a", "b"))},
			jobs: []*batchv1.Job{jobNamed("w", 0, jobIsSuspended), jobNamed("w", 1, jobIsSuspended)}, resumes: "js-w-0 a, js-w-1 b", creates: "other-0", next: "0: a b",
		},
		"a suspended Job that cannot get affinities is replaced": {
			set:  []func(*jobsetv1alpha2.JobSet){placedAt(racks(0, 0, "", "b"))},
			jobs: []*batchv1.Job{jobNamed("w", 0, jobIsSuspended), jobNamed("w", 1, jobIsSuspended)}, resumes: "js-w-1 b", deletes: "js-w-0", creates: "other-0",
			next: "0:  b",
		},
		"a suspended Job that has affinities is resumed": {
			set:  []func(*jobsetv1alpha2.JobSet){placedAt(racks(0, 0, "", "b"))},
			jobs: []*batchv1.Job{jobNamed("w", 0, jobIsSuspended, attracting)}, resumes: "js-w-0", creates: "w-1 b, other-0", next: "0:  b",
		},
		"the feature is off": {off: true, creates: "w-0, w-1, other-0"},
		"nodes are set aside": {set: []func(*jobsetv1alpha2.JobSet){func(js *jobsetv1alpha2.JobSet) {
			js.Annotations[jobsetv1alpha2.NodeSelectorStrategyKey] = "true"
		}}, creates: "w-0, w-1, other-0"},
		"Kueue is to assign the topology": {set: []func(*jobsetv1alpha2.JobSet){func(js *jobsetv1alpha2.JobSet) {
			js.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations = map[string]string{"kueue.x-k8s.io/podset-required-topology": rack}
		}}, creates: "w-0, w-1, other-0"},
		"Kueue has assigned the topology of suspended Jobs": {
			set:  []func(*jobsetv1alpha2.JobSet){assignedByKueue},
			jobs: []*batchv1.Job{jobNamed("w", 0, jobIsSuspended), jobNamed("w", 1, jobIsSuspended)}, resumes: "js-w-0, js-w-1", creates: "other-0",
		},
		"Kueue takes over when the Jobs had domains": {
			set:  []func(*jobsetv1alpha2.JobSet){assignedByKueue, placedAt(racks(0, 0, "a", "b"))},
			jobs: []*batchv1.Job{jobNamed("w", 0, jobIsSuspended), jobNamed("w", 1, jobIsSuspended)}, resumes: "js-w-0, js-w-1", creates: "other-0", next: "0: a b",
		},
		"the set has finished": {set: []func(*jobsetv1alpha2.JobSet){completed, placedAt(racks(0, 0, "a", "b"))}, next: "0: a b"},
		"the set completes": {
			set:  []func(*jobsetv1alpha2.JobSet){pending, placedAt(racks(0, 0, "a", "b"))},
			jobs: []*batchv1.Job{jobNamed("w", 0, succeeded), jobNamed("w", 1, succeeded), jobNamed("other", 0, succeeded)},
			next: "0: a b", condition: "False JobSetCompleted jobset completed successfully",
		},
	} {
		t.Run(name, func(t *testing.T) {
			change := append([]func(*jobsetv1alpha2.JobSet){with("w", 2), with("other", 1), byRack, func(js *jobsetv1alpha2.JobSet) {
				js.Spec.ReplicatedJobs[1].Template.Annotations = map[string]string{jobsetv1alpha2.ExclusiveKey: ""}
			}}, tc.set...)
			o := observe(newSet(change...), tc.jobs...)
			o.Gates.ExclusivePlacement, o.Placed = !tc.off, hostplan.NotObtained[domains.Placed]()
			if tc.placed != nil {
				o.Placed = hostplan.Of(*tc.placed)
			}
			p := Decide(o)
			diff(t, "asks for", tc.asks, asked(unplacedJobs(o)))
			diff(t, "creates", tc.creates, createdAt(p))
			diff(t, "resumes", tc.resumes, resumedAt(p))
			diff(t, "deletes", tc.deletes, deletedNames(p))
			status := statusAfter(o, p)
			diff(t, "placement", tc.next, placementText(status.Placement))
			condition := ""
			if c := meta.FindStatusCondition(status.Conditions, jobsetv1alpha2.PlacementPending); c != nil {
				condition = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
			}
			diff(t, "condition", tc.condition, condition)
		})
	}
}

// TestSetThatWaitsForDomainsIsAtRest decides once more about a set whose status says already that it waits: nothing is due.
func TestSetThatWaitsForDomainsIsAtRest(t *testing.T) {
	set, waits := newSet(with("w", 2), byRack), domains.Placed{Reason: "NoDomain", Message: "all are taken"}
	for pass := range 2 {
		o := observe(set)
		o.Gates.ExclusivePlacement, o.Placed = true, hostplan.Of(waits)
		p := Decide(o)
		if p.RequeueAfter != 0 || len(p.CreateJobs) > 0 {
			t.Errorf("pass %d: due after %v, creates %q", pass, p.RequeueAfter, createdAt(p))
		}
		if out := Finish(o, p, Results{}); pass > 0 && (out.Status != nil || out.RequeueAfter != 0 || out.Continue) {
			t.Errorf("pass %d: due after %v, status %+v", pass, out.RequeueAfter, out.Status)
		}
		set.Status = *statusAfter(o, p)
	}
}

// assignedByKueue makes Kueue the one that assigns the topology of w.
func assignedByKueue(js *jobsetv1alpha2.JobSet) {
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/topology"}}
}

func asked(unplaced []domains.Unplaced) string {
	var out []string
	for _, u := range unplaced {
		for _, index := range u.Indexes {
			out = append(out, fmt.Sprint(index))
		}
	}
	return strings.Join(out, " ")
}

func createdAt(p Plan) string {
	var out []string
	for _, job := range p.CreateJobs {
		out = append(out, strings.TrimPrefix(strings.TrimSpace(job.Name+" "+job.Spec.Template.Spec.NodeSelector[rack]), "js-"))
	}
	return strings.Join(out, ", ")
}

func resumedAt(p Plan) string {
	var out []string
	for _, patch := range p.PatchJobs {
		if patch.Suspend == nil || *patch.Suspend {
			continue
		}
		domain := ""
		if patch.Directives != nil {
			domain = patch.Directives.NodeSelector[rack]
		}
		out = append(out, strings.TrimSpace(patch.Name+" "+domain))
	}
	return strings.Join(out, ", ")
}

func deletedNames(p Plan) string {
	var out []string
	for _, ref := range p.DeleteJobs {
		out = append(out, ref.Name)
	}
	return strings.Join(out, " ")
}

func placementText(at *jobsetv1alpha2.Placement) string {
	if at == nil {
		return ""
	}
	var domains []string
	for _, job := range at.ReplicatedJobs[0].Jobs {
		domains = append(domains, job.Domain)
	}
	return fmt.Sprintf("%d: %s", at.Restarts, strings.Join(domains, " "))
}

// TestPlacementByAffinity shows the pods of Jobs whose domains the scheduler chooses: those of one Job attract each
// other, and repel those of other Jobs of the same priority, in addition to what the template asks for.
func TestPlacementByAffinity(t *testing.T) {
	own := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
	o := observe(newSet(with("w", 1, func(rj *jobsetv1alpha2.ReplicatedJob) {
		rj.Template.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{own}}}
	}), byRack, placedAt(racks(0, -7, ""))))
	o.Gates.ExclusivePlacement = true
	job := Decide(o).CreateJobs[0]
	key := helper.JobKey("ns", "js-w-0")
	term := func(expressions ...metav1.LabelSelectorRequirement) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: rack, LabelSelector: &metav1.LabelSelector{MatchExpressions: expressions}, NamespaceSelector: &metav1.LabelSelector{}}
	}
	want := &corev1.Affinity{
		PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			own, term(metav1.LabelSelectorRequirement{Key: "jobset.sigs.k8s.io/job-key", Operator: "In", Values: []string{key}}),
		}},
		PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(
			metav1.LabelSelectorRequirement{Key: "jobset.sigs.k8s.io/job-key", Operator: "Exists"},
			metav1.LabelSelectorRequirement{Key: "jobset.sigs.k8s.io/job-key", Operator: "NotIn", Values: []string{key}},
			metav1.LabelSelectorRequirement{Key: "jobset.sigs.k8s.io/priority", Operator: "In", Values: []string{"n7"}},
		)}},
	}
	diff(t, "affinity", want, job.Spec.Template.Spec.Affinity)
	diff(t, "priority label", "n7", job.Spec.Template.Labels["jobset.sigs.k8s.io/priority"])
	diff(t, "annotation of the Job", "affinity", job.Annotations["jobset-apiserver.io/placement"])
	diff(t, "the set keeps its template", 1, len(o.JobSet.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution))
	if o.JobSet.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Affinity.PodAntiAffinity != nil {
		t.Error("the template of the set has changed")
	}
}

// TestSuspendedSetWithUnseenJobs suspends a set of which no cache shows a Job. It is suspended and gives its domains back, unless the API has
// one of the Jobs: that may run.
func TestSuspendedSetWithUnseenJobs(t *testing.T) {
	for name, tc := range map[string]struct {
		results []Creation
		waits   bool
	}{
		"all are created":           {results: []Creation{Created, Created}},
		"one is refused":            {results: []Creation{Created, Refused}},
		"one exists":                {results: []Creation{Created, Exists}, waits: true},
		"one had lost its labels":   {results: []Creation{LabelsRestored, Created}, waits: true},
		"another object has a name": {results: []Creation{NameTaken, Created}},
		"none is asked for":         {},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(with("w", 2), byRack, isSuspended, placedAt(racks(0, 0, "a", "b"))))
			o.Gates.ExclusivePlacement, o.Deferred = true, Deferred{UID: o.JobSet.UID, Times: before.Time}
			p := Decide(o)
			diff(t, "creates", "w-0 a, w-1 b", createdAt(p))
			out := Finish(o, p, Results{Creations: tc.results})
			if tc.waits {
				want := Outcome{Deferred: o.Deferred}
				diff(t, "what is stored, reported and remembered", want, Outcome{Status: out.Status, Events: out.Events, Deferred: out.Deferred})
				return
			}
			diff(t, "placement", "", placementText(out.Status.Placement))
			diff(t, "is suspended", true, meta.IsStatusConditionTrue(out.Status.Conditions, jobsetv1alpha2.JobSetSuspended))
		})
	}
}
