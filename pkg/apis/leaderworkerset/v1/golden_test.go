// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/install"
	v1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// updateGolden rewrites testdata/HEAD when it is set to 1. Files of earlier releases, in testdata/v*, never change.
const updateGolden = "UPDATE_GOLDEN"

func kinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{v1.SchemeGroupVersion.WithKind("LeaderWorkerSet")}
}

func golden(t *testing.T) *roundtrip.CompatibilityTestOptions {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	options := roundtrip.NewCompatibilityTestOptions(scheme)
	options.Kinds = kinds()
	return options.Complete(t)
}

// Clients that were built against an earlier release must be understood, so the wire form of every field is kept on file.
func TestWireFormsEqualTheGoldenFiles(t *testing.T) {
	if os.Getenv(updateGolden) == "1" {
		t.Setenv("UPDATE_COMPATIBILITY_FIXTURE_DATA", "true") // the name that the library knows
	}
	golden(t).Run(t)
}

// The golden files are worth something only if they hold every field.
func TestGoldenObjectsHaveEveryField(t *testing.T) {
	objects := golden(t).FilledObjects
	for _, kind := range kinds() {
		value := reflect.ValueOf(objects[kind]).Elem()
		for _, part := range []string{"Spec", "Status"} {
			for _, path := range unset(value.FieldByName(part), kind.Kind+"."+strings.ToLower(part)) {
				t.Errorf("%s is not set", path)
			}
		}
	}
}

// unset lists the fields of our own types that are zero.
func unset(v reflect.Value, path string) []string {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		return unset(v.Elem(), path)
	}
	if v.Kind() == reflect.Struct && v.Type().PkgPath() == reflect.TypeFor[v1.LeaderWorkerSet]().PkgPath() {
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
