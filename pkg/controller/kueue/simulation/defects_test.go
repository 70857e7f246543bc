// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation/memory"
)

// enough is the number of histories in which a defect must show.
const enough = 400

// TestHistoriesShowDefects makes sure that histories can fail, and by which rule.
func TestHistoriesShowDefects(t *testing.T) {
	newHistories(t).ShowDefects(t, enough, map[string]simulation.Defect[mutant]{
		"Workloads that are not read yet are none":             {Mutant: mutant{holding: noneWhile(kueue.Unknown)}, Rules: []string{ruleKnown}},
		"Workloads of an API that is away are none":            {Mutant: mutant{holding: noneWhile(kueue.Absent)}, Rules: []string{ruleKnown}},
		"an API is absent when discovery has said so once":     {Mutant: mutant{availability: absentAfter(http.StatusNotFound)}, Rules: []string{ruleAbsent}},
		"an API is absent when discovery fails":                {Mutant: mutant{availability: absentAfter(http.StatusForbidden, http.StatusInternalServerError, 0)}, Rules: []string{ruleAbsent}},
		"an absent API is never absent":                        {Mutant: mutant{transport: discoveryAnswers(http.StatusServiceUnavailable)}, Rules: []string{ruleRight, ruleReason}},
		"a removed API is served for ever":                     {Mutant: mutant{transport: discoveryRemembers}, Rules: []string{ruleRight}},
		"reasons that nobody is told":                          {Mutant: mutant{availability: reasonless}, Rules: []string{ruleReason}, First: 200},
		"watches that fail are taken for quiet ones":           {Mutant: mutant{transport: quietFailures}, Rules: []string{ruleFresh, ruleRight}},
		"watches that begin too late":                          {Mutant: mutant{transport: laterVersions}, Rules: []string{ruleFresh, ruleRight}},
		"versions that expire all the time":                    {Mutant: mutant{transport: expiringVersions}, Rules: []string{ruleQuiet}},
		"Workloads that change, and nobody is told":            {Mutant: mutant{deaf: func(w *plan.Workload) bool { return w.Name == "w2" }}, Rules: []string{ruleTold}},
		"an API that goes and comes, and nobody is told":       {Mutant: mutant{indifferent: true}, Rules: []string{ruleTold}},
		"discovery that is asked before anybody wants to know": {Mutant: mutant{eager: true}, Rules: []string{ruleUnasked}},
		"discovery that is asked again and again":              {Mutant: mutant{transport: insistent}, Rules: []string{ruleRequests}},
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

type transport = memory.RoundTripper

func isDiscovery(r *http.Request) bool { return strings.Count(r.URL.Path, "/") == 3 }

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

// discoveryAnswers answers so when discovery says that the API is absent.
func discoveryAnswers(code int) func(*env, http.RoundTripper) http.RoundTripper {
	return func(_ *env, next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil && isDiscovery(r) && response.StatusCode == http.StatusNotFound {
				return memory.Refusal(code), nil
			}
			return response, err
		})
	}
}

// discoveryRemembers answers what discovery has once said of an API that was served.
func discoveryRemembers(_ *env, next http.RoundTripper) http.RoundTripper {
	var known memory.Recorded
	return transport(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		switch {
		case err != nil || !isDiscovery(r):
		case response.StatusCode == http.StatusOK:
			known.Record(response)
		case known.Known():
			return known.Answer(), nil
		}
		return response, err
	})
}

// quietFailures gives out a watch that shows nothing instead of one that failed.
func quietFailures(_ *env, next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if isWatch(r) && r.URL.Query().Get("sendInitialEvents") == "" && (err != nil || response.StatusCode != http.StatusOK) && r.Context().Err() == nil {
			return memory.Silence(r.Context()), nil
		}
		return response, err
	})
}

// laterVersions begins watches with a version that comes later.
func laterVersions(_ *env, next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		if isWatch(r) && r.URL.Query().Get("sendInitialEvents") == "" {
			r = r.Clone(r.Context())
			query := r.URL.Query()
			query.Set("resourceVersion", "1000000")
			r.URL.RawQuery = query.Encode()
		}
		return next.RoundTrip(r)
	})
}

// expiringVersions answers that the version of a watch has expired.
func expiringVersions(_ *env, next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		if isWatch(r) && r.URL.Query().Get("sendInitialEvents") == "" {
			return memory.Refusal(http.StatusGone), nil
		}
		return next.RoundTrip(r)
	})
}

// insistent asks discovery more often than it is asked to.
func insistent(_ *env, next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		for range 3 {
			if isDiscovery(r) {
				if response, err := next.RoundTrip(r); err == nil {
					_ = response.Body.Close()
				}
			}
		}
		return next.RoundTrip(r)
	})
}
