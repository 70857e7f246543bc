// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation/memory"
)

// hardships are what only some histories have: a second controller that does not notice that it no longer leads, and pods that stop slowly.
type hardships struct {
	twoControllers, slowPods bool
	// rival is the second controller; nil if there is none. starts is how many controllers there were.
	rival  *process
	starts int
	// running ends controllers.
	running []context.CancelFunc
	// stopAt is when the pods stop that terminate.
	stopAt time.Time
}

func newHardship(t *testing.T, lasting hardships, wanted ...string) simulation.Histories[mutant] {
	t.Helper()
	return simulation.Histories[mutant]{
		Run: func(seed uint64, m mutant, trace *[]string) (map[string]int, string) {
			return run(t, seed, m, trace, lasting)
		},
		Number: 8, Long: 300, Decisions: "writes of Workloads", Wanted: wanted,
	}
}

// ruleApart is the rule about controllers that see different things.
const ruleApart = "two controllers do not write against each other without a pause"

// checkPause ends the controllers if they send requests without a pause. Else time would never go on.
func (e *env) checkPause(last memory.Request) {
	const most = 1000
	if n := len(e.requests); n <= most || e.requests[n-most].At.Before(last.At) {
		return
	}
	e.breaks(ruleApart, "%d requests at once, the last of which is %s %s", most, last.Verb, last.Resource.Resource)
	for _, end := range e.running {
		end()
	}
}

// begin makes the history one with hardships. With two controllers, the API of Kueue stays, and no request fails: while only one of them has
// noticed such trouble, each corrects the status of the other without a pause.
func (e *env) begin(lasting hardships) {
	e.twoControllers, e.slowPods = lasting.twoControllers, lasting.slowPods
	if e.twoControllers {
		e.faults.api, e.faults.weather = 0, 0
	}
}

// endure begins or ends the second controller at times.
func (e *env) endure() {
	if !e.twoControllers || !e.Dice.Percent(8) {
		return
	}
	if e.rival != nil {
		e.stopRival()
		return
	}
	first := e.process
	e.start()
	e.rival, e.process = e.process, first
	e.Seen["second controllers"]++
	e.Note("it is a second one")
}

func (e *env) stopRival() {
	if e.rival == nil {
		return
	}
	e.Note("the second controller ends")
	e.rival.cancel()
	<-e.rival.ended
	e.rival = nil
}

// letTerminate lets the Job controller delete the pods of a Job that is suspended. They run on for a while.
func (e *env) letTerminate(object *unstructured.Unstructured) {
	change(e, jobs, object, func(job *batchv1.Job) { job.Status = batchv1.JobStatus{Terminating: ptr.To[int32](1)} })
	e.stopAt = e.Now().Add(simulation.OneOf(e.Dice, 10*time.Second, minute, 4*minute))
	e.Note("pods of %s terminate until %s", object.GetName(), e.stopAt.Sub(simulation.Beginning))
	e.Seen["pods that stop slowly"]++
}

func newSecondControllers(t *testing.T) simulation.Histories[mutant] {
	t.Helper()
	return newHardship(t, hardships{twoControllers: true}, "second controllers", "admissions")
}

func newSlowPods(t *testing.T) simulation.Histories[mutant] {
	t.Helper()
	return newHardship(t, hardships{slowPods: true}, "pods that stop slowly")
}

func TestSecondControllers(t *testing.T) { newSecondControllers(t).Test(t) }
func TestSlowPods(t *testing.T)          { newSlowPods(t).Test(t) }

// TestHardshipsShowDefects finds defects of which 10, 15 and 12 of 40 histories show the first, the second and the third.
func TestHardshipsShowDefects(t *testing.T) {
	newSecondControllers(t).ShowDefects(t, 30, map[string]simulation.Defect[mutant]{
		"a Workload whose name each controller chooses": {Mutant: mutant{ownNames}, Rules: []string{ruleOnce}},
		"a message that each controller puts otherwise": {Mutant: mutant{ownMessages}, Rules: []string{ruleApart}},
	})
	newSlowPods(t).ShowDefects(t, 30, map[string]simulation.Defect[mutant]{
		"pods that terminate taken for gone": {Mutant: misreading("jobs", `"terminating"`, `"_erminating"`), Rules: []string{ruleInUse}},
	})
}

// ownNames makes each controller one that creates Workloads with a name of its own, so that the name keeps none from creating a second one.
func ownNames(e *env, next http.RoundTripper) http.RoundTripper {
	return rewriting(sends("post", "workloads", ""), `"name":"sequentialjob-`, fmt.Sprintf(`"name":"controller%d-`, e.starts)).transport(e, next)
}

// ownMessages makes each controller one that says otherwise what a sequence waits for.
func ownMessages(e *env, next http.RoundTripper) http.RoundTripper {
	return rewriting(sends("put", "sequentialjobs", "waits for quota"), "waits for quota", fmt.Sprintf("waits for quota %d", e.starts)).transport(e, next)
}
