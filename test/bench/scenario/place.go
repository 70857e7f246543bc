// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// placeMode is how the Jobs of a set get their racks.
type placeMode string

const (
	// placeWithout is a set whose pods may run on any node.
	placeWithout placeMode = "without"
	// placeExclusive is a set each of whose Jobs is given a rack by the controller.
	placeExclusive placeMode = "exclusive"
	// placeAffinity is a set for which the controller finds no free rack, so that the scheduler finds them by affinities.
	placeAffinity placeMode = "affinity"
)

// place compares a set with exclusive placement with the same set without it. Each pod takes most of a node.
func place(ctx context.Context, r *runner) error {
	racks, err := r.createRacks(ctx)
	if err != nil {
		return fmt.Errorf("creating nodes: %w", err)
	}
	p := &placing{runner: r, racks: racks}
	work := p.run
	if r.Beside {
		work = p.runBeside
	}
	if err := work(ctx); err != nil || r.Keep {
		return err
	}
	return r.deleteRacks(ctx)
}

// placing is a run of the scenario.
type placing struct {
	*runner
	// racks are the racks of the nodes, by their names.
	racks map[string]string
}

func (p *placing) run(ctx context.Context) error {
	if err := p.besideAnchor(ctx, placeWithout, func(ctx context.Context) error {
		return p.inSpace(ctx, watchedAll, false, p.watchNodes)
	}); err != nil {
		return err
	}
	for n := range p.Runs {
		p.Log("%s: run %d", p.to.Name, p.to.Runs+n+1)
		for _, mode := range []placeMode{placeWithout, placeExclusive} {
			if err := p.life(ctx, mode); err != nil {
				return err
			}
		}
	}
	return p.inSpace(ctx, unwatched, false, func(ctx context.Context, s *space) error {
		if err := p.holdRacks(ctx, s); err != nil {
			return err
		}
		for range p.Runs {
			if err := p.life(ctx, placeAffinity); err != nil {
				return err
			}
		}
		return nil
	})
}

// besideAnchor does something after a restart of the controller, beside a set of one pod on a node of its own. If that
// has exclusive placement, the controller watches the nodes from before to after; if not, it begins to when another set
// asks. Once begun, it would go on for a while.
func (p *placing) besideAnchor(ctx context.Context, mode placeMode, do func(ctx context.Context) error) error {
	return p.inSpace(ctx, watchedAll, false, func(ctx context.Context, s *space) error {
		err := errors.Join(p.Cluster.Do(ctx, "stop", "controller"), p.Cluster.Do(ctx, "start", "controller"))
		if errors.Is(err, cluster.ErrNotLocal) {
			s.Log("place: the controller is not restarted, and may watch nodes that it does not need: %v", err)
			err = nil
		}
		if err != nil {
			return err
		}
		if err := s.startOnePod(ctx, mode, anchorPool); err != nil {
			return err
		}
		return do(ctx)
	})
}

// startOnePod creates a set of one pod and is done when that is ready.
func (s *space) startOnePod(ctx context.Context, mode placeMode, pool string) error {
	js := s.placedSet(mode, 1, 1)
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.NodeSelector[benchPoolKey] = pool
	if err := s.createSet(ctx, js); err != nil {
		return err
	}
	return s.untilPlaced(ctx, 1, 1, 0)
}

// watchNodes measures what the controller uses for the nodes, which it begins to watch because of a set with one pod.
func (p *placing) watchNodes(ctx context.Context, s *space) error {
	before, err := s.liveHeap(ctx)
	if err != nil {
		return err
	}
	phase, err := s.measure(ctx, "nodes are watched", func(ctx context.Context) error { return s.startOnePod(ctx, placeExclusive, benchPool) })
	if err != nil {
		return err
	}
	after, err := s.liveHeap(ctx)
	phase.Add("heap of jobset-controller for each node", report.UnitKiB, (after-before)/float64(len(p.racks))/1024)
	return err
}

// life starts and restarts a set.
func (p *placing) life(ctx context.Context, mode placeMode) error {
	return p.besideAnchor(ctx, mode, func(ctx context.Context) error {
		return p.inSpace(ctx, watchedAll, false, func(ctx context.Context, s *space) error {
			if err := p.start(ctx, s, mode); err != nil {
				return err
			}
			return p.restart(ctx, s, mode)
		})
	})
}

func (p *placing) start(ctx context.Context, s *space, mode placeMode) error {
	jobs, pods := s.Sizes.placedJobs(), s.Sizes.PlacePods
	before, err := s.liveHeap(ctx)
	if err != nil {
		return err
	}
	phase, err := s.measure(ctx, string(mode)+": start", func(ctx context.Context) error {
		if err := s.createSet(ctx, s.placedSet(mode, jobs, pods)); err != nil {
			return err
		}
		return s.untilPlaced(ctx, jobs, pods, 0)
	})
	if err != nil {
		return err
	}
	phase.Add("pods per second", report.UnitRate, float64(jobs*pods)/phase.Last("wall"))
	after, err := s.liveHeap(ctx)
	if err != nil {
		return err
	}
	phase.Add("heap of jobset-controller for each pod", report.UnitKiB, (after-before)/float64(jobs*pods)/1024)
	return p.check(ctx, s, mode)
}

// restart lets a pod fail. How long it takes until its Job shows that is up to the Job controller, and has nothing to do with placement.
func (p *placing) restart(ctx context.Context, s *space, mode placeMode) error {
	jobs, pods := s.Sizes.placedJobs(), s.Sizes.PlacePods
	var noticing time.Duration
	phase, err := s.measure(ctx, string(mode)+": restart", func(ctx context.Context) error {
		begin := time.Now()
		if err := s.failOnePod(ctx); err != nil {
			return err
		}
		if err := s.jobs.untilAny(ctx, "a Job has failed", isFailing); err != nil {
			return err
		}
		noticing = time.Since(begin)
		return s.untilPlaced(ctx, jobs, pods, 1)
	})
	if err != nil {
		return err
	}
	wall := phase.Last("wall") - noticing.Seconds()
	phase.Add("wall from the failure of the Job", report.UnitSeconds, wall)
	phase.Add("pods per second", report.UnitRate, float64(jobs*pods)/wall)
	return p.check(ctx, s, mode)
}

// untilPlaced waits until all pods of all Jobs are ready in an attempt, and the status shows it.
func (s *space) untilPlaced(ctx context.Context, jobs, pods, restarts int) error {
	attempt := fmt.Sprint(restarts)
	if err := s.jobs.until(ctx, "all pods of all Jobs are ready", jobs, func(job *batchv1.Job) bool {
		return job.DeletionTimestamp == nil && int(ptr.Deref(job.Status.Ready, 0)) == pods && job.Labels[jobsetv1alpha2.RestartsKey] == attempt
	}); err != nil {
		return err
	}
	return s.sets.until(ctx, "the status shows all Jobs as ready", 1, showsJobs(jobs, 0, restarts))
}

// placedSet is a set of so many Jobs of so many pods, on nodes of the scenario.
func (s *space) placedSet(mode placeMode, jobs, pods int) *jobsetv1alpha2.JobSet {
	js := s.set(setName, jobs, running)
	if mode != placeWithout {
		js.Annotations = map[string]string{jobsetv1alpha2.ExclusiveKey: benchRackKey}
	}
	spec := &js.Spec.ReplicatedJobs[0].Template.Spec
	spec.Parallelism, spec.Completions = ptr.To(int32(pods)), ptr.To(int32(pods)) //nolint:gosec // a small number
	spec.Template.Spec.NodeSelector = map[string]string{benchPoolKey: benchPool}
	spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("40")}
	return js
}
