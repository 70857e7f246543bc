// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// lives times the number of phases is the number of kills in a long run. A short run has half of them.
const lives = 4

// TestControllerKilledAtAnyWrite kills the controller ten times, and twenty times in a long run: in each phase of two
// or four lives, at a write chosen at random, before or after kube-apiserver has carried that write out. In two phases
// of each life our API server restarts at the same time.
func TestControllerKilledAtAnyWrite(t *testing.T) {
	tier.Safety(t)
	dice := newDice(t)
	p := newProxy(t)
	controller := supervise(newControllers(t, p.kubeconfig, "--leader-elect=false"))
	kills, number := 0, lives
	if rounds() == 0 {
		number /= 2
	}
	for n := range number {
		l := newLife(t, dice)
		phases := l.phases()
		first := dice.IntN(len(phases))
		withServer := map[int]bool{first: true, (first + 1 + dice.IntN(len(phases)-1)) % len(phases): true}
		for i, phase := range phases {
			at, done := 1+dice.IntN(phase.writes), dice.IntN(2) == 0
			t.Logf("life %d, %s: kill at write %d, done: %t, server restarts: %t", n+1, phase.name, at, done, withServer[i])
			k := &killer{at: int64(at), done: done, kill: controller.kill, andServer: withServer[i]}
			p.use(k.intercept)
			l.live(phase)
			p.use(nil)
			if !k.struck() {
				t.Logf("life %d, %s: %d writes were enough; killed after them", n+1, phase.name, k.seen.Load())
			}
			if err := k.wait(); err != nil {
				t.Error(err)
			}
			kills++
		}
		if t.Failed() {
			return
		}
	}
	if err := controller.died(kills); err != nil {
		t.Error(err)
	}
}

// killer ends the controller at one of its writes.
type killer struct {
	at        int64
	done      bool // whether the write is carried out
	kill      func()
	andServer bool // whether our API server restarts too

	seen   atomic.Int64
	once   sync.Once
	server sync.WaitGroup
	err    error
}

func (k *killer) intercept(w http.ResponseWriter, r *http.Request, pass http.Handler) {
	if !changes(r) || k.seen.Add(1) != k.at {
		pass.ServeHTTP(w, r)
		return
	}
	if k.done {
		passUnheard(r, pass)
	}
	k.once.Do(k.strike)
	loseAnswer()
}

func (k *killer) strike() {
	if k.andServer {
		k.server.Go(func() { k.err = shared.restartAPIServer() })
	}
	k.kill()
}

// struck reports whether the write came; if not, it strikes now.
func (k *killer) struck() bool {
	late := false
	k.once.Do(func() {
		late = true
		k.strike()
	})
	return !late
}

// wait returns when our API server is back.
func (k *killer) wait() error {
	k.server.Wait()
	return k.err
}
