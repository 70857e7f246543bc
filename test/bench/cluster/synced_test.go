// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/metrics/testutil"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/poll"
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

// TestRestartLastsUntilSetsAreSynced has a controller whose metrics are not served at first, and then show a set that waits.
func TestRestartLastsUntilSetsAreSynced(t *testing.T) {
	const synced = "# TYPE controller_runtime_reconcile_total counter\ncontroller_runtime_reconcile_total{controller=\"jobset\"} 5\n" +
		"# TYPE workqueue_depth gauge\nworkqueue_depth{name=\"jobset\"} "
	var asked atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch asked.Add(1) {
		case 1:
			http.Error(w, "not yet", http.StatusInternalServerError)
		case 2:
			fmt.Fprintln(w, synced+"1")
		default:
			fmt.Fprintln(w, synced+"0")
		}
	}))
	defer server.Close()
	c := newDir(t)
	c.Script = filepath.Join(c.Dir, "cluster.sh")
	write(t, c.Script, "#!/bin/sh\necho $1 $2 >>$CLUSTER_DIR/actions\n")
	if err := os.Chmod(c.Script, 0o755); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(c.Dir, "ports", "controller-metrics"), port+"\n")
	write(t, filepath.Join(c.Dir, "pids", "jobset-controller.pid"), strconv.Itoa(os.Getpid()))
	took, err := c.RestartController(t.Context(), 5, poll.Bound(t))
	if err != nil || took <= 0 || asked.Load() != 3 {
		t.Errorf("took %v, after %d looks, error %v", took, asked.Load(), err)
	}
	actions, err := os.ReadFile(filepath.Join(c.Dir, "actions"))
	if d := cmp.Diff("stop controller\nstart controller\n", string(actions)); d != "" || err != nil {
		t.Errorf("error %v, actions (-want +got):\n%s", err, d)
	}
	_, err = c.RestartController(t.Context(), 6, time.Millisecond)
	if want := "waiting until jobset-controller has synced 6 JobSets"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, must contain %q", err, want)
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
