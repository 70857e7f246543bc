// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

const (
	// timeoutPerJob is by how much each Job lengthens a wait: a machine with two cores restarts five to ten Jobs in a
	// second.
	timeoutPerJob = 500 * time.Millisecond
	// maxAddedTimeout is how long a wait is lengthened at most.
	maxAddedTimeout = 3 * time.Hour
	// mostDeleted is up to how many Jobs the deletion of a set is measured. Larger sets stay until their namespace is removed.
	mostDeleted = 20_000
)

// growth leads a set through its life, again and again with more Jobs, and then creates a very large one that is suspended.
func growth(ctx context.Context, r *runner) error {
	largest := slices.Max(r.Sizes.GrowthJobs)
	if err := r.checkRoom(ctx, largest); err != nil {
		return err
	}
	for n := range r.Runs {
		r.Log("%s: run %d", r.to.Name, r.to.Runs+n+1)
		for _, jobs := range r.Sizes.GrowthJobs {
			if err := r.sized(jobs).inSpace(ctx, watchedAll, jobs == largest && jobs > mostDeleted, grow); err != nil {
				return err
			}
		}
		if err := r.sized(r.Sizes.SuspendedJobs).inSpace(ctx, watchedSets, true, createSuspended); err != nil {
			return err
		}
	}
	return nil
}

// sized is the runner for a set of so many Jobs, whose waits are longer if there are many.
func (r *runner) sized(jobs int) *runner {
	env, other := *r.Env, *r
	env.Sizes.Jobs, env.Timeout = jobs, timeoutFor(r.Timeout, jobs)
	other.Env = &env
	return &other
}

// timeoutFor is how long a wait for so many Jobs may take: some time for each of them, and the time that is given in
// any case.
func timeoutFor(timeout time.Duration, jobs int) time.Duration {
	return timeout + min(time.Duration(jobs)*timeoutPerJob, maxAddedTimeout)
}

// grow is the life of a set of one size.
func grow(ctx context.Context, s *space) error {
	n := s.Sizes.Jobs
	measured := func(work func(ctx context.Context) error) func(ctx context.Context, phase string) error {
		return func(ctx context.Context, phase string) error {
			_, err := s.measure(ctx, phase, work)
			return err
		}
	}
	for _, part := range []struct {
		name string
		do   func(ctx context.Context, phase string) error
	}{
		{"start", func(ctx context.Context, phase string) error { return s.startSet(ctx, phase, n) }},
		{"restart", func(ctx context.Context, phase string) error { return s.restartSet(ctx, phase, n) }},
		{"suspend", measured(s.suspendSet)},
		{"resume", measured(s.resumeSet)},
		{"delete", measured(s.deleteSet)},
	} {
		if part.name == "delete" && n > mostDeleted {
			s.Log("growth: the deletion of %d Jobs is not measured", n)
			continue
		}
		phase := report.GrowthPhase(n, part.name)
		if err := part.do(ctx, phase); err != nil {
			return err
		}
		addEach(s.to.Phase(phase), "Job", n)
	}
	return nil
}

// addEach adds what each of n objects cost in the last run of a phase.
func addEach(phase *report.Phase, object string, n int) {
	add := func(name, figure string) {
		if phase.Figure(figure) != nil {
			phase.Add(name+" for each "+object, report.UnitMillis, 1000*phase.Last(figure)/float64(n))
		}
	}
	add("wall", "wall")
	add("CPU of all programs", "cpu/total")
	for _, program := range []string{"kube-apiserver", "jobset-apiserver", "jobset-controller"} {
		add("CPU of "+program, "cpu/"+program)
	}
}

// createSuspended is done when the status shows all Jobs of a set as suspended.
func createSuspended(ctx context.Context, s *space) error {
	before, err := s.Cluster.Memory()
	if err != nil {
		return err
	}
	n := s.Sizes.Jobs
	phase, err := s.measure(ctx, report.GrowthPhase(n, "create suspended"), func(ctx context.Context) error {
		if err := s.createSet(ctx, s.suspended(setName, n)); err != nil {
			return err
		}
		return s.sets.until(ctx, "the status shows all Jobs as suspended", 1, showsJobs(0, n, 0))
	})
	if err != nil {
		return err
	}
	addEach(phase, "Job", n)
	s.addChanges(phase, 0, 1)
	return s.addMemory(ctx, before, phase, "Job", n)
}

// checkRoom returns an error unless the nodes have room for so many more pods.
func (r *runner) checkRoom(ctx context.Context, pods int) error {
	nodes, err := r.Cluster.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	room := 0
	for i := range nodes.Items {
		if !nodes.Items[i].Spec.Unschedulable {
			room += int(nodes.Items[i].Status.Allocatable.Pods().Value())
		}
	}
	present, err := r.Cluster.Kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "status.phase!=Succeeded,status.phase!=Failed"})
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	if taken := len(present.Items); room-taken < pods {
		return fmt.Errorf("%d pods need room: %d nodes have room for %d, of which %d are taken; create the local cluster with a larger CLUSTER_NODES",
			pods, len(nodes.Items), room, taken)
	}
	return nil
}
