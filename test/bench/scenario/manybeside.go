// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// addMemoryBefore adds the memory of kube-apiserver and its etcd before there are sets. It is read only before the first run: these processes
// keep much of the memory that they used for sets of earlier runs. In later runs, the same values are added again.
func (r *runner) addMemoryBefore() error {
	memory, err := r.Cluster.Memory()
	if err != nil {
		return err
	}
	addFirst(r.to.Phase(report.BeforeSets), memory)
	return nil
}

func addFirst(phase *report.Phase, memory map[string]int64) {
	for _, process := range report.MainStore {
		figure := report.MemoryOf(process)
		value := float64(memory[process]) / (1 << 20)
		if first := phase.Figure(figure); first != nil {
			value = first.Values[0]
		}
		phase.Add(figure, report.UnitMiB, value)
	}
}

// liveBeside creates the sets, leaves them alone, and restarts the controller.
func (t *tenants) liveBeside(ctx context.Context) error {
	before, err := t.Cluster.Memory()
	if err != nil {
		return err
	}
	if err := t.create(ctx, before); err != nil {
		return err
	}
	if err := t.rest(ctx, report.AtRest); err != nil {
		return err
	}
	return t.resync(ctx, report.ControllerRestarted, t.count())
}

// resync restarts the controller. The phase ends when that has synced so many sets. Its wall time begins when the process starts.
func (s *space) resync(ctx context.Context, name string, sets int) error {
	window, err := s.meter.Begin(ctx)
	if err != nil {
		return err
	}
	took, err := s.Cluster.RestartController(ctx, sets, s.Timeout)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	window.Took(took)
	phase := s.to.Phase(name)
	if err := window.End(ctx, phase); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	addControllerWrites(phase)
	s.Log("%s: %s took %.2fs", s.to.Name, name, took.Seconds())
	return nil
}
