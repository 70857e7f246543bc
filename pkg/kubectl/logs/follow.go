// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// follower prints lines as they are written, of the pods that are there and of those that come later. It ends when the set
// has finished and every log has ended.
type follower struct {
	selection selection
	options   corev1.PodLogOptions
	open      opener
	out       *sink
	// slots are as many as there may be logs at the same time.
	slots chan struct{}
	// again is how long to wait before a log is opened again whose container goes on, and grace how long the log of a pod
	// that is gone may still be read.
	again, grace time.Duration

	lock sync.Mutex
	// pods are the pods that exist, as last seen.
	pods map[types.UID]*corev1.Pod
	// begun are the logs that are or were read, with what ends it.
	begun   map[run]context.CancelFunc
	late    bool // what begins now is new, and is printed from its first line
	waiting bool // the user was told that logs wait
	failed  int
	// active is how many logs are read. Once closed, no further one is begun, and idle is closed with the last of them.
	active int
	closed bool
	idle   chan struct{}
}

// run is one run of a container.
type run struct {
	pod       types.UID
	container string
	restarts  int32
}

func newFollower(s selection, options corev1.PodLogOptions, most int, open opener, out *sink) *follower {
	return &follower{
		selection: s, options: options, open: open, out: out, slots: make(chan struct{}, most), again: time.Second, grace: 3 * time.Second,
		pods: map[types.UID]*corev1.Pod{}, begun: map[run]context.CancelFunc{}, idle: make(chan struct{}),
	}
}

// see begins to read what the pod has new.
func (f *follower) see(ctx context.Context, pod *corev1.Pod) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.pods[pod.UID] = pod
	for _, s := range f.selection.streams(pod) {
		key := run{pod.UID, s.container, s.run}
		if f.begun[key] != nil || f.closed {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		f.begun[key] = cancel
		options := f.options
		options.Container = s.container
		if f.late {
			options.TailLines, options.SinceSeconds = nil, nil
		}
		f.active++
		go func() {
			defer f.done()
			defer cancel()
			f.read(ctx, s, options)
		}()
	}
}

func (f *follower) done() {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.active--
	f.rest()
}

// begin means that all pods were seen that were there before.
func (f *follower) begin() {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.late = true
}

// close lets no further log begin, and returns what is closed when the last one has ended.
func (f *follower) close() <-chan struct{} {
	f.lock.Lock()
	defer f.lock.Unlock()
	if !f.closed {
		f.closed = true
		f.rest()
	}
	return f.idle
}

// rest reports that nothing more will be read.
func (f *follower) rest() {
	if f.closed && f.active == 0 {
		close(f.idle)
	}
}

// gone forgets a pod. kubelet ends its logs; a node that is lost cannot.
func (f *follower) gone(pod *corev1.Pod) {
	f.lock.Lock()
	defer f.lock.Unlock()
	delete(f.pods, pod.UID)
	for key, cancel := range f.begun {
		if key.pod == pod.UID {
			time.AfterFunc(f.grace, cancel)
		}
	}
}

// goesOn reports whether the run of the container is the present one and has not ended, as far as is known.
func (f *follower) goesOn(s stream) bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	pod := f.pods[s.pod.UID]
	if pod == nil {
		return false
	}
	status := statusOf(pod, s.container)
	return status != nil && status.RestartCount == s.run && status.State.Running != nil
}

// read prints one run of a container. Connections end when kubelet or the API server is restarted, or nothing was written for
// hours; then the log is opened again where it was left.
func (f *follower) read(ctx context.Context, s stream, options corev1.PodLogOptions) {
	select {
	case f.slots <- struct{}{}:
	default:
		f.tellWaiting()
		select {
		case f.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
	defer func() { <-f.slots }()
	prefix := f.out.prefix(s.rank)
	position := &Position{stamped: options.Timestamps}
	options.Follow, options.Timestamps = true, true
	for {
		err := f.once(ctx, s, &options, prefix, position)
		switch {
		case ctx.Err() != nil || apierrors.IsNotFound(err):
			return
		case !f.goesOn(s):
			if err != nil {
				f.fail(s, err)
			}
			return
		case !cli.Pause(ctx, f.again):
			return
		}
		options.TailLines, options.SinceSeconds, options.SinceTime = nil, nil, position.Since()
	}
}

func (f *follower) once(ctx context.Context, s stream, options *corev1.PodLogOptions, prefix string, p *Position) error {
	log, err := f.open(ctx, s, options)
	if err != nil {
		return err
	}
	defer log.Close()
	return EachLine(log, func(line []byte) error {
		if line = p.Next(line); line == nil {
			return nil
		}
		return f.out.line(prefix, line)
	})
}

func (f *follower) fail(s stream, err error) {
	f.out.note("[%s] the log of pod %s cannot be read: %v", s.rank, s.pod.Name, err)
	f.lock.Lock()
	defer f.lock.Unlock()
	f.failed++
}

func (f *follower) tellWaiting() {
	f.lock.Lock()
	told := f.waiting
	f.waiting = true
	f.lock.Unlock()
	if !told {
		f.out.note("more than %d logs: further ones are shown when others have ended; raise --max-log-requests to show more at once",
			cap(f.slots))
	}
}

// Position is how far a log was printed. Logs are asked for with times, by which lines are known that were printed already.
type Position struct {
	stamped bool // the user wants to see the times
	last    time.Time
}

// Next returns what to print of a line, or nil.
func (p *Position) Next(line []byte) []byte {
	stamp, rest, found := bytes.Cut(line, []byte(" "))
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	if !found || err != nil {
		return line
	}
	if !at.After(p.last) {
		return nil
	}
	p.last = at
	if p.stamped {
		return line
	}
	return rest
}

// Since is the time from which the log is still to be printed; nil if no line was.
func (p *Position) Since() *metav1.Time {
	if p.last.IsZero() {
		return nil
	}
	return &metav1.Time{Time: p.last}
}

// errForbidden makes a refused watch readable.
func errForbidden(what string, err error) error {
	return fmt.Errorf("--follow: watching %s: %w", what, err)
}

// refused reports errors that a retry does not cure.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err))
}
