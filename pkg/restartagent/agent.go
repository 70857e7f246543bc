// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package restartagent

import (
	"context"
	"os"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// agent is one process of the agent. Its fields belong to the goroutine of run.
type agent struct {
	config *Config
	client *client
	state  state
	// signals are the signals that end the agent.
	signals <-chan os.Signal

	// sets gets the latest state of the set, and reports the answer to the write.
	sets    chan *JobSet
	reports chan *Pod
	// probes serves the probes of a sidecar. worker is the process of an agent with a command, after the barrier is lifted.
	probes *probeServer
	worker *worker
	// ended is the signal that the agent has received; 0 before.
	ended syscall.Signal
	// waiting says how long the barrier is held, which is logged once.
	waiting bool
}

func newAgent(config *Config, c *client, signals <-chan os.Signal) *agent {
	a := &agent{config: config, client: c, signals: signals, sets: make(chan *JobSet, 1), reports: make(chan *Pod, 1)}
	if config.Sidecar() {
		a.state.maxBackoff = config.MaxBackoff
	}
	return a
}

// run returns the exit code. An error is one that the agent could not go on with.
func (a *agent) run(ctx context.Context) (int, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if a.config.Sidecar() {
		var err error
		if a.probes, err = startProbeServer(a.config); err != nil {
			return 1, err
		}
	}
	go a.client.watch(ctx, a.latest)
	for {
		code, after, err := a.step(ctx)
		if code != nil {
			return *code, err
		}
		if code, err := a.await(ctx, after); code != nil {
			return *code, err
		}
	}
}

// latest sends a state of the set. It replaces a state that was not taken yet.
func (a *agent) latest(set *JobSet) {
	select {
	case <-a.sets:
	default:
	}
	a.sets <- set
}

// step does what the state asks for. It returns the exit code if the agent ends, and otherwise after which time to look
// again, 0 if that need not be.
func (a *agent) step(ctx context.Context) (*int, time.Duration, error) {
	log := klog.FromContext(ctx)
	do, after := a.state.next(time.Now())
	switch {
	case a.ended != 0:
		// The worker is about to end.
	case do == restart:
		log.Info("Restarting, because pods of the JobSet have begun a later attempt", "attempt", *a.state.attempt, "exitCode", a.config.ExitCode)
		if a.worker != nil {
			a.worker.kill()
		}
		return &a.config.ExitCode, 0, nil
	case do == lift:
		log.Info("The barrier is lifted", "waits", a.state.set.waits())
		if err := a.lift(); err != nil {
			code := cannotRun
			return &code, 0, err
		}
	case after > 0 && !a.waiting:
		a.waiting = true
		log.Info("The worker is held back after restarts in short succession", "for", after.Round(time.Millisecond), "restarts",
			a.state.pod.restarts())
	}
	return nil, after, nil
}

func (a *agent) lift() (err error) {
	a.state.lifted = true
	if a.probes != nil {
		a.probes.lift()
		return nil
	}
	a.worker, err = startWorker(a.config.Shell, a.config.Command)
	return err
}

// await waits for something to happen. It returns the exit code if the agent ends.
func (a *agent) await(ctx context.Context, after time.Duration) (*int, error) {
	var timer <-chan time.Time
	if after > 0 {
		t := time.NewTimer(after)
		defer t.Stop()
		timer = t.C
	}
	var failed <-chan error
	if a.probes != nil {
		failed = a.probes.failed
	}
	var ended <-chan int
	if a.worker != nil {
		ended = a.worker.ended
	}
	select {
	case set := <-a.sets:
		a.observe(ctx, set)
	case pod := <-a.reports:
		a.state.reported(pod, time.Now())
	case <-timer:
	case err := <-failed:
		code := 1
		return &code, err
	case code := <-ended:
		if a.ended != 0 {
			code = 128 + int(a.ended)
		}
		a.worker.kill() // what it has left behind
		return &code, nil
	case s := <-a.signals:
		return a.end(s), nil
	}
	return nil, nil
}

// observe takes a state of the set, and logs once that the server cannot read it, and that it can again.
func (a *agent) observe(ctx context.Context, set *JobSet) {
	was := a.state.unreadable
	if a.state.observe(set) == report {
		go a.report(ctx, *a.state.attempt)
	}
	switch log := klog.FromContext(ctx); {
	case a.state.unreadable && !was:
		log.Info("The server cannot read the JobSet; this pod stays as it is until the server can", "jobset", a.config.JobSet, "cause",
			set.Annotations[unreadable.Annotation])
	case was && !a.state.unreadable:
		log.Info("The server can read the JobSet again", "jobset", a.config.JobSet)
	}
}

// end passes a signal on to the worker, and waits for it. Without a worker the agent ends at once.
func (a *agent) end(s os.Signal) *int {
	a.ended, _ = s.(syscall.Signal)
	if a.worker != nil {
		a.worker.signal(a.ended)
		return nil
	}
	code := 128 + int(a.ended)
	return &code
}

func (a *agent) report(ctx context.Context, attempt int32) {
	klog.FromContext(ctx).Info("This pod waits for the other pods of its JobSet", "jobset", a.config.JobSet, "attempt", attempt)
	if pod, err := a.client.report(ctx, attempt); err == nil {
		a.reports <- pod
	}
}
