// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"

	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Phase is the state of an object in the words of its table. Every command shows it, and prints it with -o json.
type Phase struct {
	// State is the phase.
	State string `json:"state"`
	// Reason is why the object is in it, in one word, and Message in a sentence.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Words are the state with its reason, like "Starting (JobsNotReady)". An object that has completed needs none.
func (p Phase) Words() string {
	if p.Reason == "" || p.Reason == p.State || p.State == helper.PhaseCompleted {
		return p.State
	}
	return fmt.Sprintf("%s (%s)", p.State, p.Reason)
}

// Jobs are the numbers of a set.
type Jobs struct {
	// JobsReady is the number of Jobs that are ready or have succeeded, and JobsWanted that of all Jobs.
	JobsReady  int `json:"jobsReady"`
	JobsWanted int `json:"jobsWanted"`
	// Attempt is the number of the current attempt.
	Attempt int `json:"attempt,omitempty"`
}

// ReadyOf are the Jobs that are ready, of all, like "1/2".
func (j Jobs) ReadyOf() string { return fmt.Sprintf("%d/%d", j.JobsReady, j.JobsWanted) }

// Summary is the state of a set with its numbers, as `kubectl get jobsets -o wide` has them.
type Summary struct {
	Phase
	Jobs
}

// Summarize returns the state of a set.
func Summarize(js *jobsetv1alpha2.JobSet) Summary {
	s := helper.Summarize(js)
	return Summary{
		Phase{State: s.Phase, Reason: s.Reason, Message: cli.Clean(s.Message)},
		Jobs{JobsReady: int(s.Jobs.Up), JobsWanted: int(s.Jobs.Wanted), Attempt: int(s.Attempt)},
	}
}

// NoAttempts returns what is said about a set without a history of attempts.
func NoAttempts(js *jobsetv1alpha2.JobSet) string {
	if InMultiKueue(js) {
		return "Kueue copies no history of attempts from the cluster that runs the set; `kubectl jobset why " + js.Name + "` names the cluster"
	}
	return "this server keeps no history of attempts (status.attempts); it is a feature of jobset-apiserver"
}

// InMultiKueue returns whether Kueue runs the set, or will run it, in another cluster.
func InMultiKueue(js *jobsetv1alpha2.JobSet) bool {
	return ptr.Deref(js.Spec.ManagedBy, "") == jobsetv1alpha2.MultiKueueControllerName
}

// LacksAttempts returns whether the set has run and its server has kept no history of that.
func LacksAttempts(js *jobsetv1alpha2.JobSet) bool {
	if len(js.Status.Attempts) > 0 {
		return false
	}
	finished, _ := helper.Finished(js)
	return helper.CountJobs(js).Seen > 0 || js.Status.Restarts > 0 || finished != ""
}

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
