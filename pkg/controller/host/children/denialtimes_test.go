// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestDeniedChangesAreApart has changes of many children denied, also by an answer that concerns all children of a template when they are
// created.
func TestDeniedChangesAreApart(t *testing.T) {
	immutable := field.ErrorList{field.Invalid(field.NewPath("spec", "template"), "x", "field is immutable")}
	for name, answer := range map[string]func(name string) error{
		"a webhook":           deniedByWebhook,
		"an invalid template": func(name string) error { return apierrors.NewInvalid(schema.GroupKind{}, name, immutable) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newDenialRig()
			r.answer = answer
			asked := 0
			for second := range 20 * 60 {
				if _ = r.ask(verbPatch, "a", "b", "c", "d", "e", "f"); second >= 10*60 {
					asked += len(r.asked)
				}
				r.pass(time.Second)
			}
			if asked == 0 || asked > 11 {
				t.Errorf("%d requests in ten minutes, want one each minute at most", asked)
			}
		})
	}
}
