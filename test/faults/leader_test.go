// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

const (
	// A leader loses its lease when kube-apiserver does not answer for the time of renewDeadline.
	lease, renewDeadline, retry = 40 * time.Second, 30 * time.Second, time.Second
)

// replica is one of two controllers, with a proxy of its own, by which the test knows who writes.
type replica struct {
	*controllers
	proxy   *proxy
	process *framework.Process
}

func newReplica(t *testing.T) *replica {
	t.Helper()
	p := newProxy(t)
	c := newControllers(t, p.kubeconfig,
		fmt.Sprintf("--leader-elect-lease-duration=%v", lease),
		fmt.Sprintf("--leader-elect-renew-deadline=%v", renewDeadline),
		fmt.Sprintf("--leader-elect-retry-period=%v", retry))
	return &replica{controllers: c, proxy: p, process: c.must()}
}

// TestLeaderEnds ends the leader of two controllers in the middle of its writes: at once, by stopping it for longer than
// its lease lasts, and by asking it to end. The other one goes on with what was begun.
func TestLeaderEnds(t *testing.T) {
	tier.OnRequest(t, "leases that end in real time")
	dice := newDice(t)
	l := newLife(t, dice)
	replicas := []*replica{newReplica(t), newReplica(t)}
	phases := l.phases()
	l.live(phases[0])

	killed, _ := liveWithout(l, replicas, phases[1], func(r *replica) { r.process.Kill() })
	*killed = *newReplica(t)

	stopped, _ := liveWithout(l, replicas, phases[2], func(r *replica) { _ = r.process.Signal(syscall.SIGSTOP) })
	if err := stopped.process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if code := stopped.process.Wait(t); code != 1 {
		t.Errorf("a leader that lost its lease ended with %d; must end with 1", code)
	}
	*stopped = *newReplica(t)

	asked, after := liveWithout(l, replicas, phases[3], func(r *replica) { _ = r.process.Signal(syscall.SIGTERM) })
	if after >= lease {
		t.Errorf("the lease of a leader that was asked to end was taken after %v, must be given up before %v are over", after, lease)
	}
	if code := asked.process.Wait(t); code != 0 {
		t.Errorf("a leader that was asked to end ended with %d; must end with 0", code)
	}
	l.live(phases[4])
}

// liveWithout goes through a phase in which something happens to the leader at one of its writes. It returns that
// leader, and the time after which the other one had the lease.
func liveWithout(l *life, replicas []*replica, p phase, happen func(*replica)) (leader *replica, after time.Duration) {
	l.Helper()
	at, writes := 1+l.dice.Int64N(jobs), new(atomic.Int64)
	l.Logf("%s: at write %d", p.name, at)
	type loss struct {
		leader *replica
		holder string
		after  time.Duration
		err    error
	}
	lost := make(chan loss, 1)
	for _, r := range replicas {
		r.proxy.use(func(w http.ResponseWriter, request *http.Request, pass http.Handler) {
			if !changes(request) || writes.Add(1) != at {
				pass.ServeHTTP(w, request)
				return
			}
			passUnheard(request, pass)
			before, err := holder(l.ctx)
			if err != nil {
				lost <- loss{err: err}
				return
			}
			happen(r)
			begin := time.Now()
			go func() {
				now, err := otherHolder(l.ctx, before)
				lost <- loss{r, now, time.Since(begin), err}
			}()
			loseAnswer()
		})
	}
	l.live(p)
	for _, r := range replicas {
		r.proxy.use(nil)
	}
	select {
	case got := <-lost:
		if got.err != nil {
			l.Fatal(got.err)
		}
		l.Logf("%s: %s has the lease after %v", p.name, got.holder, got.after.Round(100*time.Millisecond))
		return got.leader, got.after
	case <-time.After(phaseTimeout):
		l.Fatalf("%s: nothing happened to the leader in %d writes", p.name, writes.Load())
		return nil, 0
	}
}

// holder is who has the lease now; "" if no controller has it.
func holder(ctx context.Context) (string, error) {
	lease, err := shared.Kube.CoordinationV1().Leases("jobset-system").Get(ctx, "6d4f6a47.jobset.x-k8s.io", metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("looking at the lease: %w", err)
	}
	return ptr.Deref(lease.Spec.HolderIdentity, ""), nil
}

// otherHolder waits for another controller to have the lease.
func otherHolder(ctx context.Context, before string) (now string, err error) {
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, phaseTimeout, true, func(ctx context.Context) (bool, error) {
		now, err = holder(ctx)
		return err == nil && now != "" && now != before, nil
	})
	if err != nil {
		return "", fmt.Errorf("waiting for another leader than %s: %w", before, err)
	}
	return now, nil
}
