// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
)

// Jobs with exclusive placement are created, and resumed, once the status of the set says where. So a placement is
// decided once for all Jobs, survives the controller, and is known to everybody before the first pod exists. A pass
// that decides it writes the status only.

const (
	reasonPlaced  = helper.ReasonPlaced
	messagePlaced = "the jobs have their domains"
)

// placeable reports whether Jobs of a set may be given domains.
func placeable(o Observed) bool {
	js := o.JobSet
	return o.Gates.ExclusivePlacement && js.DeletionTimestamp == nil && ManagedHere(js) && !suspended(js) &&
		finishedCondition(&js.Status) == nil
}

// awaitsPlacement reports whether the stored placement lacks Jobs. It is cheap, as it is asked about each set.
func awaitsPlacement(js *jobsetv1alpha2.JobSet) bool {
	counts := byName(js.Status.ReplicatedJobsStatus)
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		at := domains.Of(js, rj)
		if at.Topology == "" {
			continue
		}
		restarts := entryOf(counts, rj.Name).JobRestarts
		for index := range helper.Replicas(rj) {
			if !at.IsFor(index, restartsOf(restarts, index)) {
				return true
			}
		}
	}
	return false
}

// unplaced returns the Jobs that do not run and have no place in the stored placement. Jobs that run stay where they are.
func unplaced(o Observed, owned children) (out []domains.Unplaced) {
	js := o.JobSet
	if !o.Gates.ExclusivePlacement {
		return nil
	}
	var started sets.Set[string]
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		topology := helper.ExclusiveTopology(js, rj)
		if topology == "" {
			continue
		}
		if started == nil {
			started = startedNames(owned)
		}
		next := domains.Unplaced{Place: i, Topology: topology}
		at := o.index.placed[i]
		for index := range helper.Replicas(rj) {
			restarts := o.jobRestarts(i, index)
			if !at.IsFor(index, restarts) && !started.Has(helper.JobName(js.Name, rj.Name, index)) {
				next.Indexes, next.Restarts = append(next.Indexes, index), append(next.Restarts, restarts)
			}
		}
		if len(next.Indexes) > 0 {
			out = append(out, next)
		}
	}
	return out
}

// startedNames returns the names of the Jobs of the current attempt that need no domain: they run, or have ended.
func startedNames(owned children) sets.Set[string] {
	names := sets.New[string]()
	for _, jobs := range [][]*batchv1.Job{owned.succeeded, owned.failed, jobsOf(owned.active)} {
		for _, job := range jobs {
			if job.DeletionTimestamp == nil && !jobSuspended(job) {
				names.Insert(job.Name)
			}
		}
	}
	return names
}

// askDomains asks for the domains of Jobs that have none. Domains depend on the nodes that pods keep off, which are stored first.
func askDomains(s state) (c changes) {
	if !placeable(s.Observed) || !awaitsPlacement(s.JobSet) {
		return changes{}
	}
	waits := unplaced(s.Observed, s.owned)
	c.plan.AwaitsDomains = len(waits) > 0
	if !c.plan.AwaitsDomains {
		return c
	}
	if nodes, open := avoidance(s.Observed, &s.JobSet.Status); s.Placed.Open() && len(nodes) == 0 && !open {
		runs := running(&s.Observed, s.owned)
		for i := range waits {
			waits[i].Running = runs
		}
		c.plan.Asks.Unplaced = waits
	} else {
		c.plan.Asks.Nodes = open
	}
	return c
}

// awaitDomain returns which Jobs wait for a domain: all those of a replicatedJob that lacks one.
func awaitDomain(s state) wait {
	w := wait{reason: awaitsDomain}
	if !suspended(s.JobSet) {
		for _, lacks := range unplaced(s.Observed, s.owned) {
			w.replicatedJobs = append(w.replicatedJobs, lacks.Place)
		}
	}
	w.changes = placement(s, len(w.replicatedJobs) > 0)
	return w
}

// placement returns what became of the question for the domains of Jobs, of which some may wait.
func placement(s state, waits bool) changes {
	const pending = jobsetv1alpha2.PlacementPending
	if suspended(s.JobSet) {
		c := reports(over(pending, reasonJobSetSuspended, messageSuspended))
		if !mayStartPods(s.owned) {
			c.edits = []edit{setPlacement(nil)}
		}
		return c
	}
	placed, known := s.Placed.Get()
	switch {
	case !waits:
		return reports(over(pending, reasonPlaced, messagePlaced)).and(endPlacement(s))
	case !known: // the answer is not there yet
		return changes{}
	case placed.Placement == nil:
		c := reports(hostplan.Trouble{Type: pending, Reason: placed.Reason, Message: placed.Message})
		if placed.Reason == helper.ReasonNoDomain {
			// Two sets that wait for the domains of their attempts before would wait for each other.
			c = c.and(endPlacement(s))
		}
		return c
	}
	c := reports(over(pending, reasonPlaced, messagePlaced))
	c.edits = []edit{setPlacement(placed.Placement)}
	if placed.Reason != "" {
		c.events = []Event{{Type: corev1.EventTypeNormal, Reason: placed.Reason, Note: placed.Message}}
	}
	return c
}

// endPlacement gives the domains of an earlier attempt back.
func endPlacement(s state) (c changes) {
	if s.next.Placement != nil && s.next.Placement.Restarts != s.JobSet.Status.Restarts {
		c.edits = []edit{setPlacement(nil)}
	}
	return c
}

func setPlacement(at *jobsetv1alpha2.Placement) edit {
	return func(next *jobsetv1alpha2.JobSetStatus) { next.Placement = at }
}

// domainsOf returns the domains of the Jobs of a replicatedJob; none without the feature.
func domainsOf(o Observed, rj *jobsetv1alpha2.ReplicatedJob) domains.Jobs {
	if !o.Gates.ExclusivePlacement {
		return domains.Jobs{}
	}
	return domains.Of(o.JobSet, rj)
}

// mustBeReplaced reports whether a suspended Job cannot be resumed where it belongs: pods can be given a node selector
// then, but no affinity to each other, and no other group. Jobs that keep off other nodes than they should are rare,
// and are replaced too.
func mustBeReplaced(o *Observed, job child) bool {
	if avoidsOtherNodes(o, job.Job) || groupedElsewhere(o, job) {
		return true
	}
	return job.Annotations[jobsetv1alpha2.PlacementKey] == "" && o.index.placed[job.place].ByScheduler(job.index)
}

// replaced returns the suspended Jobs that are created once more instead of being resumed.
func replaced(o Observed, active []child, w waits) (out []*batchv1.Job) {
	for _, job := range active {
		if w.resumes(&o, job) && mustBeReplaced(&o, job) {
			out = append(out, job.Job)
		}
	}
	return out
}

// labelPriority puts the priority of the pods on them if it is known, so that those of exclusive Jobs of other sets can repel them.
func labelPriority(o Observed, template *corev1.PodTemplateSpec) {
	priority, known := o.Priorities[template.Spec.PriorityClassName]
	if template.Spec.Priority != nil {
		priority, known = *template.Spec.Priority, o.Priorities != nil
	}
	if known {
		template.Labels[jobsetv1alpha2.PriorityKey] = helper.PriorityLabel(priority)
	}
}
