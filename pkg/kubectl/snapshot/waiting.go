// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// Waiting is a state of another replicatedJob that a replicatedJob waits for before its Jobs start.
type Waiting struct {
	// On is the replicatedJob that is waited for.
	On string
	// For is the state: Ready or Complete.
	For string
	// Reached of Wanted Jobs have that state.
	Reached, Wanted int
	// Ordered means that the order of the start asks for it, and not dependsOn.
	Ordered bool
}

func (w Waiting) String() string {
	cause := "dependsOn"
	if w.Ordered {
		cause = "InOrder start"
	}
	state := "ready"
	if w.For == string(jobsetv1alpha2.DependencyComplete) {
		state = "complete"
	}
	return fmt.Sprintf("waits until %s is %s, %d of %d (%s)", w.On, state, w.Reached, w.Wanted, cause)
}

// WaitingFor returns what the replicatedJob at that place in the spec waits for, by the counts of the status.
func WaitingFor(js *jobsetv1alpha2.JobSet, place int) []Waiting {
	var waiting []Waiting
	counts := map[string]jobsetv1alpha2.ReplicatedJobStatus{}
	for _, status := range js.Status.ReplicatedJobsStatus {
		counts[status.Name] = status
	}
	add := func(w Waiting) {
		if w.Reached < w.Wanted {
			waiting = append(waiting, w)
		}
	}
	started := func(name string) int {
		c := counts[name]
		return int(c.Ready + c.Succeeded + c.Failed)
	}
	for _, dependency := range js.Spec.ReplicatedJobs[place].DependsOn {
		w := Waiting{On: dependency.Name, For: string(dependency.Status), Reached: started(dependency.Name)}
		if dependency.Status == jobsetv1alpha2.DependencyComplete {
			w.Reached = int(counts[dependency.Name].Succeeded)
		}
		for i := range js.Spec.ReplicatedJobs {
			if js.Spec.ReplicatedJobs[i].Name == dependency.Name {
				w.Wanted = int(helper.Replicas(&js.Spec.ReplicatedJobs[i]))
			}
		}
		add(w)
	}
	if policy := js.Spec.StartupPolicy; policy != nil && policy.StartupPolicyOrder == jobsetv1alpha2.InOrder {
		for i := range place {
			before := &js.Spec.ReplicatedJobs[i]
			w := Waiting{On: before.Name, For: string(jobsetv1alpha2.DependencyReady), Reached: started(before.Name),
				Wanted: int(helper.Replicas(before)), Ordered: true}
			if w.Reached < w.Wanted {
				add(w)
				break // the first in the order holds back all that follow
			}
		}
	}
	return waiting
}
