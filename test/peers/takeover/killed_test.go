// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestKilledAtEveryStep kills the command in each of its steps, in both directions, and runs it again.
func TestKilledAtEveryStep(t *testing.T) {
	o, random := beginKilled(t)
	if err := upstream.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, direction := range []string{"to-server", "to-crd"} {
		for step := 1; !killed(t, random, direction, step); step++ {
			o.unchanged(t, fmt.Sprint(direction, ", killed at step ", step))
		}
		o.unchanged(t, direction)
	}
	o.works(t)
}

// TestUndone kills the command in each step before the API groups are switched, and undoes what it has done.
func TestUndone(t *testing.T) {
	o, random := beginKilled(t)
	if err := upstream.Stop(); err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= 7; step++ { // the seventh takes two seconds
		killed(t, random, "to-server", step)
		if out := migrate(t, "to-crd"); !strings.Contains(out, "Undoing migration") {
			t.Errorf("nothing was undone:\n%s", out)
		}
		o.unchanged(t, "undone")
	}
	migrate(t, "to-server")
	for step := 1; step <= 7; step++ {
		killed(t, random, "to-crd", step)
		if out := migrate(t, "to-server"); !strings.Contains(out, "Undoing migration") {
			t.Errorf("nothing was undone:\n%s", out)
		}
		o.unchanged(t, "undone")
	}
	migrate(t, "to-crd")
	o.works(t)
}

func beginKilled(t *testing.T) (*takeover, *rand.Rand) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	o := begin(t, 10, 2)
	startServer(t)
	return o, rand.New(rand.NewPCG(seed, 0))
}

// works starts the controller of upstream, which must have all sets as before, and ends them.
func (o *takeover) works(t *testing.T) {
	t.Helper()
	if err := upstream.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second) // it looks at every set when it starts
	o.unchanged(t, "under upstream's controller")
	o.owned(t)
	o.removeAll(t)
	o.awaitPods(t, 0)
}
