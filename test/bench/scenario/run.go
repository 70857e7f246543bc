// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// run lets many small sets run to completion.
func run(ctx context.Context, r *runner) error {
	return r.each(ctx, watchedAll, func(ctx context.Context, s *space) error {
		phase, err := r.measure(ctx, "until completed", func(ctx context.Context) error {
			err := all(ctx, s.Sizes.RunSets, s.Sizes.Clients, func(i int) error {
				name := fmt.Sprintf("%s-%d", setName, i)
				return s.createSet(ctx, s.set(name, s.Sizes.RunJobs, succeeding))
			})
			if err != nil {
				return err
			}
			return s.sets.until(ctx, "all sets are completed", s.Sizes.RunSets, has(jobsetv1alpha2.JobSetCompleted))
		})
		if err != nil {
			return err
		}
		s.addWrites(phase)
		s.addChanges(phase, 0, s.Sizes.RunSets)
		return s.addStored(ctx, phase, s.name)
	})
}

// writesOf are the requests that write objects of a resource, as servers count them.
func writesOf(resource string) []string {
	return []string{
		"POST " + resource, "PUT " + resource, "PATCH " + resource, "DELETE " + resource,
		"PUT " + resource + "/status", "PATCH " + resource + "/status",
	}
}

// addWrites adds how often each set was written in this run.
func (s *space) addWrites(phase *report.Phase) {
	writes := 0.0
	for _, call := range writesOf("jobsets") {
		writes += phase.Last("calls/" + s.Cluster.StoreOfSets() + "/" + call)
	}
	phase.Add("writes to each set", report.UnitCount, writes/float64(s.Sizes.RunSets))
}

// addChanges adds how often each of the sets was seen to change, after so many changes in earlier phases. This works in any cluster.
func (s *space) addChanges(phase *report.Phase, before, sets int) {
	phase.Add(report.ChangesOfSets, report.UnitCount, float64(s.sets.seenUpdates()-before)/float64(sets))
}
