// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
)

func TestNotices(t *testing.T) {
	var seen notices
	for i, content := range []string{
		`{"spec":{"managedBy":"jobset.sigs.k8s.io/jobset-controller"},"status":{"restarts":0}}`,
		`{"spec":{"managedBy":"kueue.x-k8s.io/multikueue"}}`,
		`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"status":{"restarts":2}}`,
		`{"metadata":{"annotations":{"alpha.jobset.sigs.k8s.io/exclusive-topology":"rack"}},"spec":{"failurePolicy":{"restartStrategy":"InPlaceRestart"}}}`,
		`{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"q"}}}`,
	} {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(content), &object.Object); err != nil {
			t.Fatal(err)
		}
		object.SetNamespace("ns")
		object.SetName(fmt.Sprint("set-", i))
		seen.of(object)
	}
	for i := range 7 {
		seen.add("are many", "ns", fmt.Sprint(i))
	}
	var out bytes.Buffer
	seen.print(&out)
	want := `  1 are being deleted: they are moved, and wait for their finalizers as before: ns/set-2
  1 are in queues of Kueue: it admits none of them while writes are refused: ns/set-4
  1 are managed by kueue.x-k8s.io/multikueue: jobset-controller leaves them alone: ns/set-1
  7 are many: ns/0, ns/1, ns/2, ns/3, ns/4 and 2 more
  1 have restarted: status.restarts goes on counting, and status.attempts has only what happens after the move: ns/set-2
  1 place Jobs exclusively: pods that exist stay; jobset-controller, and no webhook for pods, chooses where later Jobs run: ns/set-3
  1 restart in place: this goes on only with the feature gate InPlaceRestart of both programs: ns/set-3
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMissing(t *testing.T) {
	for has, tc := range map[string]struct {
		got  string
		want []string
	}{
		`{"a":{"b":1,"c":2}}`:           {`{"a":{"b":3}}`, []string{"spec.a.c"}},
		`{"a":[{"b":1},{"b":1,"c":2}]}`: {`{"a":[{"b":1},{"b":1}]}`, []string{"spec.a[].c"}},
		`{"a":{"b":{"c":1}}}`:           {`{"a":{}}`, []string{"spec.a.b"}},
		`{"a":1}`:                       {`{"a":2,"z":1}`, []string{}},
	} {
		var first, second any
		if err := json.Unmarshal([]byte(has), &first); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(tc.got), &second); err != nil {
			t.Fatal(err)
		}
		fields := sets.New[string]()
		missing("spec", first, second, fields)
		if diff := cmp.Diff(tc.want, sets.List(fields)); diff != "" {
			t.Errorf("%s beside %s (-want +got):\n%s", has, tc.got, diff)
		}
	}
}
