// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue_test

import (
	"net/http"
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation/memory"
)

// enough is the number of histories in which a defect must show. The pauses of client-go are random, so that a seed
// does not decide whether it shows. The rarest defect shows in one of 37 histories, so that all of these hide it less
// than once in a million runs. The search ends with the first history that shows it.
const enough = 1000

// TestHistoriesShowDefects makes sure that histories can fail, and by which rule.
func TestHistoriesShowDefects(t *testing.T) {
	newHistories(t).ShowDefects(t, enough, map[string]simulation.Defect[mutant]{
		"Workloads that are not read yet are none":             {Mutant: mutant{holding: noneWhile(kueue.Unknown)}, Rules: []string{ruleKnown}},
		"Workloads of an API that is away are none":            {Mutant: mutant{holding: noneWhile(kueue.Absent)}, Rules: []string{ruleKnown}},
		"an API is absent when discovery has said so once":     {Mutant: mutant{availability: absentAfter(http.StatusNotFound)}, Rules: []string{ruleAbsent}},
		"an API is absent when discovery fails":                {Mutant: mutant{availability: absentAfter(http.StatusForbidden, http.StatusInternalServerError, 0)}, Rules: []string{ruleAbsent}},
		"an absent API is never absent":                        {Mutant: mutant{transport: through(memory.DiscoveryAnswers(http.StatusServiceUnavailable))}, Rules: []string{ruleRight, ruleReason}},
		"a removed API is served for ever":                     {Mutant: mutant{transport: through(memory.DiscoveryRemembers)}, Rules: []string{ruleRight}},
		"reasons that nobody is told":                          {Mutant: mutant{availability: reasonless}, Rules: []string{ruleReason}, First: 200},
		"watches that fail are taken for quiet ones":           {Mutant: mutant{transport: through(memory.QuietFailures)}, Rules: []string{ruleFresh, ruleRight}},
		"watches that begin too late":                          {Mutant: mutant{transport: through(memory.LaterVersions)}, Rules: []string{ruleFresh, ruleRight}},
		"versions that expire all the time":                    {Mutant: mutant{transport: through(memory.ExpiringVersions)}, Rules: []string{ruleQuiet}},
		"Workloads that change, and nobody is told":            {Mutant: mutant{deaf: func(w *plan.Workload) bool { return w.Name == "w2" }}, Rules: []string{ruleTold}},
		"an API that goes and comes, and nobody is told":       {Mutant: mutant{indifferent: true}, Rules: []string{ruleTold}},
		"discovery that is asked before anybody wants to know": {Mutant: mutant{eager: true}, Rules: []string{ruleUnasked}},
		"discovery that is asked again and again":              {Mutant: mutant{transport: through(memory.Insistent)}, Rules: []string{ruleRequests}},
		"a watch that goes on after the end":                   {Mutant: mutant{undead: true}, Rules: []string{ruleEnd}},
		"a Workload that goes before one that stays":           {Mutant: mutant{of: leavingFirst}, Rules: []string{ruleOldest}},
	})
}

// noneWhile gives out that there is no Workload while the availability is another one than Served.
func noneWhile(of kueue.Availability) func(*env, cache.ObjectName, []*plan.Workload, bool) ([]*plan.Workload, bool) {
	return func(e *env, _ cache.ObjectName, found []*plan.Workload, known bool) ([]*plan.Workload, bool) {
		a, _ := e.process.Availability()
		return found, known || a == of
	}
}

// absentAfter takes one of these answers of discovery for an absent API.
func absentAfter(codes ...int) func(*env, kueue.Availability, string) (kueue.Availability, string) {
	return func(e *env, a kueue.Availability, why string) (kueue.Availability, string) {
		sent := e.sent()
		for i := len(sent) - 1; i >= 0; i-- {
			if sent[i].Verb != "discovery" {
				continue
			}
			for _, code := range codes {
				if sent[i].Code == code {
					return kueue.Absent, ""
				}
			}
			break
		}
		return a, why
	}
}

func reasonless(_ *env, a kueue.Availability, _ string) (kueue.Availability, string) { return a, "" }

func leavingFirst(e *env, found *plan.Workload) *plan.Workload {
	if found == nil {
		return nil
	}
	all, _ := e.process.Holding(cache.NewObjectName(namespace, nameOf(found)))
	for _, w := range all {
		if w.OwnerUID() == found.OwnerUID() && w.DeletionTimestamp != nil {
			return w
		}
	}
	return found
}

// through is a transport that does not depend on what happens.
func through(wrap func(http.RoundTripper) http.RoundTripper) func(*env, http.RoundTripper) http.RoundTripper {
	return func(_ *env, next http.RoundTripper) http.RoundTripper { return wrap(next) }
}
