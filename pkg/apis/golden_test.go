// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// updateGolden rewrites testdata/HEAD of each version when it is set to 1. Files of earlier releases, in testdata/v*, never change.
const updateGolden = "UPDATE_GOLDEN"

// goldenObjects has an object of each kind with every field.
func goldenObjects(t *testing.T, g group) *roundtrip.CompatibilityTestOptions {
	t.Helper()
	scheme, _ := g.scheme()
	options := roundtrip.NewCompatibilityTestOptions(scheme)
	options.TestDataDir, options.Kinds = filepath.Join(g.directory, "testdata"), g.objects()
	return options.Complete(t)
}

// Stored objects and old clients must always be understood, so the wire form of every field is kept on file.
func TestWireFormsEqualTheGoldenFiles(t *testing.T) {
	if os.Getenv(updateGolden) == "1" {
		t.Setenv("UPDATE_COMPATIBILITY_FIXTURE_DATA", "true") // the name that the library knows
	}
	forEachGroup(t, func(t *testing.T, g group) {
		options := goldenObjects(t, g)
		if list, kind := jobSets(); kind.GroupVersion() == g.version {
			options.Kinds, options.FilledObjects[kind] = append(options.Kinds, kind), list
		}
		options.Run(t)
	})
}

// jobSets returns a list of two JobSets, and its kind. The golden JobSet holds every field; the list shows how it holds items.
func jobSets() (*jobsetv1alpha2.JobSetList, schema.GroupVersionKind) {
	kind := jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSetList")
	out := &jobsetv1alpha2.JobSetList{ListMeta: metav1.ListMeta{
		ResourceVersion: "resourceVersionValue", Continue: "continueValue", RemainingItemCount: ptr.To[int64](7),
	}}
	out.SetGroupVersionKind(kind)
	for _, name := range []string{"first", "second"} {
		item := jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "namespaceValue"}}
		item.Spec.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJob{{Name: "workers", Replicas: ptr.To[int32](0)}}
		out.Items = append(out.Items, item)
	}
	return out, kind
}

// The golden files are worth something only if they hold every field.
func TestGoldenObjectsHaveEveryField(t *testing.T) {
	forEachGroup(t, func(t *testing.T, g group) {
		for kind, object := range goldenObjects(t, g).FilledObjects {
			value := reflect.ValueOf(object).Elem()
			for i := range value.NumField() {
				field := value.Type().Field(i)
				if field.Anonymous { // the type and the metadata are of the library
					continue
				}
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				for _, path := range unset(value.Field(i), value.Type().PkgPath(), kind.Kind+"."+name) {
					t.Errorf("%s is not set", path)
				}
			}
		}
	})
}

// unset lists the fields of the types of a package that are zero, or lists without items.
func unset(v reflect.Value, pkgPath, path string) []string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return []string{path}
		}
		return unset(v.Elem(), pkgPath, path)
	case reflect.Slice:
		if v.Len() == 0 {
			return []string{path}
		}
		return unset(v.Index(0), pkgPath, path+"[0]")
	case reflect.Struct:
		if v.Type().PkgPath() != pkgPath {
			break
		}
		var out []string
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			out = append(out, unset(v.Field(i), pkgPath, path+"."+name)...)
		}
		return out
	}
	if v.IsZero() {
		return []string{path}
	}
	return nil
}

func TestConversionKeepsEveryField(t *testing.T) {
	forEachGroup(t, func(t *testing.T, g group) {
		scheme, _ := g.scheme()
		for kind, object := range goldenObjects(t, g).FilledObjects {
			object.GetObjectKind().SetGroupVersionKind(kind)
			convertThereAndBack(t, g, scheme, object)
		}
	})
}
