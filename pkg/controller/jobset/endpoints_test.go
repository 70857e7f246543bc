// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"errors"
	"testing"

	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// serving is the answer of a controller of addresses.
type serving bool

func (s serving) Serves(*jobsetv1alpha2.JobSet) bool { return bool(s) }

func (s serving) Refusal(*jobsetv1alpha2.JobSet) (reason, message string, known bool) {
	if s {
		return "", "", false
	}
	return "Reason", "message", true
}

func (serving) OnChange(func(cache.ObjectName)) {}

// TestOwnEndpointsAreObserved asks the controller of addresses about sets that get a Service, and about no others.
func TestOwnEndpointsAreObserved(t *testing.T) {
	for name, tc := range map[string]struct {
		endpoints Endpoints
		exists    bool
		want      bool
		refusal   *plan.Refusal
	}{
		"no controller":                           {},
		"a controller that serves":                {endpoints: serving(true), want: true},
		"a controller that does not":              {endpoints: serving(false), refusal: &plan.Refusal{Reason: "Reason", Message: "message"}},
		"a Service that exists, and a controller": {endpoints: serving(true), exists: true},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet()
			r := newRig(t, set)
			r.deps.Endpoints = tc.endpoints
			err := r.caches.jobSets.GetIndexer().Add(set)
			if tc.exists {
				err = errors.Join(err, r.caches.services.GetIndexer().Add(service()))
			}
			obs, _, observed := r.Observe(t.Context(), cache.MetaObjectToName(set))
			if err = errors.Join(err, observed); err != nil || obs == nil {
				t.Fatalf("observed %v, error %v", obs, err)
			}
			diff(t, "own endpoints", tc.want, obs.OwnEndpoints)
			diff(t, "refusal", tc.refusal, obs.EndpointsRefusal)
		})
	}
}
