// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bounds keeps the answers to refused requests small, for every kind: no answer has more than 100 causes. The
// library joins the messages of all errors in quadratic time, so that errors are cut before it makes an answer of them.
// It also refuses placeholders of objects that cannot be read, in every write of every kind.
package bounds

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/strategy"
)

// Store serves a main resource with bounded answers about metadata.
type Store struct {
	*registry.Store
	kind       schema.GroupKind
	shortNames []string
	categories []string
}

// NewStore returns the storage of the main resource of a kind over its store, with other names for kubectl.
func NewStore(store *registry.Store, kind schema.GroupKind, shortNames ...string) *Store {
	return &Store{Store: store, kind: kind, shortNames: shortNames}
}

// InCategories adds the resource to groups of resources that kubectl understands, such as all.
func (s *Store) InCategories(categories ...string) *Store {
	s.categories = categories
	return s
}

// Categories returns the groups of resources that the resource belongs to.
func (s *Store) Categories() []string { return s.categories }

// ShortNames returns the names that kubectl understands beside those of the resource.
func (s *Store) ShortNames() []string { return s.shortNames }

var (
	_ rest.StandardStorage      = &Store{}
	_ rest.SingularNameProvider = &Store{}
	_ rest.TableConvertor       = &Store{}
	_ rest.ShortNamesProvider   = &Store{}
	_ rest.CategoriesProvider   = &Store{}
	_ rest.ResetFieldsStrategy  = &Store{}
)

// Create creates an object. Its strategy knows how the client wants fields to be validated.
func (s *Store) Create(ctx context.Context, obj runtime.Object, createValidation rest.ValidateObjectFunc, options *metav1.CreateOptions) (
	runtime.Object, error) {
	return s.Store.Create(strategy.WithFieldValidation(ctx, options.FieldValidation), obj, createValidation, options)
}

// Update changes an object, or creates the one of an applier.
func (s *Store) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	ctx = strategy.WithFieldValidation(ctx, options.FieldValidation)
	return s.Store.Update(ctx, name, Metadata(objInfo, s.kind), createValidation, updateValidation, forceAllowCreate, options)
}

// CreateStrategy bounds the errors of a strategy.
type CreateStrategy struct {
	rest.RESTCreateStrategy
}

// Validate returns the first errors of the strategy.
func (s CreateStrategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	if errs := metadataSizes(obj).Grown(func() *validation.Sizes { return &validation.Sizes{} }); len(errs) > 0 {
		return errs
	}
	if m, err := meta.Accessor(obj); err == nil && len(validation.Placeholder(m)) > 0 {
		return validation.Placeholder(m)
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

// Metadata refuses placeholders, whose status a write of the status alone would take. It also refuses changed objects whose
// metadata alone has more errors than an answer may have. Otherwise the library would find these errors before it asks the
// strategy of an update, and put them all into its answer.
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
	if errs := validation.Placeholder(m); len(errs) > 0 {
		return nil, errors.NewInvalid(u.kind, m.GetName(), errs)
	}
	errs := apivalidation.ValidateObjectMetaAccessor(m, m.GetNamespace() != "", anyName, field.NewPath("metadata"))
	if len(errs) > MaxCauses {
		return nil, errors.NewInvalid(u.kind, m.GetName(), Causes(errs))
	}
	return obj, nil
}

// anyName leaves the name to the strategy.
func anyName(string, bool) []string { return nil }

// MaxCauses is the largest number of causes of an answer.
const MaxCauses = 100

// Causes returns the first errors, and as the last one how many more there are.
func Causes(errs field.ErrorList) field.ErrorList {
	if len(errs) <= MaxCauses {
		return errs
	}
	kept := MaxCauses - 1
	root := errs[kept].Field
	if end := strings.IndexAny(root, ".["); end > 0 {
		root = root[:end]
	}
	out := make(field.ErrorList, 0, MaxCauses)
	return append(append(out, errs[:kept]...), &field.Error{
		Type: field.ErrorTypeInvalid, Field: root, BadValue: field.OmitValueType{}, Detail: more(len(errs) - kept),
	})
}

func more(n int) string { return fmt.Sprintf("and %d more errors: correct the others first", n) }
