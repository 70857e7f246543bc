// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

func TestPluginTopShowsWhereASetRunsAndItsReadyShare(t *testing.T) {
	tier.OnRequest(t, "waits for events and metrics")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(strings.Replace(manifest("train", runOn), "containers:", "nodeSelector: {topology.kubernetes.io/zone: zone-1}\n            containers:", 1), "apply", "-f", "-")
	readyShare := func() (attempts map[string]int, ready, share float64) {
		t.Helper()
		var top struct {
			Attempts   *struct{ ByTrigger map[string]int }
			ReadyShare *struct{ ReadySeconds, Share float64 }
		}
		if err := json.Unmarshal([]byte(k.pluginOK("top", "train", "-o", "json")), &top); err != nil {
			t.Fatal(err)
		}
		if top.Attempts == nil || top.ReadyShare == nil {
			return nil, 0, 0
		}
		return top.Attempts.ByTrigger, top.ReadyShare.ReadySeconds, top.ReadyShare.Share
	}
	k.eventually(func() string {
		if attempts, ready, share := readyShare(); attempts["Start"] != 1 || ready <= 0 || share <= 0 || share > 1 {
			return fmt.Sprintf("attempts %v, ready for %v s, share %v", attempts, ready, share)
		}
		return ""
	})
	_, before, _ := readyShare()
	if r := k.plugin("restart", "train", "--reason=slow"); r.code != 0 {
		t.Fatal(r.stderr)
	}
	k.eventually(func() string {
		// What was ready before the restart stays on the account.
		if attempts, ready, _ := readyShare(); attempts["Requested"] != 1 || ready <= before {
			return fmt.Sprintf("attempts %v, ready for %v s, before the restart %v s", attempts, ready, before)
		}
		got := strings.Join(figures(k.pluginOK("top", "train")), "\n")
		for _, want := range []string{"Pods 2 of 2 ready", "Attempts 2: 1 Start, 1 Requested", "Ready share ", "\nworkers 2/2 2/2 0 - -", "\nzone-1 "} {
			if !strings.Contains(got, want) {
				return fmt.Sprintf("%q is missing in:\n%s", want, got)
			}
		}
		return ""
	})

	t.Run("a user of the namespace may not read nodes", func(t *testing.T) {
		viewer := k.account("viewer", "view")
		viewer.T = t
		viewer.eventually(func() string { // the authorizer learns of new bindings by watching
			r := viewer.plugin("top", "train")
			if r.code != 0 || !strings.Contains(r.stdout, "zone-1 ") {
				return "domains by the labels of the pods: " + r.stderr + r.stdout
			}
			return ""
		})
		got := viewer.pluginOK("top", "train", "--domain-label=jobset-apiserver.io/rack")
		if !strings.Contains(got, "Pods         2 of 2 ready") || !strings.Contains(got, "note: domains are not known: listing the nodes: nodes is forbidden") {
			t.Errorf("all but the domains must be shown, and why they are not:\n%s", got)
		}
	})
}
