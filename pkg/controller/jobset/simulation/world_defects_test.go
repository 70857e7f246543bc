// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	planinplace "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/inplace"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// worldMutant is how the controller of a world decides and acts: as it really does, or with a defect that must not go unnoticed.
type worldMutant struct {
	decide func(*worldProcess, plan.Observed) plan.Plan
	// wrap returns what a Syncer takes for the placer.
	wrap func(*worldProcess, jobset.Placer) jobset.Placer
	// cached returns what the cache shows of a set.
	cached func(*worldProcess, *jobsetv1alpha2.JobSet) *jobsetv1alpha2.JobSet
	// oblivious controllers do not know which sets hold domains, and deaf ones do not notice when these become free.
	oblivious, deaf bool
	// domainless ones do not see in which domains Jobs run.
	domainless bool
	// miscounting ones think that there are more nodes.
	miscounting bool
	// inPlace means that sets restart in place.
	inPlace bool
	// uncounted are changes of pods that are not counted, unheard ones of which sets hear nothing; counts changes what was counted.
	uncounted func(pod *corev1.Pod, gone bool) bool
	unheard   bool
	counts    func(map[types.UID]planinplace.State)
	// stale agents begin with what their predecessor has seen of the set. Hasty ones let their workers run as soon as they have an
	// attempt, and unsaying ones say none any more when they restart.
	stale, hasty, unsaying bool
}

// changing is a controller that does something else than what is decided.
func changing(does func(*worldProcess, plan.Observed, *plan.Plan)) worldMutant {
	return worldMutant{decide: func(p *worldProcess, o plan.Observed) plan.Plan {
		out := plan.Decide(o)
		does(p, o, &out)
		return out
	}}
}

// misplacer is a placer with a defect.
type misplacer struct {
	jobset.Placer
	place func(jobset.Placer, context.Context, *jobsetv1alpha2.JobSet, []domains.Unplaced) (*domains.Placed, error)
	move  func(jobset.Placer, context.Context, *jobsetv1alpha2.JobSet, []domains.Stuck) (domains.Moving, error)
}

func (m misplacer) Place(ctx context.Context, js *jobsetv1alpha2.JobSet, unplaced []domains.Unplaced) (*domains.Placed, error) {
	if m.place == nil {
		return m.Placer.Place(ctx, js, unplaced)
	}
	return m.place(m.Placer, ctx, js, unplaced)
}

func (m misplacer) Move(ctx context.Context, js *jobsetv1alpha2.JobSet, stuck []domains.Stuck) (domains.Moving, error) {
	if m.move == nil {
		return m.Placer.Move(ctx, js, stuck)
	}
	return m.move(m.Placer, ctx, js, stuck)
}

// moving is a controller whose placer is told something else about stuck Jobs.
func moving(change func(*worldProcess, []domains.Stuck) []domains.Stuck) worldMutant {
	return worldMutant{wrap: func(p *worldProcess, real jobset.Placer) jobset.Placer {
		return misplacer{Placer: real, move: func(real jobset.Placer, ctx context.Context, js *jobsetv1alpha2.JobSet, stuck []domains.Stuck) (domains.Moving, error) {
			return real.Move(ctx, js, change(p, slices.Clone(stuck)))
		}}
	}}
}

// placing is a controller with another way to place Jobs.
func placing(place func(jobset.Placer, context.Context, *jobsetv1alpha2.JobSet, []domains.Unplaced) (*domains.Placed, error)) worldMutant {
	return worldMutant{wrap: func(_ *worldProcess, real jobset.Placer) jobset.Placer { return misplacer{Placer: real, place: place} }}
}

// forgetGiven drops what was given before a status has it.
func forgetGiven(real jobset.Placer, ctx context.Context, js *jobsetv1alpha2.JobSet, unplaced []domains.Unplaced) (*domains.Placed, error) {
	placed, err := real.Place(ctx, js, unplaced)
	real.Withdraw(cache.MetaObjectToName(js))
	return placed, err
}

// byStage places the Jobs of a replicatedJob when they may start.
func byStage(p *worldProcess, real jobset.Placer) jobset.Placer {
	return misplacer{Placer: real, place: func(real jobset.Placer, ctx context.Context, js *jobsetv1alpha2.JobSet, unplaced []domains.Unplaced) (*domains.Placed, error) {
		o := plan.Observed{JobSet: js, Jobs: ownedBy(js.UID, p.jobs.Objects), Gates: p.gates}
		later := func(name string) bool { return !mayStart(o, name) }
		unplaced = slices.DeleteFunc(slices.Clone(unplaced), func(u domains.Unplaced) bool { return later(js.Spec.ReplicatedJobs[u.Place].Name) })
		if len(unplaced) == 0 {
			return nil, nil
		}
		if js.Status.Placement != nil {
			real.Withdraw(cache.MetaObjectToName(js)) // the status holds what was given
		}
		placed, err := real.Place(ctx, js, unplaced)
		if placed == nil || placed.Placement == nil {
			return placed, err
		}
		out := *placed
		out.Placement = placed.Placement.DeepCopy()
		out.Placement.ReplicatedJobs = slices.DeleteFunc(out.Placement.ReplicatedJobs, func(rj jobsetv1alpha2.ReplicatedJobPlacement) bool {
			return later(rj.Name) && !slices.ContainsFunc(unplaced, func(u domains.Unplaced) bool { return js.Spec.ReplicatedJobs[u.Place].Name == rj.Name })
		})
		return &out, err
	}}
}

// recount counts a move as a restart of the Job.
func recount(_ *worldProcess, o plan.Observed, out *plan.Plan) {
	m := o.Moving.Value().Move
	if m == nil || out.Status == nil || !o.Gates.RestartJob {
		return
	}
	moved := false
	eachPlace(out.Status.Placement, func(at place2) { moved = moved || at.Moves != nil && at.Moves.ReplacedJob == m.UID })
	if !moved {
		return
	}
	out.Status = out.Status.DeepCopy()
	for i := range out.Status.ReplicatedJobsStatus {
		counters := &out.Status.ReplicatedJobsStatus[i]
		if rj := replicatedJob(o.JobSet, counters.Name); rj != nil {
			counters.JobRestarts = append(counters.JobRestarts, make([]int32, max(0, int(helper.Replicas(rj))-len(counters.JobRestarts)))...)
			counters.JobRestarts[0]++
		}
	}
}

// keepSuspended lets a suspended set keep its domains.
func keepSuspended(_ *worldProcess, o plan.Observed, out *plan.Plan) {
	if out.Status != nil && out.Status.Placement == nil && isSuspended(o.JobSet) {
		out.Status.Placement = o.JobSet.Status.Placement
	}
}

// eachCreated changes the Jobs that are created.
func eachCreated(change func(*batchv1.Job)) worldMutant {
	return changing(func(_ *worldProcess, _ plan.Observed, out *plan.Plan) {
		for i, job := range out.CreateJobs {
			out.CreateJobs[i] = job.DeepCopy()
			change(out.CreateJobs[i])
		}
	})
}

// readyAgain lets Jobs that have run move too.
func readyAgain(p *worldProcess, stuck []domains.Stuck) []domains.Stuck {
	js := p.sets.Objects
	for _, job := range p.jobs.Objects {
		i := slices.IndexFunc(js, func(js *jobsetv1alpha2.JobSet) bool { return js.Name == job.Labels[jobsetv1alpha2.JobSetNameKey] })
		at, ok := placeOf(job)
		if !ok || i < 0 || !isReady(job) || jobIsSuspended(job) || len(stuck) > 0 && stuck[0].UID == job.UID {
			continue
		}
		eachPlace(js[i].Status.Placement, func(here place2) {
			if here.replicatedJob == at.replicatedJob && here.index == int(at.index) && js[i].Status.Placement.Restarts == at.restarts && here.Ready {
				stuck = append(stuck, domains.Stuck{
					Waiting: domains.Waiting{Since: p.Now().Add(-10 * time.Hour)}, Place: slices.Index(replicatedJobNames(js[i]), at.replicatedJob), Index: at.index,
					UID: job.UID, Topology: here.topology, At: here.JobPlacement,
				})
			}
		})
	}
	return stuck
}

// forgetfulOfPlaces has controllers lose placements when they start.
func forgetfulOfPlaces(p *worldProcess, js *jobsetv1alpha2.JobSet) *jobsetv1alpha2.JobSet {
	if p.synced > 10 || p.Seen["starts of the controller"] < 2 {
		return js
	}
	js = js.DeepCopy()
	js.Status.Placement = nil
	return js
}

// TestWorldsShowDefects makes sure that worlds can fail, and by which rule.
func TestWorldsShowDefects(t *testing.T) {
	worlds.ShowDefects(t, worlds.Number, map[string]simulation.Defect[worldMutant]{
		"domains of others that are unknown":     {Mutant: worldMutant{oblivious: true}, Rules: []string{domainsAlone}},
		"domains that are given twice":           {Mutant: placing(forgetGiven), Rules: []string{domainsAlone}},
		"domains that are placed by stage":       {Mutant: worldMutant{wrap: byStage}, Rules: []string{everySetFinishes}, First: 131},
		"domains that become free unnoticed":     {Mutant: worldMutant{deaf: true}, Rules: []string{everySetFinishes}},
		"placements that a restart loses":        {Mutant: worldMutant{cached: forgetfulOfPlaces}, Rules: []string{keepsDomain}},
		"suspended sets that keep their domains": {Mutant: changing(keepSuspended), Rules: []string{suspendedHoldNone}},
		"moves that count as restarts":           {Mutant: changing(recount), Rules: []string{movesCountNothing}},
		"moves of what has run":                  {Mutant: moving(readyAgain), Rules: []string{movesNothingThatRan}},
		"avoided nodes that are never forgotten": {Mutant: changing(neverForget), Rules: []string{everySetFinishes}, First: 872},
		"more avoided nodes than a tenth":        {Mutant: worldMutant{miscounting: true}, Rules: []string{avoidsFew}},
		"avoided nodes that pods do not know of": {Mutant: eachCreated(func(job *batchv1.Job) { withoutNodeAffinity(job) }), Rules: []string{avoidsInPods}},
		"Jobs that are created anywhere":         {Mutant: eachCreated(func(job *batchv1.Job) { job.Spec.Template.Spec.NodeSelector = nil }), Rules: []string{createdInPlace}},
		"pods that do not repel those of others": {Mutant: eachCreated(func(job *batchv1.Job) { withoutAntiAffinity(job) }), Rules: []string{podsAlone}},
		"an answer that depends on chance":       {Mutant: worldMutant{wrap: moody}, Rules: []string{sameOutput}},
		"Jobs that run elsewhere":                {Mutant: worldMutant{domainless: true}, Rules: []string{goesHome}},
		"Jobs that move at once": {Mutant: moving(func(_ *worldProcess, stuck []domains.Stuck) []domains.Stuck {
			for i := range stuck {
				stuck[i].Since = stuck[i].Since.Add(-time.Hour)
			}
			return stuck
		}), Rules: []string{movesLate}},
		"Jobs that never move": {Mutant: moving(func(*worldProcess, []domains.Stuck) []domains.Stuck { return nil }), Rules: []string{everySetFinishes}, First: 3_774},
	})
}

func withoutNodeAffinity(job *batchv1.Job) {
	if affinity := job.Spec.Template.Spec.Affinity; affinity != nil {
		affinity.NodeAffinity = nil
	}
}

func withoutAntiAffinity(job *batchv1.Job) {
	if affinity := job.Spec.Template.Spec.Affinity; affinity != nil {
		affinity.PodAntiAffinity = nil
	}
}

// neverForget keeps nodes avoided whatever pods wait for.
func neverForget(_ *worldProcess, o plan.Observed, out *plan.Plan) {
	if out.Status != nil && len(out.Status.Attempts) > 0 {
		out.Status.Attempts[len(out.Status.Attempts)-1].ForgetTime = nil
	}
}

// moody does not answer one of three questions, whatever the history.
func moody(p *worldProcess, real jobset.Placer) jobset.Placer {
	return misplacer{Placer: real, place: func(real jobset.Placer, ctx context.Context, js *jobsetv1alpha2.JobSet, unplaced []domains.Unplaced) (*domains.Placed, error) {
		if rand.IntN(3) == 0 {
			p.enqueue(js.Name)
			return nil, nil
		}
		return real.Place(ctx, js, unplaced)
	}}
}
