// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestControllerKilledDuringServerFaults kills the controller at a write chosen at random, in each phase of a life, while one
// of the faults happens to three servers and their etcd, again and again. A short run has one life with a fault chosen at
// random, a long run has twenty kills for each fault.
func TestControllerKilledDuringServerFaults(t *testing.T) {
	tier.OnRequest(t, "faults of three servers on three members of etcd")
	r := useReplicated(t)
	faults := serverFaults
	number := lives
	if rounds() == 0 {
		at := newDice(t).IntN(len(serverFaults))
		faults, number = serverFaults[at:at+1], 1
	}
	for _, fault := range faults {
		t.Run(strings.ReplaceAll(fault.name, " ", "-"), func(t *testing.T) {
			dice := newDice(t)
			p := newProxy(t)
			controller := supervise(newControllers(t, p.kubeconfig, "--leader-elect=false"))
			kills := 0
			for n := range number {
				l := newLife(t, dice)
				stop := r.keepHappening(t, fault)
				kills += l.liveWithKills(n+1, p, controller.kill)
				t.Logf("life %d: the fault happened %d times", n+1, stop())
			}
			if err := controller.died(kills); err != nil {
				t.Error(err)
			}
		})
	}
}

// keepHappening lets a fault happen until the returned function is called, which returns how often it did.
func (r *replicated) keepHappening(t *testing.T, fault serverFault) (stop func() int) {
	t.Helper()
	ctx := context.Background()
	over := make(chan struct{})
	times := make(chan int, 1)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-over:
				times <- n
				return
			default:
			}
			if err := fault.happen(ctx, r); err != nil {
				t.Errorf("%s: %v", fault.name, err)
			}
			if err := r.recovered(ctx); err != nil {
				t.Errorf("after %s: %v", fault.name, err)
				times <- n + 1
				return
			}
		}
	}()
	happened := -1
	stop = func() int {
		if happened < 0 {
			close(over)
			happened = <-times
		}
		return happened
	}
	t.Cleanup(func() { stop() })
	return stop
}

// liveWithKills goes through a life and ends the controller once in each phase. It returns the number of kills.
func (l *life) liveWithKills(number int, p *proxy, kill func()) (kills int) {
	l.Helper()
	for _, phase := range l.phases() {
		k := &killer{at: int64(1 + l.dice.IntN(phase.writes)), done: l.dice.IntN(2) == 0, kill: kill}
		l.Logf("life %d, %s: kill at write %d, done: %t", number, phase.name, k.at, k.done)
		p.use(k.intercept)
		l.live(phase)
		p.use(nil)
		k.struck()
		kills++
	}
	return kills
}
