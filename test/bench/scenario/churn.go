// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

const (
	// churnBatch is how many sets exist at a time.
	churnBatch = 200
	// churnRunning is which share of the sets runs to completion: one of so many. The others stay suspended.
	churnRunning = 20
)

// churn creates and removes sets over and over, in as many parts as report.ChurnParts, each in a namespace of its own. All names are
// used once. Between two parts it looks at the memory of our programs, which must not grow with what is gone.
func churn(ctx context.Context, r *runner) error {
	for part := range report.ChurnParts {
		err := r.inSpace(ctx, watchedSets, false, func(ctx context.Context, s *space) error {
			_, err := s.measure(ctx, report.ChurnPart(part), func(ctx context.Context) error {
				return s.churn(ctx, s.Sizes.ChurnSets*part/report.ChurnParts, s.Sizes.ChurnSets*(part+1)/report.ChurnParts)
			})
			return err
		})
		if err != nil {
			return err
		}
		if err := r.addLiveMemory(ctx, r.to.Phase(report.ChurnPart(part))); err != nil {
			return err
		}
	}
	return nil
}

// churn creates and removes the sets from one number to another, in batches.
func (s *space) churn(ctx context.Context, from, to int) error {
	for first := from; first < to; first += churnBatch {
		if err := s.churnOnce(ctx, first, min(churnBatch, to-first)); err != nil {
			return err
		}
	}
	return nil
}

// churnOnce is done when n sets were created, were completed or have their suspended Job, and are gone.
func (s *space) churnOnce(ctx context.Context, first, n int) error {
	if err := all(ctx, n, s.Sizes.Clients, func(i int) error { return s.createSet(ctx, s.churned(first+i)) }); err != nil {
		return err
	}
	completed, suspended := has(jobsetv1alpha2.JobSetCompleted), showsJobs(0, 1, 0)
	err := s.sets.until(ctx, "each set is completed, or its status shows its suspended Job", n, func(js *jobsetv1alpha2.JobSet) bool {
		return completed(js) || suspended(js)
	})
	if err != nil {
		return err
	}
	sets := s.Cluster.JobSets.JobsetV1alpha2().JobSets(s.name)
	if err := all(ctx, n, s.Sizes.Clients, func(i int) error {
		return sets.Delete(ctx, s.churned(first+i).Name, metav1.DeleteOptions{})
	}); err != nil {
		return err
	}
	return s.sets.until(ctx, "all sets are gone", 0, anything[*jobsetv1alpha2.JobSet])
}

// churned returns the set of a number.
func (s *space) churned(i int) *jobsetv1alpha2.JobSet {
	name := fmt.Sprintf("%s-%d", setName, i)
	if i%churnRunning == 0 {
		return s.set(name, 1, succeeding)
	}
	return s.suspended(name, 1)
}

// addLiveMemory adds what our programs have in their heaps after their garbage is collected, and their resident memory.
func (r *runner) addLiveMemory(ctx context.Context, to *report.Phase) error {
	resident, err := r.Cluster.Memory()
	if err != nil {
		return err
	}
	for _, program := range report.ChurnedPrograms {
		live, err := r.Cluster.LiveHeap(ctx, program)
		if err != nil {
			return err
		}
		to.Add(report.LiveHeapOf(program), report.UnitMiB, live/(1<<20))
		to.Add(report.MemoryOf(program), report.UnitMiB, float64(resident[program])/(1<<20))
	}
	return nil
}
