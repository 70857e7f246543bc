// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/payload"
)

const (
	// maxUID is the length of the longest UID.
	maxUID = 128
	// maxStored bounds an object as it is stored, with its key and its mark in one write of etcd.
	maxStored = payload.MaxBytes - 8<<10
)

// Name names an object.
type Name struct {
	schema.GroupResource
	types.NamespacedName
}

// String is <resource>.<group> <namespace>/<name>.
func (n Name) String() string { return n.GroupResource.String() + " " + n.NamespacedName.String() }

func compare(a, b string) int { return strings.Compare(a, b) }

// object is one of the source, in the form in which it is stored.
type object struct {
	Name
	uid types.UID
	// version is its resource version at the source.
	version uint64
	data    []byte
}

// head is what names an object, whatever else is wrong with it.
type head struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
}

// name returns the name of what could not be decoded, if it has one, and a text for people, which is quoted if need be.
func (k *Kinds) name(data []byte) (Name, string, bool) {
	var h head
	if json.Unmarshal(data, &h) != nil || h.Metadata.Name == "" {
		return Name{}, "an object without a name", false
	}
	namespaced := types.NamespacedName{Namespace: h.Metadata.Namespace, Name: h.Metadata.Name}
	gvk := schema.FromAPIVersionAndKind(h.APIVersion, h.Kind)
	if kind, ok := k.kinds[gvk.GroupKind()]; ok {
		return Name{kind.resource, namespaced}, short(Name{kind.resource, namespaced}.String()), true
	}
	return Name{}, short(h.Kind + " " + namespaced.String()), true
}

// short bounds a text that may be anything.
func short(text string) string {
	const most = 400
	quoted := strconv.Quote(strings.ToValidUTF8(text[:min(len(text), most)], ""))
	return quoted[1 : len(quoted)-1]
}

// decode makes an object of JSON. Unknown fields are an error unless they are dropped.
func (k *Kinds) decode(ctx context.Context, data []byte, dropUnknown bool) (*object, error) {
	if len(data) > payload.MaxBytes {
		return nil, fmt.Errorf("it must have at most %d bytes, not %d", payload.MaxBytes, len(data))
	}
	if err := payload.Check(data); err != nil {
		return nil, err
	}
	obj, gvk, err := k.strict.Decode(data, nil, nil)
	if err != nil && (obj == nil || !dropUnknown || !runtime.IsStrictDecodingError(err)) {
		return nil, explainDecoding(err)
	}
	kind, ok := k.kinds[gvk.GroupKind()]
	if !ok {
		return nil, notServed(*gvk)
	}
	return k.checked(ctx, kind, obj)
}

// checked makes an object of one that was decoded.
func (k *Kinds) checked(ctx context.Context, kind *kind, obj runtime.Object) (*object, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	o := &object{Name: Name{kind.resource, types.NamespacedName{Namespace: accessor.GetNamespace(), Name: accessor.GetName()}},
		uid: accessor.GetUID()}
	if o.version, err = strconv.ParseUint(accessor.GetResourceVersion(), 10, 64); err != nil {
		return nil, fmt.Errorf("metadata.resourceVersion: must be a number, as of an object that was read from a cluster, not %.40q",
			accessor.GetResourceVersion())
	}
	accessor.SetResourceVersion("")
	accessor.SetSelfLink("")
	if err := kind.validate(ctx, obj, accessor); err != nil {
		return nil, err
	}
	if o.data, err = runtime.Encode(k.codec, kind.normalized(ctx, obj)); err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	if len(o.data) > maxStored {
		return nil, fmt.Errorf("it must have at most %d bytes as it is stored, not %d", maxStored, len(o.data))
	}
	return o, nil
}

func explainDecoding(err error) error {
	switch {
	case runtime.IsNotRegisteredError(err):
		return fmt.Errorf("this version does not serve it: %w", err)
	case runtime.IsMissingKind(err) || runtime.IsMissingVersion(err):
		return errors.New("apiVersion and kind must be set, as in the output of kubectl get -o json")
	case runtime.IsStrictDecodingError(err):
		return fmt.Errorf("this version would lose fields: %w", err)
	}
	return err
}

func notServed(gvk schema.GroupVersionKind) error {
	return fmt.Errorf("this version stores no objects of kind %s of %s", gvk.Kind, gvk.GroupVersion())
}

// segmentName are the rules for names that custom resources and our kinds share. The strategies know others.
func segmentName(name string, _ bool) []string { return content.IsPathSegmentName(name) }

// validate checks what a new object must be, and what the server would have set.
func (k *kind) validate(ctx context.Context, obj runtime.Object, accessor metav1.Object) error {
	metadata := field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessor(accessor, k.create.NamespaceScoped(), segmentName, metadata)
	switch uid := accessor.GetUID(); {
	case uid == "":
		errs = append(errs, field.Required(metadata.Child("uid"), "must be set: children refer to it"))
	case len(uid) > maxUID:
		errs = append(errs, field.TooLong(metadata.Child("uid"), "", maxUID))
	}
	if created := accessor.GetCreationTimestamp(); created.IsZero() {
		errs = append(errs, field.Required(metadata.Child("creationTimestamp"), "must be set"))
	}
	if accessor.GetGeneration() < 1 {
		errs = append(errs, field.Invalid(metadata.Child("generation"), accessor.GetGeneration(), "must be at least 1"))
	}
	ctx = request.WithNamespace(ctx, accessor.GetNamespace())
	return append(errs, k.create.Validate(ctx, obj.DeepCopyObject())...).ToAggregate()
}

// normalized returns the object in the form in which an update without a change stores it. What an update counts is kept.
func (k *kind) normalized(ctx context.Context, obj runtime.Object) runtime.Object {
	next := obj.DeepCopyObject()
	k.update.PrepareForUpdate(ctx, next, obj)
	if accessor, err := meta.Accessor(next); err == nil {
		before, _ := meta.Accessor(obj)
		accessor.SetGeneration(before.GetGeneration())
	}
	return next
}

// same returns whether two stored objects are equal.
func (k *Kinds) same(a, b []byte) (bool, error) {
	first, err := runtime.Decode(k.codec, a)
	if err != nil {
		return false, err
	}
	second, err := runtime.Decode(k.codec, b)
	return err == nil && equality.Semantic.DeepEqual(first, second), err
}

// uidOf returns the UID of a stored object.
func (k *Kinds) uidOf(data []byte) (types.UID, error) {
	obj, err := runtime.Decode(k.codec, data)
	if err != nil {
		return "", err
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return "", err
	}
	return accessor.GetUID(), nil
}
