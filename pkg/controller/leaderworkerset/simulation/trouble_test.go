// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds requests that the API servers refuse, and a second controller.

const updateStatus = "update status"

// requests are the requests that may be refused, by verb and kind.
var requests = []string{
	"create statefulset", "create service", "create revision", "create podgroup", "apply statefulset",
	"patch statefulset", "patch service", "patch revision", "delete pod", "delete revision", updateStatus,
}

// answer is what an API server answers to a request about an object that it refuses.
type answer func(kind schema.GroupKind, name string) error

func forbidden(why string) answer {
	return func(kind schema.GroupKind, name string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, name, errors.New(why))
	}
}

// invalid is the answer about a template that no object may have.
func invalid(kind schema.GroupKind, name string) error {
	return apierrors.NewInvalid(kind, name, field.ErrorList{field.Invalid(field.NewPath("spec", "template", "spec"), "x", "must not be x")})
}

// deniedByWebhook is the answer that may be about one object only.
const deniedByWebhook = "denied by a webhook"

// answers are the answers of API servers, by their names.
var answers = map[string]answer{
	deniedByWebhook:    forbidden(`admission webhook "any.example.com" denied the request: no`),
	"no permission":    forbidden(`User "system:serviceaccount:jobset-system:jobset-controller" cannot create resource "things" in API group "" in the namespace "ns"`),
	"quota is used up": forbidden("exceeded quota: small, requested: count/things=1, used: count/things=1, limited: count/things=1"),
	"invalid":          invalid,
	"too many":         func(schema.GroupKind, string) error { return apierrors.NewTooManyRequests("later", 1) },
	"broken":           func(schema.GroupKind, string) error { return simulation.ErrServer },
}

// kindOf returns the kind of the object that a request is about.
func (e *env) kindOf(request string) schema.GroupKind {
	_, kind, _ := strings.Cut(request, " ")
	switch kind {
	case "podgroup":
		return schema.GroupKind{Group: e.gang.Resource().Group, Kind: "PodGroup"}
	case "service":
		return schema.GroupKind{Kind: "Service"}
	case "pod":
		return schema.GroupKind{Kind: "Pod"}
	case "revision":
		return schema.GroupKind{Group: "apps", Kind: "ControllerRevision"}
	case "statefulset":
		return schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	}
	return leaderworkersetv1.SchemeGroupVersion.WithKind("LeaderWorkerSet").GroupKind()
}

// Once backed off, this much is allowed in a minute in which nothing happens but that requests are refused.
const (
	refusalsPerMinute = 2
	passesPerMinute   = 6
)

// trouble is what is known of requests that the API servers refuse.
type trouble struct {
	// first and last are when such a request was refused, and warned is when a warning was sent first.
	first, last, warned time.Time
	// refused is how many were refused, by the object.
	refused map[string]int
}

// count returns how many requests were refused: all of them, or those about one object of which most were.
func (t *trouble) count(each bool) (n int) {
	for _, of := range t.refused {
		if each {
			n = max(n, of)
		} else {
			n += of
		}
	}
	return n
}

// denied returns the answer to a request that is refused; nil if it is not.
func (e *env) denied(request, object string) error {
	refuse := answers[e.denials[request]]
	if refuse == nil {
		return nil
	}
	e.Note("  the API refuses to %s %s", request, object)
	e.Seen["requests that were refused"]++
	if e.trouble.refused == nil {
		e.trouble.refused, e.trouble.first = map[string]int{}, e.Now()
	}
	e.trouble.refused[object]++
	e.trouble.last = e.Now()
	return refuse(e.kindOf(request), object)
}

// deniedChild is denied for a request of the process about a child. Changes of one child that have nothing to do with each other are different
// requests.
func (p *process) deniedChild(request string, child metav1.Object, change ...string) error {
	err := p.denied(request, child.GetName())
	verb, kind, _ := strings.Cut(request, " ")
	p.sender.Denied(strings.Join(append([]string{simulation.Request(verb, kind, child)}, change...), ": "), err)
	return err
}

// deny lets the API servers refuse one kind of requests, or none any more.
func (e *env) deny() {
	if len(e.denials) > 0 && e.Dice.Percent(50) {
		e.Note("no requests are refused any more")
		clear(e.denials)
		return
	}
	e.denyOne()
}

// denyOne lets the API servers refuse one kind of requests, and returns which, and how.
func (e *env) denyOne() (request, how string) {
	request, how = simulation.OneOf(e.Dice, requests...), simulation.OneOf(e.Dice, slices.Sorted(maps.Keys(answers))...)
	e.denials[request] = how
	e.Note("the API refuses to %s: %s", request, how)
	return request, how
}

// endured is how long requests are refused.
const endured = 6 * time.Minute

// endure lets the API servers refuse one kind of requests for some minutes in which nothing else happens, and then
// checks that whoever looks at the set sees it, and that requests and passes are few.
func (e *env) endure() {
	e.Note("from here on only one kind of requests fails")
	e.faults, e.rival = faults{}, nil
	e.EndTrouble()
	if e.outage {
		e.failServer()
	}
	e.labelNodes()
	clear(e.refusals) // as if the StatefulSet controller had tried again
	clear(e.denials)
	request, how := e.denyOne()
	e.need(request)
	e.trouble = trouble{}
	begin := e.Now()
	passes, backedOff := 0, time.Time{}
	for rounds := 0; e.Since(begin) < endured && rounds < maxRounds; rounds++ {
		e.Pass(10 * time.Millisecond)
		if backedOff.IsZero() && e.Since(begin) > 2*time.Minute {
			backedOff, passes = e.Now(), e.Seen["syncs"]
			clear(e.trouble.refused)
		}
		if e.round() {
			continue
		}
		due := e.process.worker.Due()
		if due.IsZero() {
			return
		}
		e.Pass(max(0, due.Sub(e.Now())))
	}
	lasted := e.trouble.last.Sub(e.trouble.first)
	if lasted < time.Minute {
		return
	}
	e.Seen["refusals that last: "+request]++
	if warned := e.trouble.warned; warned.IsZero() || warned.Sub(e.trouble.first) > time.Minute {
		e.Fail(ruleVisible, "%s is refused for %s: %v", request, lasted, e.reported)
	}
	if creates := strings.HasPrefix(request, "create ") || request == "apply statefulset"; creates && e.set() != nil && !e.troubled() {
		e.Fail(ruleVisible, "%s is refused for %s, and no condition says so: %v", request, lasted, e.set().Status.Conditions)
	}
	if backedOff.IsZero() {
		return
	}
	// A webhook may look at each object, and what is not created is asked for one after another.
	each := how == deniedByWebhook || !strings.HasPrefix(request, "create ")
	switch minutes, n, m := int(e.Since(backedOff)/time.Minute)+1, e.trouble.count(each), e.Seen["syncs"]-passes; {
	case n > refusalsPerMinute*minutes:
		e.Fail(simulation.RuleRefusals, "%s, %s: %d requests in %d minutes", request, how, n, minutes)
	case m > passesPerMinute*minutes:
		e.Fail(simulation.RulePasses, "%s: %d passes in %d minutes", request, m, minutes)
	}
}

// need makes the set need such requests.
func (e *env) need(request string) {
	set := e.set()
	if set == nil {
		e.createSet()
		return
	}
	switch request {
	case "create service":
		for _, service := range slices.Clone(e.services.Objects) {
			e.services.Remove(service.Name)
		}
	case "create statefulset":
		e.deleteSome(func(sts *appsv1.StatefulSet) bool { return sts.Name != name })
	case "create podgroup":
		for _, group := range slices.Clone(e.podGroups.Objects) {
			e.podGroups.Remove(group.GetName())
		}
	case "patch statefulset", "patch service", "patch revision":
		e.orphanSet(set)
		e.createSet()
	case "delete pod":
		e.restart(set)
	case "delete revision":
		for range 3 {
			e.changeImage()
			e.rest()
		}
	default:
		e.changeImage()
	}
}

// changeImage lets a user ask for another template, and for two groups at least.
func (e *env) changeImage() {
	set := e.set()
	next := set.DeepCopy()
	next.Spec.Paused, next.Spec.RevisionHistoryLimit = nil, nil
	next.Spec.Replicas = ptr.To(max(2, helper.Replicas(set)))
	next.Spec.RolloutStrategy.RollingUpdateConfiguration.Partition = ptr.To[int32](0)
	next.Spec.LeaderWorkerTemplate.WorkerTemplate = podTemplate("e" + set.ResourceVersion)
	e.Note("user changes the template: %s", describeSpec(next))
	e.put(set, next, "edits")
}

// deleteSome deletes StatefulSets.
func (e *env) deleteSome(which func(*appsv1.StatefulSet) bool) {
	for _, sts := range slices.Clone(e.statefulSets.Objects) {
		if which(sts) {
			e.Note("somebody deletes statefulset %s (%s)", sts.Name, sts.UID)
			e.deleteStatefulSet(sts, false)
		}
	}
}
