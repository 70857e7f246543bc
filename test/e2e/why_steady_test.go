// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"sync"
	"testing"
)

// steadyFaults are ten of allFaults whose state lasts until something changes it, and which disturb no other test: a decision of a user,
// refusals of the API and of admission, what scheduler and kubelets report, a dependency, and both ends of a set.
var steadyFaults = []string{
	"the set was created suspended",
	"the Job template is refused by the API",
	"a quota refuses the pods",
	"the service account of the pods is missing",
	"a scheduling gate holds the pods",
	"no node has room",
	"an image cannot be pulled",
	"a dependency is not ready",
	"the restarts are used up",
	"the set is complete",
}

// TestWhyOfSteadyStates asks the plugin about ten sets, which all exist at once, each in a namespace of its own.
func TestWhyOfSteadyStates(t *testing.T) {
	t.Parallel()
	faults := allFaults()
	var running sync.WaitGroup
	var asking sync.Mutex
	for _, name := range steadyFaults {
		f, found := faults[name]
		if !found || f.alone {
			t.Errorf("%s: no fault that may happen beside other tests", name)
			continue
		}
		running.Go(func() {
			t.Run(name, func(t *testing.T) {
				k := newKubectl(t)
				f.seed(k)
				// One plugin at a time: the states last, and ten plugins would only make each other slow.
				asking.Lock()
				defer asking.Unlock()
				k.whyFirst(f.want, f.words...)
			})
		})
	}
	running.Wait()
}
