// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package mismatch

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
)

// full has a field of each kind of type.
const full = `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"train","labels":{"a":"b"},
"creationTimestamp":"2026-01-31T12:00:00Z","managedFields":[{"manager":"m","fieldsV1":{"f:spec":{}}}]},
"spec":{"suspend":true,"failurePolicy":{"maxRestarts":3,"rules":[{"name":"r","onJobFailureReasons":["x"]}]},"replicatedJobs":[{"name":"w","replicas":2,
"template":{"spec":{"activeDeadlineSeconds":60,"template":{"spec":{"containers":[{"name":"c","args":["a"],"livenessProbe":{"httpGet":{"port":80}},
"resources":{"limits":{"cpu":"1"}}}],"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Gi"}}]}}}}}]},
"status":{"startTime":"2026-01-31T12:00:00Z","attempts":[{"number":1}]}}`

func decoder() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(v1alpha2.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme).UniversalDeserializer()
}

// replaced calls fn with the document once for each value in it, which is replaced by the other one.
func replaced(document any, other any, fn func(path string)) {
	var walk func(v any, path string, put func(any))
	walk = func(v any, path string, put func(any)) {
		put(other)
		fn(path)
		put(v)
		switch v := v.(type) {
		case map[string]any:
			for key, item := range v {
				walk(item, path+"."+key, func(x any) { v[key] = x })
			}
		case []any:
			for i, item := range v {
				walk(item, fmt.Sprintf("%s[%d]", path, i), func(x any) { v[i] = x })
			}
		}
	}
	for key, item := range document.(map[string]any) {
		if key != "apiVersion" && key != "kind" {
			walk(item, key, func(x any) { document.(map[string]any)[key] = x })
		}
	}
}

// What is found is exactly what the decoder refuses: otherwise the answer to another error would be replaced.
func TestFindAgreesWithTheDecoder(t *testing.T) {
	var document any
	if !decode([]byte(full), &document) {
		t.Fatal("the document is no JSON")
	}
	codec, refused, accepted := decoder(), 0, 0
	for _, other := range []any{
		"x", "", "4", "1Gi", "YQ==", "2026-01-31T12:00:00Z", json.Number("7"), json.Number("-1"), json.Number("1.5"), json.Number("1e3"), json.Number("3000000000"),
		json.Number("99999999999999999999"), true, nil, []any{}, []any{"a"}, []any{json.Number("1")}, map[string]any{}, map[string]any{"a": "b"},
	} {
		replaced(document, other, func(path string) {
			data, err := json.Marshal(document)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = codec.Decode(data, nil, &v1alpha2.JobSet{})
			errs := find(document, reflect.TypeFor[v1alpha2.JobSet](), nil, false)
			if (err != nil) != (len(errs) > 0) {
				t.Errorf("%s is %v: the decoder says %v, found is %v", path, other, err, errs)
			}
			if err != nil {
				refused++
			} else {
				accepted++
			}
		})
	}
	if refused < 100 || accepted < 100 {
		t.Errorf("%d refused, %d accepted: the document shows too little", refused, accepted)
	}
}

func TestFindIsBounded(t *testing.T) {
	items := strings.TrimSuffix(strings.Repeat(`{"replicas":"x","nothing":1},`, 5000), ",")
	b := body{data: []byte(`{"spec":{"replicatedJobs":[` + items + `]}}`), t: reflect.TypeFor[v1alpha2.JobSet](), strict: true}
	errs, _ := b.mismatches()
	if len(errs) != bounds.MaxCauses || !strings.Contains(errs[len(errs)-1].Detail, "more errors") {
		t.Errorf("%d errors, the last is %v", len(errs), errs[len(errs)-1])
	}
}

func TestSuggestions(t *testing.T) {
	cases := map[string]struct{ path, want string }{
		"a capital is missing":         {"replicatedjobs", `; did you mean "replicatedJobs"?`},
		"two letters are swapped":      {"supsend", `; did you mean "suspend"?`},
		"the field is further down":    {"maxRestarts", `; did you mean "spec.failurePolicy.maxRestarts"?`},
		"the field is below a list":    {"completions", `; did you mean "spec.replicatedJobs[].template.spec.completions"?`},
		"nothing is like it":           {"zzzzzz", ""},
		"a name that is out of bounds": {strings.Repeat("a", 1000), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, suggestion(reflect.TypeFor[v1alpha2.JobSetSpec](), field.NewPath("spec"), tc.path)); diff != "" {
				t.Errorf("suggestion (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBodies(t *testing.T) {
	const merge, apply, operations = "application/merge-patch+json", "application/apply-patch+yaml", "application/json-patch+json"
	cases := map[string]struct {
		media, body string
		want        []string
	}{
		"nothing is wrong":                  {"application/json", full, nil},
		"text that is no JSON":              {"application/json", `{"spec":`, nil},
		"a format that is not text":         {"application/vnd.kubernetes.protobuf", full, nil},
		"YAML":                              {"application/yaml", "spec:\n  suspend: maybe\n", []string{`spec.suspend: Invalid value: "maybe": must be true or false, without quotes`}},
		"another kind":                      {"application/json", `{"kind":"Job"}`, []string{`kind: Invalid value: "Job": must be JobSet`}},
		"a null removes":                    {merge, `{"spec":{"failurePolicy":null}}`, nil},
		"an apply":                          {apply, `{"spec":{"replicatedJobs":[{"replicas":"x"}]}}`, []string{`spec.replicatedJobs[0].replicas: Invalid value: "x": must be an integer`}},
		"operations at fields and elements": {operations, `[{"op":"add","path":"/spec/replicatedJobs/-","value":3},{"op":"add","path":"/metadata/labels/a~1b","value":1}]`, []string{`spec.replicatedJobs[-]: Invalid value: 3: must be an object`, `metadata.labels[a/b]: Invalid value: 1: must be a string: put it in quotes, "1"`}},
		"operations that set nothing":       {operations, `[{"op":"remove","path":"/spec/suspend","value":3},{"op":"test","path":"/spec/suspend","value":3},{"op":"add","path":"/nothing/at/all","value":3}]`, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := body{media: tc.media, data: []byte(tc.body), kind: v1alpha2.SchemeGroupVersion.WithKind("JobSet"), t: reflect.TypeFor[v1alpha2.JobSet]()}
			errs, _ := b.mismatches()
			var got []string
			for _, err := range errs {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}
