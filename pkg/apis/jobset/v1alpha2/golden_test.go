// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha2_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// updateGolden rewrites testdata/HEAD when it is set to 1. Files of earlier releases, in testdata/v*, never change.
const updateGolden = "UPDATE_GOLDEN"

func newScheme() (*runtime.Scheme, serializer.CodecFactory) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme, serializer.NewCodecFactory(scheme)
}

func kinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		v1alpha2.SchemeGroupVersion.WithKind("JobSet"),
		v1alpha2.SchemeGroupVersion.WithKind("JobSetList"),
	}
}

// Stored objects and old clients must be understood for ever, so the wire form of every field is kept on file.
func TestWireFormsEqualTheGoldenFiles(t *testing.T) {
	if os.Getenv(updateGolden) == "1" {
		t.Setenv("UPDATE_COMPATIBILITY_FIXTURE_DATA", "true") // the name that the library knows
	}
	scheme, _ := newScheme()
	options := roundtrip.NewCompatibilityTestOptions(scheme)
	options.Kinds = kinds()
	// The golden JobSet holds every field; its list needs to show how it holds items.
	options.FilledObjects = map[schema.GroupVersionKind]runtime.Object{kinds()[1]: list()}
	options.Complete(t).Run(t)
}

func list() *v1alpha2.JobSetList {
	out := &v1alpha2.JobSetList{ListMeta: metav1.ListMeta{
		ResourceVersion: "resourceVersionValue", Continue: "continueValue", RemainingItemCount: ptr.To[int64](7),
	}}
	out.SetGroupVersionKind(kinds()[1])
	for _, name := range []string{"first", "second"} {
		item := v1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "namespaceValue"}}
		item.Spec.ReplicatedJobs = []v1alpha2.ReplicatedJob{{Name: "workers", Replicas: ptr.To[int32](0)}}
		out.Items = append(out.Items, item)
	}
	return out
}

func filled(t *testing.T, scheme *runtime.Scheme) *v1alpha2.JobSet {
	t.Helper()
	options := roundtrip.NewCompatibilityTestOptions(scheme)
	options.Kinds = kinds()[:1]
	return options.Complete(t).FilledObjects[kinds()[0]].(*v1alpha2.JobSet)
}

// The golden files are worth something only if they hold every field.
func TestGoldenObjectHasEveryField(t *testing.T) {
	scheme, _ := newScheme()
	object := filled(t, scheme)
	for _, path := range unset(reflect.ValueOf(object.Spec), "spec") {
		t.Errorf("%s is not set", path)
	}
	for _, path := range unset(reflect.ValueOf(object.Status), "status") {
		t.Errorf("%s is not set", path)
	}
}

// unset lists the fields of our own types that are zero, or lists without items.
func unset(v reflect.Value, path string) []string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return []string{path}
		}
		return unset(v.Elem(), path)
	case reflect.Slice:
		if v.Len() == 0 {
			return []string{path}
		}
		return unset(v.Index(0), path+"[0]")
	case reflect.Struct:
		if v.Type().PkgPath() != reflect.TypeFor[v1alpha2.JobSet]().PkgPath() {
			break
		}
		var out []string
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			out = append(out, unset(v.Field(i), path+"."+name)...)
		}
		return out
	}
	if v.IsZero() {
		return []string{path}
	}
	return nil
}

func TestConversionKeepsEveryField(t *testing.T) {
	scheme, _ := newScheme()
	want := filled(t, scheme)
	want.TypeMeta = v1alpha2.JobSet{}.TypeMeta // conversion leaves the kind to the codecs
	hub, got := &jobset.JobSet{}, &v1alpha2.JobSet{}
	if err := scheme.Convert(want.DeepCopy(), hub, nil); err != nil {
		t.Fatal(err)
	}
	if err := scheme.Convert(hub, got, nil); err != nil {
		t.Fatal(err)
	}
	if !apiequality.Semantic.DeepEqual(want, got) {
		t.Errorf("there and back (-want +got):\n%s", cmp.Diff(want, got))
	}
}
