// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

const (
	// maxIdleWait is how long a cluster is waited for that does not become idle.
	maxIdleWait = 30 * time.Second
	// idleShare is the part of a CPU, beyond that of an idle cluster, with which work counts as done.
	idleShare = 0.12
	// guessedShare is the part of a CPU that an idle cluster uses, until it is known.
	guessedShare = 0.15
)

// unseenPauses is for how many times of every a cluster is left alone whose processes are not seen.
const unseenPauses = 3

// Meter measures what the cluster does in a part of a scenario.
type Meter struct {
	cluster *Cluster
	// every is how long processes are watched for being idle.
	every time.Duration
	// idle is the CPU time that each process uses in a second without any work.
	idle map[string]time.Duration
	// counters count requests.
	counters []counter
}

// NewMeter watches the idle cluster for a while. The cluster counts as idle again when it is so for the time of every.
func (c *Cluster) NewMeter(ctx context.Context, watch, every time.Duration) (*Meter, error) {
	m := &Meter{cluster: c, every: every, idle: map[string]time.Duration{}, counters: c.counters(c.servers())}
	if c.Dir == "" {
		m.counters = c.counters(c.counting(ctx))
		return m, nil
	}
	if err := m.awaitIdle(ctx); err != nil {
		return nil, err
	}
	before, err := m.cpu()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := Pause(ctx, watch); err != nil {
		return nil, err
	}
	after, err := m.cpu()
	if err != nil {
		return nil, err
	}
	for name := range after {
		m.idle[name] = time.Duration(float64(after[name]-before[name]) / time.Since(begin).Seconds())
	}
	return m, nil
}

// Window is a part of a scenario that is being measured.
type Window struct {
	meter     *Meter
	processes map[string]int
	begin     time.Time
	cpu       map[string]time.Duration
	// calls has the requests of each counter by its prefix.
	calls map[string]Calls
	audit int64
	took  time.Duration
}

// Begin starts a window. The clock is read last.
func (m *Meter) Begin(ctx context.Context) (*Window, error) {
	w := &Window{meter: m}
	if err := m.awaitIdle(ctx); err != nil {
		return nil, err
	}
	var err error
	if w.calls, err = m.calls(ctx); err != nil {
		return nil, err
	}
	if m.cluster.Dir != "" {
		if w.audit, err = m.cluster.auditEnd(); err != nil {
			return nil, err
		}
		if w.processes, err = m.cluster.Processes(); err != nil {
			return nil, err
		}
		for name, pid := range w.processes {
			if err := forgetPeak(pid); err != nil {
				return nil, fmt.Errorf("forgetting the peak of memory of %s: %w", name, err)
			}
		}
		if w.cpu, err = m.cpu(); err != nil {
			return nil, err
		}
	}
	w.begin = time.Now()
	return w, nil
}

// Done ends the wall time of the window. What was caused by the work and is not done yet counts in all other figures.
func (w *Window) Done() time.Duration {
	w.took = time.Since(w.begin)
	return w.took
}

// Took sets the wall time of a window in which more was done than what is to be measured.
func (w *Window) Took(d time.Duration) { w.took = d }

// End waits until the cluster is idle and adds the figures to the phase.
func (w *Window) End(ctx context.Context, to *report.Phase) error {
	to.Add("wall", report.UnitSeconds, w.took.Seconds())
	if err := w.meter.awaitIdle(ctx); err != nil {
		return err
	}
	if w.meter.cluster.Dir == "" {
		return w.addServed(ctx, to)
	}
	cpu, err := w.meter.cpu()
	if err != nil {
		return err
	}
	if err := w.forgetRestarted(); err != nil {
		return err
	}
	w.addCPU(cpu, time.Since(w.begin), to)
	if err := w.addMemory(to); err != nil {
		return err
	}
	if err := w.addServed(ctx, to); err != nil {
		return err
	}
	if w.audit >= 0 {
		asked, err := w.meter.cluster.asked(w.audit)
		if err != nil {
			return err
		}
		addCalls("client/jobset-controller", nil, asked, to)
	}
	return w.meter.cluster.addStores(ctx, to)
}

// forgetRestarted drops earlier counters of processes that were restarted in the meantime: they start again from zero.
func (w *Window) forgetRestarted() error {
	processes, err := w.meter.cluster.Processes()
	if err != nil {
		return err
	}
	for name, pid := range processes {
		if w.processes[name] != pid {
			w.cpu[name] = 0
		}
	}
	for _, counter := range w.meter.counters {
		if w.processes[counter.process] != processes[counter.process] {
			w.calls[counter.prefix] = nil
		}
	}
	w.processes = processes
	return nil
}

// addCPU adds the CPU times without those that the processes would have used anyway.
func (w *Window) addCPU(now map[string]time.Duration, passed time.Duration, to *report.Phase) {
	var total, own time.Duration
	for _, name := range slices.Sorted(maps.Keys(now)) {
		used := now[name] - w.cpu[name] - time.Duration(float64(w.meter.idle[name])*passed.Seconds())
		used = max(used, 0)
		to.Add("cpu/"+name, report.UnitSeconds, used.Seconds())
		total += used
		if isOwn(name) {
			own += used
		}
	}
	to.Add("cpu/total", report.UnitSeconds, total.Seconds())
	to.Add("cpu/own", report.UnitSeconds, own.Seconds())
}

// isOwn returns whether a process is one of our programs, or of upstream where that runs in place of them.
func isOwn(process string) bool {
	return slices.Contains([]string{"jobset-apiserver", "jobset-controller", "jobset-etcd"}, process) || strings.HasPrefix(process, upstreamPrefix)
}

func (w *Window) addMemory(to *report.Phase) error {
	for _, name := range slices.Sorted(maps.Keys(w.processes)) {
		now, peak, err := memory(w.processes[name])
		if err != nil {
			return fmt.Errorf("reading the memory of %s: %w", name, err)
		}
		to.Add("peak/"+name, report.UnitMiB, float64(peak)/(1<<20))
		to.Add("rss/"+name, report.UnitMiB, float64(now)/(1<<20))
	}
	return nil
}

func (m *Meter) cpu() (map[string]time.Duration, error) {
	processes, err := m.cluster.Processes()
	if err != nil {
		return nil, err
	}
	used := map[string]time.Duration{}
	for name, pid := range processes {
		if used[name], err = cpuTime(pid); err != nil {
			return nil, fmt.Errorf("reading the CPU time of %s: %w", name, err)
		}
	}
	return used, nil
}

// awaitIdle waits until the processes use hardly more CPU time than those of an idle cluster, and the queues of jobset-controller are
// empty: beside other work, processes that have much to do use little, too. A cluster that does not become idle is measured as it is. One
// whose processes are not seen gets some time.
func (m *Meter) awaitIdle(ctx context.Context) error {
	if m.cluster.Dir == "" {
		return Pause(ctx, unseenPauses*m.every)
	}
	before, err := m.cpu()
	if err != nil {
		return err
	}
	limit := guessedShare
	if len(m.idle) > 0 {
		limit = 0
	}
	for _, each := range m.idle {
		limit += each.Seconds() // in each second
	}
	limit = (limit + idleShare) * m.every.Seconds()
	done := m.cluster.work(ctx)
	err = wait.PollUntilContextTimeout(ctx, m.every, maxIdleWait, false, func(context.Context) (bool, error) {
		now, err := m.cpu()
		if err != nil {
			return false, err
		}
		var used time.Duration
		for name := range now {
			used += now[name] - before[name]
		}
		before = now
		if used.Seconds() >= limit {
			return false, nil
		}
		last := done
		done = m.cluster.work(ctx)
		return done.restsSince(last), nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil
	}
	return err
}

// Pause waits for a time, or until the context ends, whose error it returns then.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
