// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// The rules of worlds.
const (
	podsAlone           = "no pods of two exclusive Jobs of one priority and key run in one domain"
	domainsAlone        = "no two Jobs of one priority and key are given one domain"
	movesNothingThatRan = "a Job that ran is never moved"
	movesCountNothing   = "a move counts no restart"
	movesLate           = "a Job moves after its pods have waited, ever longer, and not while preemption makes room"
	keepsDomain         = "a Job keeps its domain in an attempt, unless it moves"
	suspendedHoldNone   = "suspended sets hold no domain"
	goesHome            = "a Job that runs elsewhere than its set says is created once more, unless a pod of it was ready"
	createdInPlace      = "Jobs are created, and resumed, where the status says"
	avoidsFew           = "at most a tenth of the nodes is avoided"
	avoidsInPods        = "pods keep off the nodes that their attempt avoids"
	forgetsLate         = "avoided nodes are forgotten once pods have waited"
	everySetFinishes    = "every set finishes"
	sameOutput          = "equal histories have equal results"
)

// worldRules check what is stored in a world, and where pods run.
type worldRules struct {
	*world
	// late means that a request of a controller that did not wait for it any more was carried out: two controllers may
	// have given one domain away.
	late bool
	// reached is what version the cache of pods had when it was decided that all pods of a set had reached an attempt, and podsSince
	// since which version pods exist.
	reached   map[reachedAttempt]string
	podsSince map[types.UID]int
}

func newWorldRules(w *world) *worldRules {
	return &worldRules{world: w, reached: map[reachedAttempt]string{}, podsSince: map[types.UID]int{}}
}

// bound checks where a pod is about to run.
func (r *worldRules) bound(pod *corev1.Pod, node *corev1.Node) {
	mine := r.exclusiveJob(pod)
	if mine == nil {
		return
	}
	key := topologyOf(r.setOf(mine), mine.Labels[jobsetv1alpha2.ReplicatedJobNameKey])
	for _, other := range r.pods.Objects {
		at, found := r.nodes.Get(other.Spec.NodeName)
		if !found || hasEnded(other) || at.Labels[key] != node.Labels[key] || *other.Spec.Priority != *pod.Spec.Priority {
			continue
		}
		if its := r.exclusiveJob(other); its != nil && its.UID != mine.UID && !r.mayMeet(mine, its, key, other.DeletionTimestamp != nil) {
			r.Fail(podsAlone, "%s and %s in %s", pod.Name, other.Name, node.Labels[key])
		}
	}
	r.Seen["pods of exclusive Jobs bound"]++
}

// mayMeet reports whether pods of two Jobs may meet in a domain: either the Jobs ask for domains of different kinds, or
// they are of one set and one of them leaves.
func (r *worldRules) mayMeet(mine, its *batchv1.Job, key string, stops bool) bool {
	if topologyOf(r.setOf(its), its.Labels[jobsetv1alpha2.ReplicatedJobNameKey]) != key {
		return true
	}
	return r.setOf(its) == r.setOf(mine) && (stops || r.leaves(its) || r.leaves(mine))
}

// exclusiveJob returns the Job of a pod if it asks for a domain; nil if not.
func (r *worldRules) exclusiveJob(pod *corev1.Pod) *batchv1.Job {
	job := r.jobOf(pod)
	if job == nil || r.setOf(job) == nil || topologyOf(r.setOf(job), job.Labels[jobsetv1alpha2.ReplicatedJobNameKey]) == "" {
		return nil
	}
	return job
}

// leaves reports whether a Job is about to be deleted.
func (r *worldRules) leaves(job *batchv1.Job) bool {
	js := r.setOf(job)
	left := false
	eachPlace(js.Status.Placement, func(at place2) { left = left || at.Moves != nil && at.Moves.ReplacedJob == job.UID })
	return left || job.DeletionTimestamp != nil || r.isElsewhere(js, job) || meaningOf(plan.Observed{JobSet: js, Gates: r.gates}, job) == previous
}

// isElsewhere reports whether a Job runs in another domain than its set says, and no pod of it was ready there.
func (r *worldRules) isElsewhere(js *jobsetv1alpha2.JobSet, job *batchv1.Job) bool {
	at, ok := placeOf(job)
	key := topologyOf(js, at.replicatedJob)
	if !ok || key == "" || jobIsSuspended(job) || ended(job) || job.Status.Succeeded+ptr.Deref(job.Status.Ready, 0) > 0 {
		return false
	}
	is := job.Spec.Template.Spec.NodeSelector[key]
	domain, placed := storedDomain(&js.Status, at, key)
	wasReady := false
	eachPlace(js.Status.Placement, func(here place2) {
		wasReady = wasReady || here.replicatedJob == at.replicatedJob && here.index == int(at.index) && here.Ready
	})
	return is != "" && placed && domain != is && !wasReady
}

// checkHome checks that Jobs that run elsewhere are created once more, unless something has to be stored first.
func (r *worldRules) checkHome(o plan.Observed, p plan.Plan) {
	was, is := &o.JobSet.Status, p.Status
	if is != nil && !(is.Restarts == was.Restarts && equality.Semantic.DeepEqual(is.Placement, was.Placement) && equality.Semantic.DeepEqual(is.Attempts, was.Attempts)) {
		return
	}
	for _, seen := range o.Jobs {
		job, found := r.jobs.Get(seen.Name)
		if !found || job.UID != seen.UID || jobIsSuspended(seen) || isSuspended(o.JobSet) || seen.DeletionTimestamp != nil {
			continue
		}
		then := *job
		then.Status = seen.Status
		sent := slices.ContainsFunc(p.DeleteJobs, func(ref plan.JobRef) bool { return ref.UID == job.UID })
		if meaningOf(o, seen) == active && r.isElsewhere(o.JobSet, &then) && !sent {
			r.Fail(goesHome, "job %s runs in %v%s", job.Name, job.Spec.Template.Spec.NodeSelector, describePlacement(&o.JobSet.Status))
		}
	}
}

// decided counts what decisions are about.
func (r *worldRules) decided(o plan.Observed, p plan.Plan) {
	r.Seen["decisions"]++
	r.checkHome(o, p)
	if r.inPlace {
		r.decidedInPlace(o, p)
	}
	placed, known := o.Placed.Get()
	if known && placed.Placement == nil {
		r.Seen["waits for a domain"]++
	}
	if placed.Placement != nil && placed.Reason != "" {
		r.Seen["sets placed by the scheduler"]++
	}
	for _, event := range p.Events {
		switch event.Reason {
		case "JobMoved", "NodesAvoided", "AvoidedNodesForgotten":
			r.Seen["events "+event.Reason]++
		}
	}
}

// stored checks a status right before it is stored.
func (r *worldRules) stored(o worldObserved, js, next *jobsetv1alpha2.JobSet, known bool) {
	before, after := &js.Status, &next.Status
	r.Seen["restarts of sets"] += int(after.Restarts - before.Restarts)
	r.Seen["restarts of single Jobs"] += int(max(0, jobRestartsOf(after)-jobRestartsOf(before)))
	if r.inPlace {
		r.storedInPlace(o, js, after)
	}
	d := decision{Observed: o.Observed, before: before, after: after}
	stopped := isSuspended(o.JobSet) && conditionIs(before, jobsetv1alpha2.JobSetSuspended) && !mayStartPods(o.Observed) && !finished(before)
	if stopped && !d.moved() && after.Placement != nil {
		r.Fail(suspendedHoldNone, "%s%s", js.Name, describePlacement(after))
	}
	if after.Restarts == before.Restarts {
		r.checkPlaces(o.Observed, before, after)
	}
	if holdsPlaces(next) && !r.late && !r.elastic() { // what the scheduler has chosen is known later
		r.checkAlone(next)
	}
	r.checkAvoided(o.Observed, before, after, known)
}

// checkPlaces compares where Jobs were and will be.
func (r *worldRules) checkPlaces(o plan.Observed, before, after *jobsetv1alpha2.JobSetStatus) {
	type job struct {
		replicatedJob string
		index         int
		restarts      int32
	}
	was := map[job]place2{}
	if before.Placement != nil && before.Placement.Restarts == before.Restarts {
		eachPlace(before.Placement, func(at place2) { was[job{at.replicatedJob, at.index, at.Restarts}] = at })
	}
	if after.Placement == nil || after.Placement.Restarts != after.Restarts {
		return
	}
	eachPlace(after.Placement, func(at place2) {
		old, found := was[job{at.replicatedJob, at.index, at.Restarts}]
		switch {
		case !found:
		case at.Moves != nil && (old.Moves == nil || at.Moves.ReplacedJob != old.Moves.ReplacedJob):
			r.checkMove(o, old, after)
		case at.Domain != old.Domain && !follows(o, before, after, old, at):
			r.Fail(keepsDomain, "%s-%d was in %s, is in %s", at.replicatedJob, at.index, old.Domain, at.Domain)
		}
	})
}

// follows reports whether a Job has another domain next because a Job of the set works in another one than the set said: either it is this
// Job, or it leaves its domain to this one, which has not run.
func follows(o plan.Observed, before, after *jobsetv1alpha2.JobSetStatus, old, at place2) bool {
	was := map[string]string{}
	key := func(at place2) string { return fmt.Sprint(at.topology, at.replicatedJob, at.index) }
	eachPlace(before.Placement, func(at place2) { was[key(at)] = at.Domain })
	follows := false
	eachPlace(after.Placement, func(worker place2) {
		from := was[key(worker)]
		works := slices.ContainsFunc(o.Jobs, func(job *batchv1.Job) bool {
			its, ok := placeOf(job)
			same := ok && its.replicatedJob == worker.replicatedJob && int(its.index) == worker.index && !jobIsSuspended(job)
			return same && job.Spec.Template.Spec.NodeSelector[worker.topology] == worker.Domain && from != worker.Domain
		})
		follows = follows || works && (key(worker) == key(at) || !old.Ready && (at.Domain == from || old.Domain == from))
	})
	return follows
}

// checkMove checks that a Job may leave where it was.
func (r *worldRules) checkMove(o plan.Observed, old place2, after *jobsetv1alpha2.JobSetStatus) {
	r.Seen["moves"]++
	name := fmt.Sprintf("%s-%s-%d", o.JobSet.Name, old.replicatedJob, old.index)
	i := slices.IndexFunc(o.Jobs, func(job *batchv1.Job) bool { return job.Name == name })
	switch {
	case jobRestartsOf(after) != jobRestartsOf(&o.JobSet.Status):
		r.Fail(movesCountNothing, "job %s", name)
	case i < 0:
		r.Fail(movesLate, "job %s does not exist", name)
	case old.Ready || isReady(o.Jobs[i]):
		r.Fail(movesNothingThatRan, "job %s", name)
	}
	wait := 5 * time.Minute
	if old.Moves != nil {
		wait = min(wait<<len(old.Moves.Left), time.Hour)
	}
	if w := o.Waiting[o.Jobs[i].UID]; w.Since.IsZero() || w.Nominated || o.Now.Sub(w.Since) < wait {
		r.Fail(movesLate, "job %s: %+v at %s", name, w, o.Now)
	}
}

// holdsPlaces reports whether a set has domains.
func holdsPlaces(js *jobsetv1alpha2.JobSet) bool {
	return js.Status.Placement != nil && js.DeletionTimestamp == nil && !finished(&js.Status)
}

// checkAlone looks for two Jobs with one domain.
func (r *worldRules) checkAlone(next *jobsetv1alpha2.JobSet) {
	for _, other := range r.sets.Objects {
		if other.Name == next.Name {
			other = next
		}
		if !holdsPlaces(other) {
			continue
		}
		eachPlace(next.Status.Placement, func(a place2) {
			eachPlace(other.Status.Placement, func(b place2) {
				if r.isByScheduler(next, a) || r.isByScheduler(other, b) {
					return // known later
				}
				same := a.topology == b.topology && a.Domain == b.Domain && a.priority == b.priority
				if same && !isBeingPlaced(next, a) && !isBeingPlaced(other, b) && (other != next || !mayShare(next, a, b)) {
					r.Fail(domainsAlone, "%s-%s-%d and %s-%s-%d in %s", next.Name, a.replicatedJob, a.index, other.Name, b.replicatedJob, b.index, a.Domain)
				}
			})
		})
	}
}

// mayShare reports whether two Jobs of a set are one, or run one after the other.
func mayShare(js *jobsetv1alpha2.JobSet, a, b place2) bool {
	follows := func(name, other string) bool {
		return slices.ContainsFunc(replicatedJob(js, name).DependsOn, func(d jobsetv1alpha2.DependsOn) bool {
			return d.Name == other && d.Status == jobsetv1alpha2.DependencyComplete
		})
	}
	return a.replicatedJob == b.replicatedJob && a.index == b.index || follows(a.replicatedJob, b.replicatedJob) || follows(b.replicatedJob, a.replicatedJob)
}

// isBeingPlaced reports whether a place is one of an earlier attempt. The Job has been given another one, or is about to.
func isBeingPlaced(js *jobsetv1alpha2.JobSet, at place2) bool {
	return js.Status.Placement.Restarts != js.Status.Restarts || at.Restarts != jobRestarts(&js.Status, at.replicatedJob, int32(at.index))
}
