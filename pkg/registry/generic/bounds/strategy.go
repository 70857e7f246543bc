// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
)

// CreateStrategy bounds the errors of a strategy.
type CreateStrategy struct {
	rest.RESTCreateStrategy
}

// Validate returns the first errors of the strategy.
func (s CreateStrategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	if errs := metadataSizes(obj).Grown(func() *validation.Sizes { return &validation.Sizes{} }); len(errs) > 0 {
		return errs
	}
	return Causes(s.RESTCreateStrategy.Validate(ctx, obj))
}

// UpdateStrategy bounds the errors of a strategy.
type UpdateStrategy struct {
	rest.RESTUpdateStrategy
}

// ValidateUpdate returns the first errors of the strategy.
func (s UpdateStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	if errs := metadataSizes(obj).Grown(func() *validation.Sizes { return metadataSizes(old) }); len(errs) > 0 {
		return errs
	}
	return Causes(s.RESTUpdateStrategy.ValidateUpdate(ctx, obj, old))
}

// metadataSizes measures the list of objects in the metadata that clients send. The server bounds the managed fields.
func metadataSizes(obj runtime.Object) *validation.Sizes {
	s := &validation.Sizes{}
	if m, err := meta.Accessor(obj); err == nil {
		s.List(field.NewPath("metadata", "ownerReferences"), len(m.GetOwnerReferences()), validation.MaxItems)
	}
	return s
}
