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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

const (
	smallPrefix = "small-"
	// betweenSmall is the time between the creations of two small sets.
	betweenSmall = 500 * time.Millisecond
)

// fairness creates small sets one after the other: alone, while a set of many Jobs starts, and while another one is
// resumed. It is done once, because its namespace takes long to be removed.
func fairness(ctx context.Context, r *runner) error {
	return r.inSpace(ctx, watchedAll, true, func(ctx context.Context, s *space) error {
		alone := s.newCrowd("alone")
		if err := alone.measure(ctx, func(context.Context) error { return nil }); err != nil {
			return err
		}
		beside := s.newCrowd("beside")
		if err := beside.measure(ctx, func(ctx context.Context) error {
			return s.createSet(ctx, s.set(setName, s.Sizes.FairJobs, running))
		}); err != nil {
			return err
		}
		return s.besideResumption(ctx)
	})
}

// besideResumption begins when all Jobs of the large set are ready, and all Jobs of the set that is resumed are suspended.
func (s *space) besideResumption(ctx context.Context) error {
	const name = "resumed"
	if err := s.createSet(ctx, s.suspended(name, s.Sizes.FairJobs)); err != nil {
		return err
	}
	for of, shown := range map[string]func(*jobsetv1alpha2.JobSet) bool{
		setName: showsJobs(s.Sizes.FairJobs, 0, 0), name: showsJobs(0, s.Sizes.FairJobs, 0),
	} {
		if err := s.sets.untilAny(ctx, "all Jobs of the set "+of+" are ready or suspended", func(js *jobsetv1alpha2.JobSet) bool {
			return js.Name == of && shown(js)
		}); err != nil {
			return err
		}
	}
	return s.newCrowd("resumed").measure(ctx, func(ctx context.Context) error {
		return s.patchSet(ctx, name, `{"spec":{"suspend":false}}`)
	})
}

// crowd are small sets, and what each of them waited for.
type crowd struct {
	*space
	// when is which small sets these are.
	when string

	mu sync.Mutex
	// begun is when a set was created, and created and ready are when all its Jobs were.
	begun, created, ready map[string]time.Time
	// jobs are the UIDs of the Jobs of each set that were seen, and whether they are ready.
	seen map[string]map[string]bool
	// requests are the times of creations in milliseconds, by resource.
	requests map[string][]float64
}

func (s *space) newCrowd(when string) *crowd {
	return &crowd{
		space: s, when: when, begun: map[string]time.Time{}, created: map[string]time.Time{}, ready: map[string]time.Time{},
		seen: map[string]map[string]bool{}, requests: map[string][]float64{},
	}
}

// measure begins with something, and then creates the small sets. Their delays are figures of the phase.
func (c *crowd) measure(ctx context.Context, begin func(context.Context) error) error {
	c.jobs.onShown(c.shown)
	defer c.jobs.onShown(nil)
	phase, err := c.space.measure(ctx, "small sets "+c.when, func(ctx context.Context) error {
		if err := begin(ctx); err != nil {
			return err
		}
		for i := range c.Sizes.FairSets {
			if err := errors.Join(c.createPair(ctx, i), cluster.Pause(ctx, betweenSmall)); err != nil {
				return err
			}
		}
		return c.sets.untilSome(ctx, "all small sets are ready", c.Sizes.FairSets, func(js *jobsetv1alpha2.JobSet) bool {
			return c.has(js.Name) && showsJobs(c.Sizes.RunJobs, 0, 0)(js)
		})
	})
	if err != nil {
		return err
	}
	for resource, spent := range c.requests {
		addPercentiles(phase, "create "+resource, spent)
	}
	addPercentiles(phase, "until all Jobs exist", c.since(c.created))
	addPercentiles(phase, "until all Jobs are ready", c.since(c.ready))
	return nil
}

func addPercentiles(phase *report.Phase, name string, spent []float64) {
	for _, p := range []int{50, 99} {
		phase.Add(fmt.Sprintf("%s, p%d", name, p), report.UnitMillis, report.Percentile(spent, float64(p)))
	}
}

func (c *crowd) name(i int) string { return fmt.Sprintf("%s%s-%d", smallPrefix, c.when, i) }

func (c *crowd) has(set string) bool { return strings.HasPrefix(set, smallPrefix+c.when) }

// createPair creates a set and a ConfigMap.
func (c *crowd) createPair(ctx context.Context, i int) error {
	name := c.name(i)
	begin := c.begin(name)
	if err := c.createSet(ctx, c.set(name, c.Sizes.RunJobs, running)); err != nil {
		return err
	}
	c.note("jobsets", begin)
	return c.createConfigMap(ctx, name)
}

func (c *crowd) createConfigMap(ctx context.Context, name string) error {
	begin := time.Now()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := c.Cluster.Kube.CoreV1().ConfigMaps(c.space.name).Create(ctx, config, metav1.CreateOptions{})
	c.note("configmaps", begin)
	return err
}

// begin notes that the creation of a set begins.
func (c *crowd) begin(set string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun[set] = time.Now()
	return c.begun[set]
}

// note notes how long a creation took.
func (c *crowd) note(resource string, begin time.Time) {
	took := millis(time.Since(begin))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[resource] = append(c.requests[resource], took)
}

// shown notes a Job that appears or changes.
func (c *crowd) shown(job *batchv1.Job) {
	set := job.Labels[jobsetv1alpha2.JobSetNameKey]
	if !c.has(set) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	jobs := c.seen[set]
	if jobs == nil {
		jobs = map[string]bool{}
		c.seen[set] = jobs
	}
	jobs[job.Name] = isReady(job)
	if len(jobs) < c.Sizes.RunJobs {
		return
	}
	if _, noted := c.created[set]; !noted {
		c.created[set] = time.Now()
	}
	for _, ready := range jobs {
		if !ready {
			return
		}
	}
	if _, noted := c.ready[set]; !noted {
		c.ready[set] = time.Now()
	}
}

// since returns how long sets waited, in milliseconds.
func (c *crowd) since(done map[string]time.Time) (spent []float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for set, at := range done {
		spent = append(spent, millis(at.Sub(c.begun[set])))
	}
	return spent
}
