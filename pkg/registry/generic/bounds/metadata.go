// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Metadata refuses changed objects whose metadata alone has more errors than an answer may have. Otherwise the library
// would find these errors before it asks the strategy of an update, and put them all into its answer.
func Metadata(info rest.UpdatedObjectInfo, kind schema.GroupKind) rest.UpdatedObjectInfo {
	return updated{UpdatedObjectInfo: info, kind: kind}
}

type updated struct {
	rest.UpdatedObjectInfo
	kind schema.GroupKind
}

func (u updated) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	obj, err := u.UpdatedObjectInfo.UpdatedObject(ctx, old)
	if err != nil {
		return nil, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, errors.NewInternalError(err)
	}
	errs := validation.ValidateObjectMetaAccessor(m, m.GetNamespace() != "", anyName, field.NewPath("metadata"))
	if len(errs) > MaxCauses {
		return nil, errors.NewInvalid(u.kind, m.GetName(), Causes(errs))
	}
	return obj, nil
}

// anyName leaves the name to the strategy.
func anyName(string, bool) []string { return nil }
