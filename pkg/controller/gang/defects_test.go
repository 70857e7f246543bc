// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang"
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
		"objects that are not read yet are none":               {Mutant: mutant{ask: known}, Rules: []string{ruleKnown, ruleFresh}},
		"a version is given up when it is missed once":         {Mutant: mutant{ask: otherVersion}, Rules: []string{ruleStays}},
		"an API is absent when discovery has said so once":     {Mutant: mutant{ask: absentAfter(http.StatusNotFound)}, Rules: []string{ruleAbsent}},
		"an API is absent when discovery fails":                {Mutant: mutant{ask: absentAfter(http.StatusForbidden, http.StatusInternalServerError, 0)}, Rules: []string{ruleAbsent}},
		"an absent API is never absent":                        {Mutant: mutant{transport: through(memory.DiscoveryAnswers(http.StatusServiceUnavailable))}, Rules: []string{ruleRight, ruleReason}},
		"a version that is not served any more stays for ever": {Mutant: mutant{transport: through(memory.DiscoveryRemembers)}, Rules: []string{ruleRight}},
		"reasons that nobody is told":                          {Mutant: mutant{ask: reasonless}, Rules: []string{ruleReason}},
		"watches that fail are taken for quiet ones":           {Mutant: mutant{transport: through(memory.QuietFailures)}, Rules: []string{ruleFresh, ruleRight}},
		"watches that begin too late":                          {Mutant: mutant{transport: through(memory.LaterVersions)}, Rules: []string{ruleFresh, ruleRight}},
		"versions that expire all the time":                    {Mutant: mutant{transport: through(memory.ExpiringVersions)}, Rules: []string{ruleQuiet}},
		"objects that change, and nobody is told":              {Mutant: mutant{deaf: func(o metav1.Object) bool { return o.GetName() == "g2" }}, Rules: []string{ruleTold}},
		"an API that goes and comes, and nobody is told":       {Mutant: mutant{indifferent: true}, Rules: []string{ruleTold}},
		"discovery that is asked before anybody asks":          {Mutant: mutant{eager: true}, Rules: []string{ruleUnneeded}},
		"objects that are watched while nobody needs them":     {Mutant: mutant{greedy: true}, Rules: []string{ruleUnneeded}},
		"discovery that is asked again and again":              {Mutant: mutant{transport: through(memory.Insistent)}, Rules: []string{ruleRequests}},
		"a watch that goes on after the end":                   {Mutant: mutant{undead: true}, Rules: []string{ruleEnd}},
		"objects of one kind that are not given out":           {Mutant: mutant{of: withoutWorkloads}, Rules: []string{ruleFresh, ruleRight}},
	})
}

// through is a transport that does not depend on what happens.
func through(wrap func(http.RoundTripper) http.RoundTripper) func(*env, http.RoundTripper) http.RoundTripper {
	return func(_ *env, next http.RoundTripper) http.RoundTripper { return wrap(next) }
}

// known gives out that the objects of a version are known that is served.
func known(e *env, s gang.State) gang.State {
	for _, version := range versions {
		if said := e.said(version); s.Version.Empty() && !s.Absent && len(said) > 0 && said[len(said)-1] {
			return gang.State{Version: version}
		}
	}
	return s
}

// otherVersion uses another version as soon as discovery does not have the one in use.
func otherVersion(e *env, s gang.State) gang.State {
	said := e.said(s.Version)
	if s.Version.Empty() || len(said) == 0 || said[len(said)-1] {
		return s
	}
	return gang.State{Version: versions[1-slices.Index(versions, s.Version)]}
}

// absentAfter takes one of these answers of discovery for an absent API.
func absentAfter(codes ...int) func(*env, gang.State) gang.State {
	return func(e *env, s gang.State) gang.State {
		sent := e.sent()
		for i := len(sent) - 1; i >= 0; i-- {
			if sent[i].Verb == "discovery" {
				if slices.Contains(codes, sent[i].Code) {
					return gang.State{Absent: true}
				}
				break
			}
		}
		return s
	}
}

func reasonless(_ *env, s gang.State) gang.State {
	s.Problem = ""
	return s
}

func withoutWorkloads(_ *env, found []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(found), func(o *unstructured.Unstructured) bool { return o.GetKind() == "Workload" })
}
