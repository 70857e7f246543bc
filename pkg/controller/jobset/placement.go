// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"fmt"

	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/placer"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
)

// Placer finds topology domains for Jobs with exclusive placement.
type Placer interface {
	// Place returns what became of the question for the domains of unplaced Jobs; nil while that is not known.
	Place(ctx context.Context, js *jobsetv1alpha2.JobSet, unplaced []domains.Unplaced) (*domains.Placed, error)
	// Move returns to which domain one of the Jobs goes whose pods get no nodes, and when to ask again. It is asked each
	// time the set is looked at, also without such Jobs.
	Move(ctx context.Context, js *jobsetv1alpha2.JobSet, stuck []domains.Stuck) (domains.Moving, error)
	// Locate returns the domains of the nodes on which pods of Jobs are, and when to ask again if one is not known.
	Locate(js *jobsetv1alpha2.JobSet, jobs []domains.Unlocated) domains.Located
	// Withdraw is called for a set that needs no domain now, and Forget for one that is gone.
	Withdraw(key cache.ObjectName)
	Forget(key cache.ObjectName)
}

// noPlacer is for controllers without exclusive placement.
type noPlacer struct{}

func (noPlacer) Place(context.Context, *jobsetv1alpha2.JobSet, []domains.Unplaced) (*domains.Placed, error) {
	return nil, nil
}

func (noPlacer) Move(context.Context, *jobsetv1alpha2.JobSet, []domains.Stuck) (domains.Moving, error) {
	return domains.Moving{}, nil
}

func (noPlacer) Locate(*jobsetv1alpha2.JobSet, []domains.Unlocated) domains.Located {
	return domains.Located{}
}

func (noPlacer) Withdraw(cache.ObjectName) {}

func (noPlacer) Forget(cache.ObjectName) {}

// answerDomains adds what became of the question for the domains of Jobs that have none, and the domains that the scheduler has chosen.
func (s *Syncer) answerDomains(ctx context.Context, obs *plan.Observed, asks *plan.Asks) error {
	if len(asks.Unplaced) > 0 {
		placed, err := s.deps.Placer.Place(ctx, obs.JobSet, asks.Unplaced)
		if err != nil {
			return err
		}
		obs.Placed = hostplan.Obtained(ptr.Deref(placed, domains.Placed{}), placed != nil)
	}
	if len(asks.Unlocated) == 0 {
		return nil
	}
	var landed []domains.Unlocated
	for _, job := range asks.Unlocated {
		node, err := s.deps.Caches.Landed(job.UID)
		if err != nil {
			return err
		}
		if job.Node = node; node != "" {
			landed = append(landed, job)
		}
	}
	if obs.Located = hostplan.None[domains.Located](); len(landed) > 0 {
		obs.Located = hostplan.Of(s.deps.Placer.Locate(obs.JobSet, landed))
	}
	return nil
}

// answerMoves adds the Job that leaves its domain.
func (s *Syncer) answerMoves(ctx context.Context, obs *plan.Observed, asks *plan.Asks) error {
	if len(asks.Stuck) == 0 {
		return nil
	}
	moving, err := s.deps.Placer.Move(ctx, obs.JobSet, asks.Stuck)
	if err == nil {
		obs.Moving = hostplan.Of(moving)
	}
	return err
}

// unask has the placer forget what the set has asked for and does not need any more.
func (s *Syncer) unask(ctx context.Context, obs *plan.Observed, p plan.Plan) error {
	if !p.AwaitsDomains {
		s.deps.Placer.Withdraw(cache.MetaObjectToName(obs.JobSet))
	}
	if !obs.Gates.ExclusivePlacement || !obs.Moving.Open() {
		return nil
	}
	_, err := s.deps.Placer.Move(ctx, obs.JobSet, nil)
	return err
}

// Landed returns a node on which a pod of a Job is whose domain the scheduler chooses; empty if there is none.
func (c caches) Landed(job types.UID) (node string, err error) {
	objs, err := c.pods.ByIndex(indexLanded, string(job))
	if err != nil {
		return "", fmt.Errorf("listing pods of job %s: %w", job, err)
	}
	for _, obj := range objs {
		if pod, ok := obj.(*watchedPod); ok && (node == "" || pod.node.Value() < node) {
			node = pod.node.Value()
		}
	}
	return node, nil
}

// Waiting returns the pods of the set for which the scheduler finds no node, by the UID of their Job.
func (c caches) Waiting(key cache.ObjectName) (map[types.UID]domains.Waiting, error) {
	objs, err := c.pods.ByIndex(indexUnschedulable, key.String())
	if err != nil {
		return nil, fmt.Errorf("listing unschedulable pods of jobset %s: %w", key, err)
	}
	waiting := map[types.UID]domains.Waiting{}
	for _, obj := range objs {
		pod, ok := obj.(*watchedPod)
		if !ok {
			continue
		}
		w := waiting[pod.JobUID()]
		if since := pod.UnschedulableSince(); w.Since.IsZero() || since.Before(w.Since) {
			w.Since, w.Reason = since, pod.Reason()
		}
		w.Nominated = w.Nominated || pod.Nominated()
		waiting[pod.JobUID()] = w
	}
	return waiting, nil
}

// Priorities returns the values of PriorityClasses by name, and under the empty name that of pods which name none. Of
// several default classes, the lowest one counts. It returns nil while they are not known.
func (c caches) Priorities() map[string]int32 {
	if c.priorities == nil || !c.priorities.HasSynced() {
		return nil
	}
	values := map[string]int32{"": 0}
	byDefault := false
	for _, obj := range c.priorities.List() {
		class, ok := obj.(*schedulingv1.PriorityClass)
		if !ok {
			continue
		}
		values[class.Name] = class.Value
		if class.GlobalDefault && (!byDefault || class.Value < values[""]) {
			byDefault, values[""] = true, class.Value
		}
	}
	return values
}

// newPlacer returns the placer of a controller, and has it follow the sets that hold domains.
func (c *Controller) newPlacer() *placer.Placer {
	p := placer.New(placer.Config{
		Kube: c.Kube, Clock: clock.RealClock{}, WhenFull: c.PlacementWhenFull, MoveAfter: c.PlacementMoveAfter, Wake: c.queue.Add,
		Placed: func() ([]*jobsetv1alpha2.JobSet, error) { return c.caches.byPlacement(placed) },
		Needed: func() bool {
			sets, err := c.caches.byPlacement(asking)
			return err != nil || len(sets) > 0
		},
	})
	c.caches.jobSets.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			was, is := before.(*jobsetv1alpha2.JobSet), after.(*jobsetv1alpha2.JobSet)
			if holdsDomains(was) && (!holdsDomains(is) || freesDomain(was.Status.Placement, is.Status.Placement)) {
				p.Freed()
			}
		},
		DeleteFunc: onObject(func(obj metav1.Object) {
			if js, ok := obj.(*jobsetv1alpha2.JobSet); ok && holdsDomains(js) {
				p.Freed()
			}
		}),
	})
	return p
}

// holdsDomains reports whether a set has domains that no other set may use.
func holdsDomains(js *jobsetv1alpha2.JobSet) bool {
	return js.Status.Placement != nil && js.Status.TerminalState == "" && js.DeletionTimestamp == nil
}

// freesDomain reports whether a placement has a domain that the next one has not.
func freesDomain(was, is *jobsetv1alpha2.Placement) bool {
	if equality.Semantic.DeepEqual(was, is) {
		return false
	}
	type domain struct{ topology, name string }
	domains := func(at *jobsetv1alpha2.Placement) sets.Set[domain] {
		out := sets.New[domain]()
		for i := range at.ReplicatedJobs {
			for _, job := range at.ReplicatedJobs[i].Jobs {
				if job.Domain != "" {
					out.Insert(domain{at.ReplicatedJobs[i].TopologyKey, job.Domain})
				}
			}
		}
		return out
	}
	return !domains(is).IsSuperset(domains(was))
}

// placementOf indexes a JobSet by what it has to do with exclusive placement.
func placementOf(obj any) ([]string, error) {
	js, ok := obj.(*jobsetv1alpha2.JobSet)
	if !ok {
		return nil, fmt.Errorf("indexing by placement: %T is no JobSet", obj)
	}
	var values []string
	if holdsDomains(js) {
		values = append(values, placed)
	}
	if js.Status.TerminalState == "" && domains.AskedFor(js) {
		values = append(values, asking)
	}
	return values, nil
}

// byPlacement returns the sets for which the index has the value.
func (c caches) byPlacement(value string) ([]*jobsetv1alpha2.JobSet, error) {
	objs, err := c.jobSets.ByIndex(indexPlacement, value)
	if err != nil {
		return nil, fmt.Errorf("listing jobsets by placement: %w", err)
	}
	found := make([]*jobsetv1alpha2.JobSet, 0, len(objs))
	for _, obj := range objs {
		if js, ok := obj.(*jobsetv1alpha2.JobSet); ok {
			found = append(found, js)
		}
	}
	return found, nil
}
