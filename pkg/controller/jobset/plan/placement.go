// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// Jobs with exclusive placement are created, and resumed, once the status of the set says where. So a placement is
// decided once for all Jobs, survives the controller, and is known to everybody before the first pod exists. A pass
// that decides it writes the status only.

const (
	reasonPlaced  = "Placed"
	messagePlaced = "the jobs have their domains"
)

// Unplaced are Jobs of one replicatedJob that may be neither created nor resumed before they have a domain.
type Unplaced struct {
	// Place is the place of the replicatedJob in the spec.
	Place int
	// Topology is the label of nodes whose values are the domains.
	Topology string
	// Indexes are the indexes of the Jobs, in order, and Restarts how often each of them alone was restarted.
	Indexes, Restarts []int32
}

// Placed is what became of the question for the domains of all unplaced Jobs.
type Placed struct {
	// Placement is the next status.placement; nil while the set waits.
	Placement *jobsetv1alpha2.Placement
	// Reason and Message say why the set waits, or why the scheduler chooses domains; empty if each Job has one.
	Reason, Message string
}

// AsksForPlacement reports whether a set has Jobs with exclusive placement.
func AsksForPlacement(js *jobsetv1alpha2.JobSet) bool {
	for i := range js.Spec.ReplicatedJobs {
		if helper.ExclusiveTopology(js, &js.Spec.ReplicatedJobs[i]) != "" {
			return true
		}
	}
	return false
}

// UnplacedJobs returns the Jobs that need a domain now; nil if there are none.
func UnplacedJobs(o Observed) []Unplaced {
	if !placeable(o) || !awaitsPlacement(o.JobSet) {
		return nil
	}
	o = indexed(o)
	return unplaced(o, classify(o))
}

// placeable reports whether Jobs of a set may be given domains.
func placeable(o Observed) bool {
	js := o.JobSet
	return o.Gates.ExclusivePlacement && js.DeletionTimestamp == nil && Ours(js) && !suspended(js) && finishedCondition(&js.Status) == nil
}

// awaitsPlacement reports whether the stored placement lacks Jobs. It is cheap, as it is asked about each set.
func awaitsPlacement(js *jobsetv1alpha2.JobSet) bool {
	counts := byName(js.Status.ReplicatedJobsStatus)
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		topology := helper.ExclusiveTopology(js, rj)
		if topology == "" {
			continue
		}
		at := placedJobs{topology, helper.PlacementOf(&js.Status, rj.Name, topology)}
		restarts := entryOf(counts, rj.Name).JobRestarts
		for index := range helper.Replicas(rj) {
			if !at.isFor(index, restartsOf(restarts, index)) {
				return true
			}
		}
	}
	return false
}

// unplaced returns the Jobs that do not run and have no place in the stored placement. Jobs that run stay where they are.
func unplaced(o Observed, owned children) (out []Unplaced) {
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
		next := Unplaced{Place: i, Topology: topology}
		at := o.index.placed[i]
		for index := range helper.Replicas(rj) {
			restarts := o.jobRestarts(i, index)
			if !at.isFor(index, restarts) && !started.Has(helper.JobName(js.Name, rj.Name, index)) {
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
	for _, jobs := range [][]*batchv1.Job{owned.succeeded, owned.failed, owned.active} {
		for _, job := range jobs {
			if job.DeletionTimestamp == nil && !jobSuspended(job) {
				names.Insert(job.Name)
			}
		}
	}
	return names
}

// place holds back the replicatedJobs whose Jobs need a domain, and notes what became of the question for it.
func (b *statusBuilder) place(owned children, open []bool) {
	js := b.o.JobSet
	if suspended(js) {
		if !mayStartPods(owned) {
			b.next.Placement = nil
		}
		b.endPlacement(reasonJobSetSuspended, messageSuspended)
		return
	}
	waits := unplaced(b.o, owned)
	for _, w := range waits {
		open[w.Place] = false
	}
	placed := b.o.Placed
	switch {
	case len(waits) == 0:
		if b.next.Placement != nil && b.next.Placement.Restarts != js.Status.Restarts {
			b.next.Placement = nil
		}
		b.endPlacement(reasonPlaced, messagePlaced)
	case placed == nil: // the answer is not there yet
	case placed.Placement == nil:
		b.set(jobsetv1alpha2.PlacementPending, metav1.ConditionTrue, placed.Reason, placed.Message)
	default:
		b.next.Placement = placed.Placement
		b.endPlacement(reasonPlaced, messagePlaced)
		if placed.Reason != "" {
			b.events = append(b.events, Event{Type: corev1.EventTypeNormal, Reason: placed.Reason, Note: placed.Message})
		}
	}
}

func (b *statusBuilder) endPlacement(reason, message string) {
	b.set(jobsetv1alpha2.PlacementPending, metav1.ConditionFalse, reason, message)
}

// placedJobs are the domains of the Jobs of one replicatedJob.
type placedJobs struct {
	topology string
	at       *jobsetv1alpha2.ReplicatedJobPlacement
}

func placementOf(o Observed, rj *jobsetv1alpha2.ReplicatedJob) placedJobs {
	topology := helper.ExclusiveTopology(o.JobSet, rj)
	if topology == "" || !o.Gates.ExclusivePlacement {
		return placedJobs{}
	}
	return placedJobs{topology, helper.PlacementOf(&o.JobSet.Status, rj.Name, topology)}
}

// domain returns that of a Job. If it is unknown although there is a placement, the scheduler chooses it.
func (p placedJobs) domain(index int32) string {
	if p.at == nil || int(index) >= len(p.at.Jobs) {
		return ""
	}
	return p.at.Jobs[index].Domain
}

// isFor reports whether the place of a Job was chosen for its present attempt, of the Job alone.
func (p placedJobs) isFor(index, restarts int32) bool {
	return p.at != nil && int(index) < len(p.at.Jobs) && p.at.Jobs[index].Restarts == restarts
}

// byScheduler reports whether the scheduler chooses the domain of a Job.
func (p placedJobs) byScheduler(index int32) bool { return p.at != nil && p.domain(index) == "" }

// mustBeReplaced reports whether a suspended Job cannot be resumed where it belongs: pods can be given a node selector
// then, but no affinity to each other, and no other group. Jobs that keep off other nodes than they should are rare,
// and are replaced too.
func mustBeReplaced(o Observed, job *batchv1.Job) bool {
	if avoidsOtherNodes(o, job) || groupedElsewhere(o, job) {
		return true
	}
	_, place := o.replicatedJob(replicatedJobOf(job))
	return job.Annotations[jobsetv1alpha2.PlacementKey] == "" && o.index.placed[place].byScheduler(jobIndex(job))
}

// replaced returns the suspended Jobs that are created once more instead of being resumed.
func replaced(o Observed, active []*batchv1.Job, open []bool) (out []*batchv1.Job) {
	for _, job := range active {
		if waitsToResume(o, job, open) && mustBeReplaced(o, job) {
			out = append(out, job)
		}
	}
	return out
}

// apply puts the pods of a Job where they belong. The template shares memory with those of other Jobs.
func (p placedJobs) apply(template *corev1.PodTemplateSpec, index int32) {
	if p.at != nil {
		template.Labels[jobsetv1alpha2.PriorityKey] = helper.PriorityLabel(p.at.Priority)
	}
	if p.topology == "" || template.Labels[jobsetv1alpha2.PriorityKey] == "" {
		return
	}
	if domain := p.domain(index); domain != "" {
		template.Spec.NodeSelector = merged(template.Spec.NodeSelector, map[string]string{p.topology: domain})
	}
	template.Spec.Affinity = p.affinity(template, p.byScheduler(index))
}

// affinity returns the affinity of the template with more terms: pods run without those of the same priority of other
// sets. Those of a Job whose domain the scheduler chooses run with those of their Job, and without those of all other
// Jobs.
func (p placedJobs) affinity(template *corev1.PodTemplateSpec, byScheduler bool) *corev1.Affinity {
	affinity := template.Spec.Affinity.DeepCopy()
	if affinity == nil {
		affinity = &corev1.Affinity{}
	}
	if affinity.PodAntiAffinity == nil {
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	term := func(expressions ...metav1.LabelSelectorRequirement) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{
			LabelSelector: &metav1.LabelSelector{MatchExpressions: expressions}, TopologyKey: p.topology, NamespaceSelector: &metav1.LabelSelector{},
		}
	}
	with := func(operator metav1.LabelSelectorOperator, key string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{template.Labels[key]}}
	}
	others := jobsetv1alpha2.JobSetUIDKey
	if byScheduler {
		others = jobsetv1alpha2.JobKey
		if affinity.PodAffinity == nil {
			affinity.PodAffinity = &corev1.PodAffinity{}
		}
		required := &affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*required = append(*required, term(with(metav1.LabelSelectorOpIn, jobsetv1alpha2.JobKey)))
	}
	required := &affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*required = append(*required, term(
		metav1.LabelSelectorRequirement{Key: jobsetv1alpha2.JobKey, Operator: metav1.LabelSelectorOpExists},
		with(metav1.LabelSelectorOpNotIn, others), with(metav1.LabelSelectorOpIn, jobsetv1alpha2.PriorityKey),
	))
	return affinity
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
