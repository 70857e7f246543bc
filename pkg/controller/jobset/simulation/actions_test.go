// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// Kinds of requests.
const (
	restartRequests = "restart the set"
	partRequests    = "restart a part of the set"
	suspendRequests = "suspend the set"
	resumeRequests  = "resume the set"
	cancelRequests  = "cancel the set"
	retryRequests   = "retry the set"
)

// request is an action that a user asks for, with all that the request says.
type request struct {
	kind string
	do   func(*jobset.JobSet, actions.Call) (*batch.JobSetActionStatus, error)
	// exact means that the request names the attempt that it is meant for.
	exact bool
}

// callAction lets a user ask for an action, as the server does it. Some requests come twice.
func (e *env) callAction() {
	before := e.set()
	r := e.randomRequest(before)
	first, err := e.carryOut(r)
	if err != nil {
		e.Note("user asks to %s: %v", r.kind, err)
		return
	}
	e.Note("user asks to %s: %s", r.kind, first.Message)
	e.personActed()
	after := e.set()
	e.invariants.acted(r, before, after)
	if !r.exact || !e.Dice.Percent(50) {
		return
	}
	again, err := e.carryOut(r)
	sameAnswer := first.Attempt == 0 || equality.Semantic.DeepEqual(first, again) // 0: there is no attempt to answer with
	if err != nil || !sameAnswer || !equality.Semantic.DeepEqual(after.Status, e.set().Status) {
		e.Fail("the same request twice is one action, with one answer", "%v, first %+v, then %+v", err, first, again)
	}
}

// randomRequest asks for what the set is ready for, or for anything.
func (e *env) randomRequest(js *jobsetv1alpha2.JobSet) request {
	var current int32
	if n := len(js.Status.Attempts); n > 0 {
		current = js.Status.Attempts[n-1].Number
	}
	var preconditions *batch.ActionPreconditions
	exact := e.Dice.Percent(50)
	if exact {
		preconditions = &batch.ActionPreconditions{Attempt: ptr.To(max(0, current-simulation.OneOf[int32](e.Dice, 0, 0, 0, 1)))}
	}
	spec := &batch.JobSetActionSpec{Reason: "because", Preconditions: preconditions}
	kind := simulation.OneOf(e.Dice, restartRequests, restartRequests, restartRequests, partRequests, partRequests, suspendRequests, resumeRequests, cancelRequests, retryRequests)
	if conditionIs(&js.Status, jobsetv1alpha2.JobSetFailed) {
		kind = retryRequests
	}
	r := request{kind: kind, exact: exact}
	switch kind {
	case suspendRequests:
		r.do = func(js *jobset.JobSet, c actions.Call) (*batch.JobSetActionStatus, error) {
			return actions.Suspend(js, spec, c)
		}
	case resumeRequests:
		r.do = func(js *jobset.JobSet, c actions.Call) (*batch.JobSetActionStatus, error) {
			return actions.Resume(js, spec, c)
		}
	case cancelRequests:
		r.do = func(js *jobset.JobSet, c actions.Call) (*batch.JobSetActionStatus, error) {
			return actions.Cancel(js, spec, c)
		}
	case retryRequests:
		retry := &batch.JobSetRetrySpec{Reason: "because", MaxRestarts: simulation.OneOf[int32](e.Dice, 0, 1, 1), Preconditions: preconditions}
		r.do = func(js *jobset.JobSet, c actions.Call) (*batch.JobSetActionStatus, error) {
			return actions.Retry(js, retry, c)
		}
	default:
		restart := &batch.JobSetRestartSpec{Reason: "because", Preconditions: preconditions, CountTowardsMaxRestarts: e.Dice.Percent(30)}
		if kind == partRequests {
			e.chooseJobs(js, restart)
		}
		r.do = func(js *jobset.JobSet, c actions.Call) (*batch.JobSetActionStatus, error) {
			return actions.Restart(js, restart, c)
		}
	}
	return r
}

// chooseJobs makes a request one for a single Job or all Jobs of a replicatedJob.
func (e *env) chooseJobs(js *jobsetv1alpha2.JobSet, spec *batch.JobSetRestartSpec) {
	rj := &js.Spec.ReplicatedJobs[e.Dice.IntN(len(js.Spec.ReplicatedJobs))]
	spec.Scope, spec.ReplicatedJob = batch.RestartScopeReplicatedJob, rj.Name
	if *rj.Replicas > 0 && e.Dice.Percent(60) {
		spec.Scope, spec.JobIndex = batch.RestartScopeJob, ptr.To(e.Dice.Int32N(*rj.Replicas))
	}
}

// carryOut does what the server does with a request: it stores the changed set, if it has changed.
func (e *env) carryOut(r request) (*batch.JobSetActionStatus, error) {
	before := e.set()
	var hub jobset.JobSet
	if err := jobsetv1alpha2.Convert_v1alpha2_JobSet_To_jobset_JobSet(before.DeepCopy(), &hub, nil); err != nil {
		panic(err)
	}
	answer, err := r.do(&hub, actions.Call{
		User: "alice", Now: e.Now(),
		Gates: gates.Gates{JobSetActiveDeadlineSeconds: e.gates.JobSetActiveDeadlineSeconds, ExecutionAttemptsTracking: e.gates.ExecutionAttemptsTracking},
	})
	if err != nil {
		return nil, err
	}
	var after jobsetv1alpha2.JobSet
	if err := jobsetv1alpha2.Convert_jobset_JobSet_To_v1alpha2_JobSet(&hub, &after, nil); err != nil {
		panic(err)
	}
	if isSuspended(before) != isSuspended(&after) {
		after.Generation++
	}
	if !equality.Semantic.DeepEqual(before, &after) {
		e.jobSets.Put(&after)
		e.Seen[r.kind]++
	}
	return answer, nil
}

// acted checks what an action did, and notes that controllers may not know of it.
func (r *invariants) acted(asked request, before, after *jobsetv1alpha2.JobSet) {
	if before.ResourceVersion == after.ResourceVersion || r.restored != nil {
		return
	}
	r.actedAt = number(after.ResourceVersion)
	if wrong := wrongWithHistory(&before.Status, &after.Status); wrong != "" {
		r.Fail("actions keep the history", "%s", wrong)
	}
	restarts := after.Status.Restarts - before.Status.Restarts
	jobRestarts := jobRestartsOf(&after.Status) - jobRestartsOf(&before.Status)
	var wrong string
	switch asked.kind {
	case restartRequests, retryRequests:
		wrong = map[bool]string{false: fmt.Sprintf("%d restarts", restarts)}[restarts == 1 && jobRestarts == 0]
	case partRequests:
		r.meddled = true
		wrong = map[bool]string{false: fmt.Sprintf("%d restarts of Jobs", jobRestarts)}[restarts == 0 && jobRestarts > 0]
	default:
		wrong = map[bool]string{false: "a restart"}[restarts == 0 && jobRestarts == 0]
	}
	if wrong != "" {
		r.Fail("a request is one restart, or none", "%s", wrong)
	}
}
