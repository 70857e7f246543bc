// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
)

// refusals are the pods that an API server does not let be labeled.
type refusals map[types.UID]refusal

type refusal struct {
	name string
	// why is what the server answered first, code that of its answers, and turn grows with each try.
	why  string
	code int32
	turn int
}

// result is the result of a patch that was tried.
type result struct {
	tried bool
	err   error
}

// last returns the pods in the order in which they are tried: those that were refused come last, the last tried at the end.
func (r refusals) last(pods []plan.Ref) []plan.Ref {
	if len(r) == 0 {
		return pods
	}
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, func(a, b plan.Ref) int { return cmp.Compare(r[a.UID].turn, r[b.UID].turn) })
	return pods
}

// after returns the refusals after patches of pods. A patch without an answer keeps the earlier refusal. The first
// answer stays until there is one that is not like it: many answers name the request, and a status that changed with
// each of them would lead to the next request at once.
func (r refusals) after(pods []plan.Ref, results []result) refusals {
	turn := 1
	for _, one := range r {
		turn = max(turn, one.turn+1)
	}
	next := refusals{}
	for i, pod := range pods {
		before, found := r[pod.UID]
		switch {
		case answered(results[i].err):
			answer, code := answerOf(results[i].err)
			one := refusal{pod.Name, children.RefusalOf(errors.New(answer)).Message, code, turn}
			if found && before.code == one.code && alike(before.why) == alike(one.why) {
				one.why = before.why
			}
			next[pod.UID] = one
			turn++
		case found && (!results[i].tried || results[i].err != nil):
			next[pod.UID] = before
		}
	}
	return next
}

// before returns whether a refusal is reported and not the other one: an answer of the API before a request that was
// not made, and then the first pod by name.
func (r refusal) before(other refusal) bool {
	if asked, otherAsked := r.code != 0, other.code != 0; asked != otherAsked {
		return asked
	}
	return r.name < other.name
}

// problem says what failed, and why, as it is for the first pod.
func (r refusals) problem(prefix plan.Prefix) (p plan.Problem) {
	for uid, one := range r {
		if p.Pod.Name == "" || one.before(r[p.Pod.UID]) {
			p.Pod = plan.Ref{Name: one.name, UID: uid}
		}
	}
	if len(r) == 0 {
		return p
	}
	pods, why := "pod "+p.Pod.Name, r[p.Pod.UID].why
	if len(r) > 1 {
		pods += " and others" // how many changes with each try
	}
	p.Message = fmt.Sprintf("label %s cannot be set on %s: %s", prefix.ReadyKey, pods, why)
	p.Why = alike(strings.ReplaceAll(strings.ReplaceAll(why, strconv.Quote(p.Pod.Name), "pod"), string(p.Pod.UID), ""))
	return p
}

// answerOf returns the answer itself, without what led to the request. There is none to a request that was not made,
// because another party undoes it each time.
func answerOf(err error) (text string, code int32) {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		return answer.Status().Message, answer.Status().Code
	}
	return err.Error(), 0
}

// answered returns whether an API server has decided against a request, and not only failed to answer in time or had
// too much to do. Another party that undoes each request has decided, too.
func answered(err error) bool {
	if children.IsUndone(err) {
		return true
	}
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && !apierrors.IsConflict(err) && !apierrors.IsTooManyRequests(err) && !apierrors.IsServerTimeout(err) &&
		!apierrors.IsTimeout(err)
}

// alike returns a text that is the same for answers which differ in names and numbers of requests only: words with digits are left out.
func alike(text string) string {
	words := slices.DeleteFunc(strings.Fields(text), func(word string) bool { return strings.ContainsAny(word, "0123456789") })
	return strings.Join(words, " ")
}

// failure is why owners could not be read: the first text of those that are alike.
type failure struct{ like, text string }

// failureOf returns the failure of an error after the one before. Texts differ with each request: see refusals.after.
func failureOf(err error, before failure) failure {
	if err == nil {
		return failure{}
	}
	what, _, _ := strings.Cut(err.Error(), ": ") // the owner
	what += alike(err.Error())
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		what += strconv.Itoa(int(answer.Status().Code))
	}
	if before.like == what {
		return before
	}
	return failure{what, err.Error()}
}

// noteRefusals keeps why pods could not be labeled until they are, and decides again if that has changed: the status says so.
func (s *Syncer) noteRefusals(key cache.ObjectName, obs *snapshot, p plan.Plan, now refusals) plan.Plan {
	s.memory.refuse(key, obs.prefix, now)
	if now := now.problem(obs.Prefix); now != obs.LabelProblem {
		obs.LabelProblem = now
		return plan.Decide(obs.Observed)
	}
	return p
}

// reportProblems sends events about what keeps users from what they want, once for each problem.
func (s *Syncer) reportProblems(key cache.ObjectName, obs *snapshot, p plan.Plan) {
	s.reportProblem(key, obs, plan.EventInvalidSize, p.SizeProblem, p.SizeProblem.Message)
	s.reportProblem(key, obs, plan.EventLabelFailed, obs.LabelProblem, "The "+obs.LabelProblem.Message)
	if obs.OwnersError != "" && obs.ownersRefused == "" {
		return // there was no answer, so what was refused before may still be refused
	}
	s.reportProblem(key, obs, plan.EventSizeUnknown, plan.Problem{Pod: obs.first(), Why: obs.ownersRefused},
		"The size of the group cannot be read: "+obs.ownersRefused)
}

// reportProblem sends an event about the PodReadinessGroup, or else the pod, if the problem is a new one.
func (s *Syncer) reportProblem(key cache.ObjectName, obs *snapshot, reason string, problem plan.Problem, note string) {
	if !s.memory.newProblem(key, obs.prefix, reason, problem.Why) {
		return
	}
	pod := problem.Pod
	regarding := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: key.Namespace, Name: pod.Name, UID: pod.UID}
	if obs.Group != nil {
		regarding = &corev1.ObjectReference{
			APIVersion: batchv1alpha1.SchemeGroupVersion.String(), Kind: "PodReadinessGroup", Namespace: key.Namespace, Name: obs.Group.Name,
			UID: obs.Group.UID,
		}
		if reason == plan.EventInvalidSize {
			note = "pod " + pod.Name + ": " + note
		}
	}
	children.SendEvent(s.Recorder, regarding, nil, plan.Event{Type: corev1.EventTypeWarning, Reason: reason, Note: note})
}
