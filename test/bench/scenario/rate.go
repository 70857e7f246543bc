// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

const (
	// rateClients is how many creations of sets may be unanswered at the same time, over rateConnections connections.
	rateClients     = 200
	rateConnections = 8
	// configMapRate is how many ConfigMaps are created in a second meanwhile, by configMapClients clients.
	configMapRate    = 5
	configMapClients = 5
)

// rate creates suspended sets of one Job on schedule, beside one of many Jobs. It is done once, because its namespace
// takes long to be removed.
func rate(ctx context.Context, r *runner) error {
	r = r.sized(r.Sizes.Rate*r.Sizes.RateSeconds + r.Sizes.RateJobs)
	r.Sizes.RunJobs = 1 // of each set of the crowd
	return r.inSpace(ctx, watchedAll, true, func(ctx context.Context, s *space) error {
		l := &load{crowd: s.newCrowd("scheduled"), n: s.Sizes.Rate * s.Sizes.RateSeconds}
		for range rateConnections {
			client, err := s.ownConnection()
			if err != nil {
				return err
			}
			l.clients = append(l.clients, client)
		}
		return l.measure(ctx)
	})
}

// load are sets that are created at a rate.
type load struct {
	*crowd
	n       int
	clients []versioned.Interface
	// madeSets is what became of their schedule.
	madeSets made
	// large is how long it took until the status of the large set showed all of its Jobs; 0 until it does.
	large time.Duration
}

// measure is done when all sets have their Jobs.
func (l *load) measure(ctx context.Context) error {
	l.jobs.onShown(l.shown)
	defer l.jobs.onShown(nil)
	before, err := l.Cluster.QueueTimes(ctx)
	if err != nil && !errors.Is(err, cluster.ErrNotLocal) {
		return err
	}
	phase, err := l.space.measure(ctx, report.OnSchedule, l.run)
	if err != nil {
		return err
	}
	l.addTo(phase)
	if err := l.lostError(); err != nil || before == nil {
		return err
	}
	after, err := l.Cluster.QueueTimes(ctx)
	if err != nil {
		return err
	}
	for _, name := range after.Names() {
		if waited := after[name].Since(before[name]); waited.Count() > 0 {
			for _, p := range []float64{50, 99} {
				phase.Add(fmt.Sprintf("wait in the queue of %s, p%.0f", name, p), report.UnitMillis, 1000*waited.Quantile(p/100))
			}
		}
	}
	return nil
}

// run creates everything and waits for the Jobs.
func (l *load) run(ctx context.Context) error {
	begin := time.Now()
	l.space.sets.onShown(func(js *jobsetv1alpha2.JobSet) { l.noteLarge(js, begin) })
	defer l.space.sets.onShown(nil)
	if err := l.createSet(ctx, l.suspended(setName, l.Sizes.RateJobs)); err != nil {
		return err
	}
	var working sync.WaitGroup
	var failures [2]error
	working.Go(func() {
		l.madeSets, failures[0] = schedule{time.Second / time.Duration(l.Sizes.Rate), l.n, rateClients}.run(ctx, l.createOne)
	})
	working.Go(func() {
		n := configMapRate * l.Sizes.RateSeconds
		_, failures[1] = schedule{time.Second / configMapRate, n, configMapClients}.run(ctx, func(ctx context.Context, _, i int) error {
			return l.createConfigMap(ctx, l.name(i))
		})
	})
	working.Wait()
	if err := errors.Join(failures[:]...); err != nil {
		return err
	}
	if err := l.jobs.until(ctx, "all sets have their Jobs", l.n+l.Sizes.RateJobs, anything[*batchv1.Job]); err != nil {
		return errors.Join(err, l.lostError())
	}
	return l.space.sets.untilAny(ctx, "the status shows all Jobs of the large set as suspended", func(js *jobsetv1alpha2.JobSet) bool {
		return js.Name == setName && showsJobs(0, l.Sizes.RateJobs, 0)(js)
	})
}

// suspended returns a suspended set of so many Jobs.
func (s *space) suspended(name string, jobs int) *jobsetv1alpha2.JobSet {
	js := s.set(name, jobs, running)
	js.Spec.Suspend = ptr.To(true)
	return js
}

func (l *load) createOne(ctx context.Context, client, i int) error {
	name := l.name(i)
	js := l.suspended(name, l.Sizes.RunJobs)
	begin := l.begin(name)
	_, err := l.clients[client%len(l.clients)].JobsetV1alpha2().JobSets(l.space.name).Create(ctx, js, metav1.CreateOptions{})
	l.note("jobsets", begin)
	return err
}

// noteLarge notes when the status of the large set first shows all of its Jobs.
func (l *load) noteLarge(js *jobsetv1alpha2.JobSet, begin time.Time) {
	if js.Name != setName || !showsJobs(0, l.Sizes.RateJobs, 0)(js) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.large == 0 {
		l.large = time.Since(begin)
	}
}

// lost returns the sets of which no Job was seen.
func (l *load) lost() (names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.n {
		if _, found := l.created[l.name(i)]; !found {
			names = append(names, l.name(i))
		}
	}
	return names
}

// lostError is nil if all sets have their Job.
func (l *load) lostError() error {
	names := l.lost()
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d sets have no Job, such as %s", len(names), l.n, strings.Join(names[:min(len(names), mostMissing)], ", "))
}

func (l *load) addTo(phase *report.Phase) {
	for resource, spent := range l.requests {
		addPercentiles(phase, "create "+resource, spent)
	}
	addPercentiles(phase, "until its Job exists", l.since(l.created))
	addPercentiles(phase, "behind the schedule", l.madeSets.late)
	phase.Add("behind the schedule, longest", report.UnitMillis, report.Percentile(l.madeSets.late, 100))
	phase.Add(report.SetsPerSecond, report.UnitRate, float64(l.n)/l.madeSets.took.Seconds())
	phase.Add("until the status of the large set shows its Jobs", report.UnitSeconds, l.large.Seconds())
	phase.Add(report.LostSets, report.UnitCount, float64(len(l.lost())))
	addEach(phase, "Job", l.n+l.Sizes.RateJobs)
}
