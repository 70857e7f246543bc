// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"testing"
	"time"
)

// withoutWitness is the control of all other tests: the same cluster, the same garbage collector, an empty store, and a server without the
// witness. If the Jobs survive this, the other tests prove nothing.
func (c *cluster) withoutWitness(t *testing.T) {
	namespace, removed := c.namespace(t, "control"), c.namespace(t, "removed")
	c.create(t, namespace, 0, sets)
	c.create(t, removed, 0, 1)
	before := c.running(t, namespace, sets)
	c.running(t, removed, 1)

	begin := time.Now()
	c.start(t, on(c.store(t, "control")), "--store-witness=false")
	c.deleteNamespace(t, removed)
	lost := deletedJobs(c.watch(t, namespace, before, timeout, func(lost []string) bool { return deletedJobs(lost) == sets }))
	report(t, row{fault: "empty store, without the witness", jobs: sets, deleted: lost, watched: time.Since(begin)})
	if lost != sets {
		t.Errorf("%d of %d Jobs were deleted", lost, sets)
	}
	took := c.namespaceEnds(t, removed)
	t.Logf("the namespace was finalized after %s, and its set is still in the right store", took.Round(time.Second))
}
