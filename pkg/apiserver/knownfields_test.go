// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// These types have what upstream's types have, as far as the test writes it.
type (
	upstreamSet[S, T any] struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              S `json:"spec"`
		Status            T `json:"status,omitzero"`
	}
	upstreamGroups struct {
		Replicas             *int32         `json:"replicas,omitempty"`
		RolloutStrategy      map[string]any `json:"rolloutStrategy,omitempty"`
		StartupPolicy        string         `json:"startupPolicy"`
		NetworkConfig        map[string]any `json:"networkConfig,omitempty"`
		LeaderWorkerTemplate struct {
			WorkerTemplate corev1.PodTemplateSpec `json:"workerTemplate"`
			Size           *int32                 `json:"size,omitempty"`
			RestartPolicy  string                 `json:"restartPolicy,omitempty"`
		} `json:"leaderWorkerTemplate"`
	}
	upstreamRoles struct {
		Slices *int32 `json:"slices,omitempty"`
		Roles  []struct {
			Name    string         `json:"name"`
			Scaling map[string]any `json:"scaling,omitempty"`
			Spec    upstreamGroups `json:"spec"`
		} `json:"roles"`
	}
	upstreamCounts struct {
		Replicas int32 `json:"replicas,omitempty"`
	}
	upstreamStatus struct {
		Restarts int32 `json:"restarts"`
	}
)

const ownGroups = `
  paused: true
  revisionHistoryLimit: 3
  groupRestartBackoff: {baseSeconds: 5, maxSeconds: 50}
  leaderWorkerTemplate: {size: 2, maxGroupRestarts: 4, workerTemplate: {spec: {containers: [{name: a, image: b}]}}}`

// ownFields is a write of an object whose client lacks fields.
type ownFields struct {
	resource
	subresource string
	// base is the object without the fields that upstream's types lack. applied has them, as "owner" applies them.
	base, applied string
	// replace returns the object as a client with upstream's types sends it, after a change.
	replace func(t *testing.T, object []byte) []byte
	// changed is a field that replace changes.
	changed []string
	// fields are what upstream's types lack.
	fields [][]string
}

func replaced[S, T any](change func(*upstreamSet[S, T])) func(*testing.T, []byte) []byte {
	return func(t *testing.T, object []byte) []byte {
		t.Helper()
		set := &upstreamSet[S, T]{}
		if err := json.Unmarshal(object, set); err != nil {
			t.Fatal(err)
		}
		change(set)
		body, err := json.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
}

func writesThatLackFields() map[string]ownFields {
	const groups = `{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "a"},
		"spec": {"leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}}}`
	roles := `{"apiVersion": "disaggregatedset.x-k8s.io/v1", "kind": "DisaggregatedSet", "metadata": {"name": "a"}, "spec": {"roles": [` +
		strings.ReplaceAll(`{"name": "prefill", "spec": S}, {"name": "decode", "spec": S}`, "S",
			`{"leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}}`) + `]}}`
	return map[string]ownFields{
		"JobSet, status": {
			resource: resource{jobsetsPath, "a"}, subresource: "/status",
			base: `{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "a"}, "spec": {}}`,
			applied: `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: a}, status: {
				attempts: [{number: 1, trigger: Start, scope: JobSet, requestTime: "2026-01-02T03:04:05.000006Z"}], readyMilliseconds: 1000, goodMilliseconds: 900, addedRestarts: 2,
				executionAttempts: 3, placement: {restarts: 0, replicatedJobs: [{name: w, topologyKey: rack, jobs: [{domain: r1}]}]}}}`,
			replace: replaced(func(s *upstreamSet[map[string]any, upstreamStatus]) { s.Status.Restarts++ }),
			changed: []string{"status", "restarts"},
			fields: [][]string{
				{"status", "attempts"}, {"status", "readyMilliseconds"}, {"status", "goodMilliseconds"}, {"status", "addedRestarts"},
				{"status", "executionAttempts"}, {"status", "placement"},
			},
		},
		"LeaderWorkerSet": {
			resource: resource{leaderWorkerSetsPath, "a"}, base: groups,
			applied: "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: a}\nspec:" + ownGroups,
			replace: replaced(func(s *upstreamSet[upstreamGroups, upstreamCounts]) { *s.Spec.Replicas++ }),
			changed: []string{"spec", "replicas"},
			fields: [][]string{
				{"spec", "paused"}, {"spec", "revisionHistoryLimit"}, {"spec", "groupRestartBackoff"}, {"spec", "leaderWorkerTemplate", "maxGroupRestarts"},
			},
		},
		"LeaderWorkerSet, status": {
			resource: resource{leaderWorkerSetsPath, "a"}, subresource: "/status", base: groups,
			applied: `{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: a}, status: {
				groups: [{index: 0, restarts: 2}], restart: {requestTime: "2026-01-02T03:04:05.000006Z", all: true}}}`,
			replace: replaced(func(s *upstreamSet[upstreamGroups, upstreamCounts]) { s.Status.Replicas++ }),
			changed: []string{"status", "replicas"},
			fields:  [][]string{{"status", "groups"}, {"status", "restart"}},
		},
		"DisaggregatedSet": {
			resource: resource{"/apis/disaggregatedset.x-k8s.io/v1/namespaces/default/disaggregatedsets", "a"}, base: roles,
			applied: "apiVersion: disaggregatedset.x-k8s.io/v1\nkind: DisaggregatedSet\nmetadata: {name: a}\nspec:\n  roles:\n  - name: decode\n    spec:" +
				strings.ReplaceAll(ownGroups, "\n", "\n    "),
			replace: replaced(func(s *upstreamSet[upstreamRoles, struct{}]) { *s.Spec.Slices++ }),
			changed: []string{"spec", "slices"},
			fields:  [][]string{{"spec", "roles"}},
		},
	}
}

// lacking is a server that holds an object with fields that upstream's types lack, which "owner" has applied.
type lacking struct {
	*inProcess
	ownFields
}

func newLacking(t *testing.T, c ownFields) lacking {
	t.Helper()
	s := lacking{newInProcess(t, c.resource, "ExecutionAttemptsTracking", "DisaggregatedSet"), c}
	s.hold(t, []byte(c.base))
	s.write(t, http.MethodPatch, "owner&force=true", string(types.ApplyPatchType), []byte(c.applied))
	return s
}

func (s lacking) url(manager string) string {
	return s.inProcess.object() + s.subresource + "?fieldManager=" + manager
}

// write sends a change that must be accepted, stores it, and returns what the server warns of.
func (s lacking) write(t *testing.T, method, manager, media string, body []byte) []string {
	t.Helper()
	w, refusal := s.send(t, method, s.url(manager), media, body)
	if refusal != nil {
		t.Fatalf("%s by %s is refused: %s", method, manager, refusal.Message)
	}
	s.store.stored = s.store.written
	s.store.stored.(metav1.Object).SetResourceVersion("1")
	return w.Header().Values("Warning")
}

func (s lacking) stored(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(s.storedJSON(t)); err != nil {
		t.Fatal(err)
	}
	return object
}

func (s lacking) values(t *testing.T) map[string]any {
	t.Helper()
	values, object := map[string]any{}, s.stored(t)
	for _, path := range s.fields {
		if value, found, err := unstructured.NestedFieldCopy(object.Object, path...); found && err == nil {
			values[strings.Join(path, ".")] = value
		}
	}
	return values
}

// owned returns which fields managers own, without those that the client changes.
func (s lacking) owned(t *testing.T) map[string]string {
	t.Helper()
	managers := map[string]string{}
	for _, entry := range s.stored(t).GetManagedFields() {
		set := &fieldpath.Set{}
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			t.Fatal(err)
		}
		parts := make([]any, len(s.changed))
		for i, part := range s.changed {
			parts[i] = part
		}
		set = set.Difference(fieldpath.NewSet(fieldpath.MakePathOrDie(parts...)))
		if !set.Empty() {
			managers[fmt.Sprintf("%s %s %s", entry.Manager, entry.Operation, entry.Subresource)] = set.String()
		}
	}
	return managers
}

func TestUpdatesKeepFieldsThatUpstreamLacks(t *testing.T) {
	for name, c := range writesThatLackFields() {
		t.Run(name, func(t *testing.T) {
			s := newLacking(t, c)
			values, owned := s.values(t), s.owned(t)
			if len(values) != len(c.fields) {
				t.Fatalf("the base has %v", values)
			}
			for round := range 2 {
				before := s.stored(t)
				warnings := s.write(t, http.MethodPut, "upstream", mediaJSON, c.replace(t, s.storedJSON(t)))
				if diff := cmp.Diff(values, s.values(t)); diff != "" {
					t.Errorf("update %d (-want +got):\n%s", round, diff)
				}
				if diff := cmp.Diff(owned, s.owned(t)); diff != "" {
					t.Errorf("owners of fields after update %d (-want +got):\n%s", round, diff)
				}
				was, _, _ := unstructured.NestedInt64(before.Object, c.changed...)
				is, _, _ := unstructured.NestedInt64(s.stored(t).Object, c.changed...)
				if is != was+1 {
					t.Errorf("%v was %d and is %d", c.changed, was, is)
				}
				if spec := c.subresource == ""; spec != slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "keeps its value") }) {
					t.Errorf("warnings %q", warnings)
				}
			}
		})
	}
}

// An update that changes nothing but what upstream's types lack changes nothing, not even who owns what.
func TestUpdatesWithoutChangeWriteNothing(t *testing.T) {
	for name, c := range writesThatLackFields() {
		s := newLacking(t, c)
		before := s.stored(t)
		undo := func(body []byte) []byte {
			object := map[string]any{}
			if err := json.Unmarshal(body, &object); err != nil {
				t.Fatal(err)
			}
			unstructured.RemoveNestedField(object, c.changed...)
			if value, found, _ := unstructured.NestedFieldNoCopy(before.Object, c.changed...); found {
				if err := unstructured.SetNestedField(object, value, c.changed...); err != nil {
					t.Fatal(err)
				}
			}
			body, _ = json.Marshal(object)
			return body
		}
		s.write(t, http.MethodPut, "upstream", mediaJSON, undo(c.replace(t, s.storedJSON(t))))
		if diff := cmp.Diff(before, s.stored(t)); diff != "" {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
	}
}
