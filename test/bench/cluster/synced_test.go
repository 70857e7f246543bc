// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	"k8s.io/component-base/metrics/testutil"
)

func TestKeysOfNamespaces(t *testing.T) {
	counts := inNamespaces([]string{"bench-a", "bench-b"})
	for key, want := range map[string]bool{
		"/registry/jobs/bench-a/train":                       true,
		"/registry/services/endpoints/bench-b/train":         true,
		"/registry/jobset.x-k8s.io/jobsets/bench-a/train":    true,
		"/registry/namespaces/bench-a":                       false,
		"/registry/jobs/bench-abc/train":                     false,
		"/registry/jobs/default/bench-a":                     false,
		"/registry/apiextensions.k8s.io/crds/jobsets.x":      false,
		"/registry/events/bench-b/train.18a2b3c4d5e6f708":    true,
		"/registry/clusterroles/bench-a:system:aggregate-to": false,
		"": false,
	} {
		if got := counts(key); got != want {
			t.Errorf("%s: got %t, want %t", key, got, want)
		}
	}
}

func TestSetsAreSyncedWhenNoneWaits(t *testing.T) {
	const others = `# TYPE workqueue_depth gauge
workqueue_depth{name="sequentialjob"} 7
# TYPE controller_runtime_reconcile_total counter
controller_runtime_reconcile_total{controller="sequentialjob",result="success"} 90
# TYPE controller_runtime_active_workers gauge
controller_runtime_active_workers{controller="sequentialjob"} 1
`
	lines := func(reconciled, depth, active string) string {
		return "# TYPE controller_runtime_reconcile_total counter\n" + reconciled + "# TYPE workqueue_depth gauge\n" + depth +
			"# TYPE controller_runtime_active_workers gauge\n" + active
	}
	idle, none := `controller_runtime_active_workers{controller="jobset"} 0`+"\n", `workqueue_depth{name="jobset"} 0`+"\n"
	// Queues with priorities have a depth for each priority.
	upstreams := `workqueue_depth{controller="jobset",name="jobset",priority="0"} 0` + "\n" + `workqueue_depth{controller="jobset",name="jobset",priority="-100"} `
	all := `controller_runtime_reconcile_total{controller="jobset",result="success"} 3` + "\n" +
		`controller_runtime_reconcile_total{controller="jobset",result="requeue_after"} 2` + "\n"
	for name, tc := range map[string]struct {
		text string
		want bool
	}{
		"all":                          {lines(all, none, idle), true},
		"all, of upstream":             {lines(all, upstreams+"0\n", idle), true},
		"one waits":                    {lines(all, strings.Replace(none, "0\n", "1\n", 1), idle), false},
		"one of a low priority waits":  {lines(all, upstreams+"1\n", idle), false},
		"one is being synced":          {lines(all, none, strings.Replace(idle, "0\n", "1\n", 1)), false},
		"too few":                      {lines(strings.Replace(all, "3\n", "2\n", 1), none, idle), false},
		"only objects of other kinds":  {others, false},
		"nothing, as right at a start": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			metrics := testutil.NewMetrics()
			if err := testutil.ParseMetrics(tc.text, &metrics); err != nil {
				t.Fatal(err)
			}
			if got := hasSynced(metrics, 5); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
