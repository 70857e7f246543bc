// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
)

// Clients that know the fields can remove them.
func TestFieldsThatUpstreamLacksAreRemoved(t *testing.T) {
	for name, c := range writesThatLackFields() {
		if c.fields[0][1] == "roles" {
			continue // roles are removed as any item of a list
		}
		merge := map[string]any{}
		var steps []map[string]any
		for _, path := range c.fields {
			if err := unstructured.SetNestedField(merge, nil, path...); err != nil {
				t.Fatal(err)
			}
			steps = append(steps, map[string]any{"op": "remove", "path": "/" + strings.Join(path, "/")})
		}
		mergePatch, _ := json.Marshal(merge)
		jsonPatch, _ := json.Marshal(steps)
		released, _, _ := strings.Cut(c.applied, "spec:")
		if c.subresource != "" {
			released, _, _ = strings.Cut(c.applied, ", status:")
			released += "}"
		}
		for how, remove := range map[string]func(lacking){
			"a merge patch": func(s lacking) { s.write(t, http.MethodPatch, "m", string(types.MergePatchType), mergePatch) },
			"a strategic merge patch": func(s lacking) {
				s.write(t, http.MethodPatch, "m", string(types.StrategicMergePatchType), mergePatch)
			},
			"a JSON patch": func(s lacking) { s.write(t, http.MethodPatch, "m", string(types.JSONPatchType), jsonPatch) },
			"the applier": func(s lacking) {
				s.write(t, http.MethodPatch, "owner", string(types.ApplyPatchType), []byte(released))
			},
			"an update in protobuf": func(s lacking) {
				scheme, _ := apiserver.NewScheme()
				kind := s.stored(t).GroupVersionKind()
				typed, err := scheme.New(kind)
				if err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(c.replace(t, s.storedJSON(t)), typed); err != nil {
					t.Fatal(err)
				}
				s.write(t, http.MethodPut, "own", mediaProtobuf, encoded(t, scheme, typed, kind.GroupVersion()))
			},
		} {
			s := newLacking(t, c)
			remove(s)
			if values := s.values(t); len(values) > 0 {
				t.Errorf("%s, %s: %v is left", name, how, values)
			}
		}
	}
}

func encoded(t *testing.T, scheme *runtime.Scheme, object runtime.Object, version schema.GroupVersion) []byte {
	t.Helper()
	object.GetObjectKind().SetGroupVersionKind(version.WithKind(object.GetObjectKind().GroupVersionKind().Kind))
	body, err := runtime.Encode(protobuf.NewSerializer(scheme, scheme), object)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// A limit of restarts ends with the restarts, so that a client that does not know it can switch them off.
func TestLimitOfRestartsEndsWithThem(t *testing.T) {
	c := writesThatLackFields()["LeaderWorkerSet"]
	s := newLacking(t, c)
	none := replaced(func(set *upstreamSet[upstreamGroups, upstreamCounts]) {
		set.Spec.LeaderWorkerTemplate.RestartPolicy = "None"
	})
	s.write(t, http.MethodPut, "upstream", mediaJSON, none(t, s.storedJSON(t)))
	want := map[string]any{"spec.paused": true, "spec.revisionHistoryLimit": int64(3), "spec.groupRestartBackoff": map[string]any{"baseSeconds": int64(5), "maxSeconds": int64(50)}}
	if diff := cmp.Diff(want, s.values(t)); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}
