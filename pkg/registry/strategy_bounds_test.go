// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
)

func listOf(n int) field.ErrorList {
	var errs field.ErrorList
	for i := range n {
		errs = append(errs, field.Required(field.NewPath("spec", "list").Index(i), "must be set"))
	}
	return errs
}

func TestCauses(t *testing.T) {
	cases := map[string]struct {
		errs     int
		want     int
		wantLast string
	}{
		"none":                {},
		"as many as may be":   {errs: 100, want: 100, wantLast: "spec.list[99]: Required value: must be set"},
		"one too many":        {errs: 101, want: 100, wantLast: "spec: Invalid value: and 2 more errors: correct the others first"},
		"very many":           {errs: 5000, want: 100, wantLast: "spec: Invalid value: and 4901 more errors: correct the others first"},
		"a list of one error": {errs: 1, want: 1, wantLast: "spec.list[0]: Required value: must be set"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := bounds.Causes(listOf(tc.errs))
			if len(got) != tc.want {
				t.Fatalf("%d causes, want %d", len(got), tc.want)
			}
			if tc.want > 0 && got[len(got)-1].Error() != tc.wantLast {
				t.Errorf("last cause: %s\nwant: %s", got[len(got)-1], tc.wantLast)
			}
		})
	}
}

type createStrategy struct{ rest.RESTCreateStrategy }

func (createStrategy) Validate(context.Context, runtime.Object) field.ErrorList { return listOf(1000) }

type updateStrategy struct{ rest.RESTUpdateStrategy }

func (updateStrategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return listOf(1000)
}

func TestStrategiesReturnFewErrors(t *testing.T) {
	if n := len(bounds.CreateStrategy{RESTCreateStrategy: createStrategy{}}.Validate(context.Background(), &metav1.PartialObjectMetadata{})); n != bounds.MaxCauses {
		t.Errorf("create: %d errors, want %d", n, bounds.MaxCauses)
	}
	if n := len(bounds.UpdateStrategy{RESTUpdateStrategy: updateStrategy{}}.ValidateUpdate(context.Background(), nil, nil)); n != bounds.MaxCauses {
		t.Errorf("update: %d errors, want %d", n, bounds.MaxCauses)
	}
}

func TestOwnersAreBounded(t *testing.T) {
	owned := func(n int) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{OwnerReferences: make([]metav1.OwnerReference, n)}}
	}
	const want = "metadata.ownerReferences: Too many: 2001: must have at most 2000 items"
	create, update := bounds.CreateStrategy{RESTCreateStrategy: createStrategy{}}, bounds.UpdateStrategy{RESTUpdateStrategy: updateStrategy{}}
	for name, errs := range map[string]field.ErrorList{
		"create": create.Validate(t.Context(), owned(2001)), "update": update.ValidateUpdate(t.Context(), owned(2001), owned(2000)),
	} {
		if len(errs) != 1 || errs[0].Error() != want {
			t.Errorf("%s: got %v, want %s", name, errs, want)
		}
	}
	if errs := update.ValidateUpdate(t.Context(), owned(2001), owned(2002)); errs[0].Type == field.ErrorTypeTooMany {
		t.Errorf("a list that became shorter is refused: %v", errs[0])
	}
}

func TestMetadata(t *testing.T) {
	cases := map[string]struct {
		labels     int
		wantCauses int
	}{
		"a few errors are left to the library": {labels: 50},
		"many errors are cut":                  {labels: 20_000, wantCauses: bounds.MaxCauses},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", Labels: map[string]string{}}}
			for i := range tc.labels {
				obj.Labels[fmt.Sprintf("-%d", i)] = ""
			}
			info := bounds.Metadata(rest.DefaultUpdatedObjectInfo(obj), schema.GroupKind{Kind: "Thing"})
			_, err := info.UpdatedObject(context.Background(), obj)
			if tc.wantCauses == 0 {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			status, ok := err.(apierrors.APIStatus)
			if !ok || len(status.Status().Details.Causes) != tc.wantCauses {
				t.Errorf("error %v, want %d causes", err, tc.wantCauses)
			}
		})
	}
}
