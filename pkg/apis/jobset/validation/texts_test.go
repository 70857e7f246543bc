// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
)

// TestTextsThatClientsKnow has the parts of messages that tests and clients of upstream look for
// (docs/reference/jobset.md, Update checks). Reword the rest.
func TestTextsThatClientsKnow(t *testing.T) {
	elastic := gates.Gates{ElasticJobSet: true}
	for text, tc := range map[string]updateCase{
		"parallelism must be >= 1": {change: resize(ptr.To[int32](0), ptr.To[int32](4)), opts: elastic},
		"completions must be >= 1": {change: resize(ptr.To[int32](4), ptr.To[int32](0)), opts: elastic},
		"completions must be equal to parallelism for Elastic Indexed Jobs": {change: resize(ptr.To[int32](4), ptr.To[int32](5)), opts: elastic},
		"field is immutable": {change: func(js *jobset.JobSet) { js.Spec.ManagedBy = ptr.To("acme.io/foo") }},
	} {
		t.Run(text, func(t *testing.T) {
			next := train()
			tc.change(next)
			if errs := validation.ValidateJobSetUpdate(next, train(), tc.opts); !strings.Contains(errs.ToAggregate().Error(), text) {
				t.Errorf("%v", errs)
			}
		})
	}
}
