// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	disaggregatedsetinstall "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/install"
	disaggregatedsetvalidation "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetinstall "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/install"
	jobsetvalidation "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	leaderworkersetinstall "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/install"
	leaderworkersetvalidation "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/validation"
)

// TestProbesAreValid shows that a probe of each kind passes validation, so that only the freeze can refuse it: the validation of
// LeaderWorkerSets refused one without pods, and the way back ended there.
func TestProbesAreValid(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme){jobsetinstall.Install, leaderworkersetinstall.Install, disaggregatedsetinstall.Install} {
		install(scheme)
	}
	decoder := serializer.NewCodecFactory(scheme).UniversalDecoder()
	for _, s := range subjects {
		probe, err := s.probeObject()
		if err != nil {
			t.Fatal(err)
		}
		content, err := probe.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		object, err := runtime.Decode(decoder, content)
		if err != nil {
			t.Fatal(err)
		}
		var problems field.ErrorList
		switch o := object.(type) {
		case *jobset.JobSet:
			problems = jobsetvalidation.ValidateJobSetCreate(o, gates.Gates{})
		case *leaderworkerset.LeaderWorkerSet:
			problems = leaderworkersetvalidation.ValidateLeaderWorkerSetCreate(o)
		case *disaggregatedset.DisaggregatedSet:
			problems = disaggregatedsetvalidation.ValidateDisaggregatedSetCreate(o)
		case *disaggregatedset.DisaggregatedSetRoleScaler:
			problems = disaggregatedsetvalidation.ValidateScalerCreate(o)
		default:
			t.Errorf("no validation of %T", o)
		}
		if len(problems) > 0 {
			t.Errorf("%s: %v", s.kind, problems)
		}
	}
}
