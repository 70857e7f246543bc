// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
)

func TestServiceEndpoints(t *testing.T) {
	for value, good := range map[string]bool{"cluster": true, "controller": true, "auto": true, "": false, "Controller": false, "kube-controller-manager": false} {
		t.Run(value, func(t *testing.T) {
			js := train()
			js.Annotations = map[string]string{jobset.ServiceEndpointsKey: value}
			var refused []refusal
			if !good {
				refused = []refusal{{
					"metadata.annotations[jobset-apiserver.io/service-endpoints]", field.ErrorTypeNotSupported, `supported values: "cluster", "controller", "auto"`,
				}}
			}
			if diff := cmp.Diff(refused, refusals(validation.ValidateJobSetCreate(js, gates.Gates{}))); diff != "" {
				t.Errorf("refusals of a create (-want +got):\n%s", diff)
			}
			if errs := validation.ValidateJobSetUpdate(js.DeepCopy(), js, gates.Gates{}); len(errs) > 0 {
				t.Errorf("a stored value is refused: %v", errs.ToAggregate())
			}
		})
	}
}
