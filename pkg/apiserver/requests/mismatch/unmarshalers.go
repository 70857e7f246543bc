// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package mismatch

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// expected says what types with a format of their own must be.
var expected = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():  "must be a quantity such as 500m or 2Gi",
	reflect.TypeFor[metav1.Time]():        "must be a time such as 2026-01-31T12:00:00Z",
	reflect.TypeFor[metav1.MicroTime]():   "must be a time such as 2026-01-31T12:00:00.000000Z",
	reflect.TypeFor[metav1.Duration]():    "must be a duration such as 1h30m",
	reflect.TypeFor[intstr.IntOrString](): "must be an integer or a string",
}

// unmarshaler asks a type that reads itself whether it can read the value.
func (f *finder) unmarshaler(v any, t reflect.Type, path *field.Path) {
	data, err := json.Marshal(v)
	if err != nil {
		return
	}
	if json.Unmarshal(data, reflect.New(t).Interface()) == nil {
		return
	}
	detail, known := expected[t]
	if !known {
		detail = "must be a " + t.Name()
	}
	f.refuse(path, v, detail)
}
