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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation/memory"
)

// hardships are what only some histories have: a second controller that does not notice that it no longer leads, and pods that stop slowly.
type hardships struct {
	twoControllers, slowPods bool
	// rival is the second controller; nil if there is none. starts is how many controllers there were.
	rival  *process
	starts int
	// apart is trouble that only one of two controllers has.
	apart apart
	// said is how many messages of its own a controller with a defect has written.
	said int
	// running ends controllers.
	running []context.CancelFunc
	// apartWrites are the times at which the status of the sequence, and Workloads, were written.
	apartWrites map[schema.GroupResource][]time.Time
	// stopAt is when the pods stop that terminate.
	stopAt time.Time
}

// apart is trouble of one controller: the API of Kueue is gone for it, or changes of Workloads are refused.
type apart struct {
	controller string
	gone       bool
	code       int
}

func controllerName(n int) string { return fmt.Sprintf("controller-%d", n) }

func newHardship(t *testing.T, lasting hardships, wanted ...string) simulation.Histories[mutant] {
	t.Helper()
	return simulation.Histories[mutant]{
		Run: func(seed uint64, m mutant, trace *[]string) (map[string]int, string) {
			return run(t, seed, m, trace, lasting)
		},
		// The goroutines of two controllers are scheduled in another order in each run, so that a seed does not repeat a history.
		Number: 8, Decisions: "writes of Workloads", Wanted: wanted,
	}
}

// ruleApart is the rule about controllers that see different things.
const ruleApart = "two controllers do not write against each other without a pause"

// mostWrites is how often the status of the sequence, or its Workload, may be written in a minute: a few times for each change of the cluster.
const mostWrites = 300

// checkPause ends the controllers if they write without a pause. Else time would never go on.
func (e *env) checkPause(last memory.Request) {
	resource := last.Resource.GroupResource()
	if resource != sequences && resource != workloads || !isWrite(last.Verb) {
		return
	}
	e.apartWrites[resource] = append(e.apartWrites[resource], last.At)
	at := e.apartWrites[resource]
	n := len(at) - 1 - mostWrites
	if n < 0 || last.At.Sub(at[n]) >= minute {
		return
	}
	e.breaks(ruleApart, "%s are written %d times in %s", resource, mostWrites+1, last.At.Sub(at[n]))
	for _, end := range e.running {
		end()
	}
}

// begin makes the history one with hardships.
func (e *env) begin(lasting hardships) {
	e.twoControllers, e.slowPods = lasting.twoControllers, lasting.slowPods
}

// endure begins or ends the second controller at times.
func (e *env) endure() {
	if !e.twoControllers {
		return
	}
	if e.Dice.Percent(8) {
		e.turnApart()
	}
	if !e.Dice.Percent(8) {
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

// turnApart begins or ends trouble that only one of the controllers has.
func (e *env) turnApart() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.apart != (apart{}) {
		e.apart = apart{}
		e.Note("both controllers have the same answers again")
		return
	}
	e.apart = apart{controllerName(e.starts - e.Dice.IntN(2)), e.Dice.Percent(50), simulation.OneOf(e.Dice, http.StatusForbidden, http.StatusInternalServerError)}
	e.Note("only for %s: %+v", e.apart.controller, e.apart)
	e.Seen["trouble of one controller"]++
}

// trouble returns what becomes of a request.
func (e *env) trouble(r *memory.Request) memory.Trouble {
	e.mu.Lock()
	apart := e.apart
	e.mu.Unlock()
	switch ofKueue := r.Resource.Group == kueue.GroupVersion.Group; {
	case !ofKueue || r.Client != apart.controller:
	case apart.gone:
		return memory.Trouble{Code: http.StatusNotFound}
	case isWrite(r.Verb) && r.Resource.GroupResource() == workloads:
		return memory.Trouble{Code: apart.code}
	}
	return e.weather.Trouble(r)
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
	return newHardship(t, hardships{twoControllers: true}, "second controllers", "trouble of one controller", "admissions")
}

func newSlowPods(t *testing.T) simulation.Histories[mutant] {
	t.Helper()
	return newHardship(t, hardships{slowPods: true}, "pods that stop slowly")
}

func TestSecondControllers(t *testing.T) { newSecondControllers(t).Test(t) }

// TestControllersOfTwoVersions has a second controller with another message about what a sequence waits for, as after an update.
func TestControllersOfTwoVersions(t *testing.T) {
	histories := newSecondControllers(t)
	histories.Faultless = mutant{ownMessages}
	histories.Test(t)
}

func TestSlowPods(t *testing.T) { newSlowPods(t).Test(t) }

// TestHardshipsShowDefects finds defects of which 10, 15 and 12 of 40 histories show the first, the second and the third.
func TestHardshipsShowDefects(t *testing.T) {
	newSecondControllers(t).ShowDefects(t, 30, map[string]simulation.Defect[mutant]{
		"a Workload whose name each controller chooses": {Mutant: mutant{ownNames}, Rules: []string{ruleOnce}},
		"a message that is another one in each write":   {Mutant: mutant{newMessages}, Rules: []string{ruleApart}},
	})
	newSlowPods(t).ShowDefects(t, 30, map[string]simulation.Defect[mutant]{
		"pods that terminate taken for gone": {Mutant: misreading("jobs", `"terminating"`, `"_erminating"`), Rules: []string{ruleInUse}},
	})
}

// ownNames makes each controller one that creates Workloads with a name of its own, so that the name keeps none from creating a second one.
func ownNames(e *env, next http.RoundTripper) http.RoundTripper {
	return rewriting(sends("post", "workloads", ""), `"name":"sequentialjob-`, fmt.Sprintf(`"name":"controller%d-`, e.starts)).transport(e, next)
}

// newMessages has another message in each write about what a sequence waits for, so that no write repeats another.
func newMessages(e *env, next http.RoundTripper) http.RoundTripper {
	return memory.RoundTripper(func(r *http.Request) (*http.Response, error) {
		e.mu.Lock()
		e.said++
		message := fmt.Sprintf("waits for quota %d", e.said)
		e.mu.Unlock()
		return rewriting(sends("put", "sequentialjobs", "waits for quota"), "waits for quota", message).transport(e, next).RoundTrip(r)
	})
}

// ownMessages makes every other controller one that says otherwise what a sequence waits for. What it has said it sends again as it is.
func ownMessages(e *env, next http.RoundTripper) http.RoundTripper {
	if e.starts%2 == 0 {
		return next
	}
	return rewriting(sends("put", "sequentialjobs", "waits for quota"), "waits for quota", "needs quota").transport(e, next)
}
