// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestTopShowsTheNumbersOfTheMetrics compares the shares of a set that has finished, which no longer change.
func TestTopShowsTheNumbersOfTheMetrics(t *testing.T) {
	tier.OnRequest(t, "compares numbers of the whole cluster")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn), "create", "-f", "-")
	k.awaitSummary("train", "restarts=0 | 1 Start, ready")
	k.ok("annotate", "jobset", "train", "jobset-apiserver.io/checkpoint-step=12000")
	k.pluginOK("cancel", "train", "--yes", "--wait", "--timeout=5m")
	var top struct {
		ReadyShare struct{ Share float64 }
		Goodput    struct {
			Share float64
			Step  int64
		}
	}
	if err := json.Unmarshal([]byte(k.pluginOK("top", "train", "-o", "json")), &top); err != nil {
		t.Fatal(err)
	}
	if top.ReadyShare.Share <= 0 || top.Goodput.Share <= 0 || top.Goodput.Share > top.ReadyShare.Share || top.Goodput.Step != 12000 {
		t.Errorf("shares: %+v", top)
	}

	port, err := os.ReadFile(filepath.Join(k.cluster.Dir, "ports", "controller-metrics"))
	if err != nil {
		t.Fatal(err)
	}
	k.ok("create", "serviceaccount", "prometheus")
	k.ok("create", "clusterrolebinding", k.namespace, "--clusterrole=jobset-metrics-reader", "--serviceaccount="+k.namespace+":prometheus")
	t.Cleanup(func() { k.run("", "delete", "clusterrolebinding", k.namespace) })
	config := &rest.Config{
		Host: "https://127.0.0.1:" + strings.TrimSpace(string(port)), TLSClientConfig: rest.TLSClientConfig{Insecure: true}, // self-signed
		BearerToken: strings.TrimSpace(k.ok("create", "token", "prometheus")),
	}
	labels := fmt.Sprintf(`{jobset_name="train",namespace=%q}`, k.namespace)
	k.eventually(func() string {
		code, body := framework.Get(t, config, "/metrics")
		if code != http.StatusOK {
			return fmt.Sprintf("status %d: %.200s", code, body)
		}
		for metric, want := range map[string]float64{"jobset_ready_ratio": top.ReadyShare.Share, "jobset_goodput_ratio": top.Goodput.Share} {
			if line := fmt.Sprintf("%s%s %v\n", metric, labels, want); !strings.Contains(body, line) {
				return "missing: " + line
			}
		}
		return ""
	})
}
