// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// wide has one very large set, and very many sets that do nothing.
func wide(ctx context.Context, r *runner) error {
	err := r.each(ctx, watchedAll, func(ctx context.Context, s *space) error {
		return s.startSet(ctx, "one set: start", s.Sizes.WideJobs)
	})
	if err != nil {
		return err
	}
	return r.inSpace(ctx, watchedSets, true, func(ctx context.Context, s *space) error {
		if err := s.createRest(ctx); err != nil {
			return err
		}
		for range s.Runs {
			if _, err := s.measure(ctx, report.AtRest, func(ctx context.Context) error {
				return cluster.Pause(ctx, time.Duration(s.Sizes.RestSeconds)*time.Second)
			}); err != nil {
				return err
			}
		}
		for range s.Runs {
			if err := s.restartController(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// createRest is done when all sets say that all of their Jobs are suspended.
func (s *space) createRest(ctx context.Context) error {
	before, err := s.Cluster.Memory()
	if err != nil {
		return err
	}
	sets, jobs := s.Sizes.RestSets, s.Sizes.RestJobs
	phase, err := s.measure(ctx, "create", func(ctx context.Context) error {
		err := all(ctx, sets, writers, func(i int) error {
			return s.createSet(ctx, restSet(fmt.Sprintf("rest-%05d", i), s.name, jobs))
		})
		if err != nil {
			return err
		}
		return s.sets.until(ctx, "the status of all sets shows their Jobs as suspended", sets, func(js *jobsetv1alpha2.JobSet) bool {
			return has(jobsetv1alpha2.JobSetSuspended)(js) && showsJobs(0, jobs, 0)(js)
		})
	})
	if err != nil {
		return err
	}
	phase.Add("Jobs per second", report.UnitCount, float64(sets*jobs)/phase.Last("wall"))
	if err := s.addMemory(ctx, before, phase, "Job", sets*jobs); err != nil || s.Profiles == "" {
		return err
	}
	for _, program := range profiledPrograms {
		if err := s.writeProfile(ctx, program, "create", "heap", 0); err != nil {
			return err
		}
	}
	return nil
}

// addMemory adds the growth of our programs for each of n objects: in resident memory, and in memory in use.
func (s *space) addMemory(ctx context.Context, before map[string]int64, to *report.Phase, object string, n int) error {
	after, err := s.Cluster.Memory()
	if err != nil {
		return err
	}
	for _, program := range []string{"jobset-controller", "jobset-apiserver"} {
		if after[program] == 0 {
			continue
		}
		to.Add("memory of "+program+" for each "+object, report.UnitKiB, float64(after[program]-before[program])/float64(n)/1024)
		heap, err := s.Cluster.Heap(ctx, program)
		if err != nil {
			return err
		}
		to.Add("heap of "+program+" for each "+object, report.UnitKiB, heap/float64(n)/1024)
	}
	return nil
}

// restartController makes the controller sync all objects again, as after an update of it.
func (s *space) restartController(ctx context.Context) error {
	_, err := s.measure(ctx, report.ControllerRestarted, func(ctx context.Context) error {
		return errors.Join(s.Cluster.Do(ctx, "stop", "controller"), s.Cluster.Do(ctx, "start", "controller"))
	})
	if errors.Is(err, cluster.ErrNotLocal) {
		s.Log("%s: the controller is not restarted: %v", s.to.Name, err)
		return nil
	}
	return err
}
