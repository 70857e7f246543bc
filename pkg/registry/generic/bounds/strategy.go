// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

// CreateStrategy bounds the errors of a strategy.
type CreateStrategy struct {
	rest.RESTCreateStrategy
}

// Validate returns the first errors of the strategy.
func (s CreateStrategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return Causes(s.RESTCreateStrategy.Validate(ctx, obj))
}

// UpdateStrategy bounds the errors of a strategy.
type UpdateStrategy struct {
	rest.RESTUpdateStrategy
}

// ValidateUpdate returns the first errors of the strategy.
func (s UpdateStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return Causes(s.RESTUpdateStrategy.ValidateUpdate(ctx, obj, old))
}
