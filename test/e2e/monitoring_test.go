// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// workloads are a set that completes, one that fails twice, one that reports a checkpoint, and the other kinds.
var workloads = []string{
	manifest("completes", runShort),
	manifest("fails", fail, "failurePolicy: {maxRestarts: 1}"),
	strings.Replace(manifest("reports", runOn), "  name: reports\n", "  name: reports\n  annotations: {jobset-apiserver.io/checkpoint-step: \"100\"}\n", 1),
	`apiVersion: batch.jobset-apiserver.io/v1alpha1
kind: SequentialJob
metadata: {name: steps}
spec:
  template: {metadata: {annotations: {` + runShort + `}}}
  containers: [{image: busybox}]
`,
	`apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: serve}
spec:
  leaderWorkerTemplate:
    size: 2
    workerTemplate: {spec: {containers: [{name: main, image: registry.example/server:v1}]}}
`,
}

// TestMonitoring has Prometheus read the metrics of both programs while sets complete, fail and restart. Every query of
// every dashboard must return data, and so must every series that a rule depends on. It compares the metrics with the
// page about them, too.
func TestMonitoring(t *testing.T) {
	tier.OnRequest(t, "builds and runs Prometheus")
	k := newKubectl(t)
	k.ok("--namespace=jobset-system", "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(k.cluster.Root, "artifacts/components/monitoring/account.yaml"))
	token := filepath.Join(t.TempDir(), "token")
	k.eventually(func() string {
		r := k.run("", "--namespace=jobset-system", "get", "secret", "jobset-metrics-reader-token", "-o", "go-template={{with .data}}{{.token | base64decode}}{{end}}")
		if r.code != 0 || r.stdout == "" || r.stdout == "<no value>" {
			return "the Secret has no token: " + r.stdout + r.stderr
		}
		if err := os.WriteFile(token, []byte(r.stdout), 0o600); err != nil {
			return err.Error()
		}
		return ""
	})
	prometheus := startPrometheus(k, token)
	k.admitsPods()
	for _, workload := range workloads {
		k.okIn(workload, "create", "-f", "-")
	}
	k.wait("jobset/completes", "--for=condition=Completed")
	k.wait("jobset/fails", "--for=condition=Failed")
	k.awaitSummary("reports", "restarts=0 | 1 Start, ready")
	k.ok("annotate", "jobset", "reports", "--overwrite", "jobset-apiserver.io/checkpoint-step=200")
	k.wait("sqj/steps", "--for=condition=Complete")
	k.wait("lws/serve", "--for=condition=Available")

	prometheus.targetsAreUp("jobset-apiserver", "jobset-controller", "apiserver")
	queries := dashboardQueries(t, filepath.Join(k.cluster.Root, "artifacts/monitoring/dashboards"))
	prometheus.haveData(queries)
	prometheus.rulesHaveData()
	comparePage(k, token)
}

// variables has what users select in Grafana: one cluster, the label of the targets, and all namespaces.
var variables = strings.NewReplacer("$cluster", monitoredCluster, "$namespace", ".*")

// dashboardQueries are the queries of all dashboards, by dashboard and panel.
func dashboardQueries(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards in %s (%v)", dir, err)
	}
	queries := map[string]string{}
	for _, file := range files {
		var dashboard struct {
			Title  string
			Panels []struct {
				Title   string
				Targets []struct{ Expr, RefID string }
			}
		}
		content, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(content, &dashboard)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, panel := range dashboard.Panels {
			for _, target := range panel.Targets {
				queries[fmt.Sprintf("%s: %s %s", dashboard.Title, panel.Title, target.RefID)] = variables.Replace(target.Expr)
			}
		}
	}
	return queries
}

// haveData waits until each query returns a series.
func (p *prometheus) haveData(queries map[string]string) {
	p.Helper()
	numbers := 0
	p.eventually(func() string {
		var missing []string
		numbers = 0
		for _, name := range slices.Sorted(maps.Keys(queries)) {
			answer := p.query(queries[name])
			if answer.Error != "" || answer.Series == 0 {
				missing = append(missing, fmt.Sprintf("%s: %s %+v", name, queries[name], answer))
			}
			if answer.Numbers > 0 {
				numbers++
			}
		}
		if len(missing) > 0 {
			return fmt.Sprintf("%d of %d queries return nothing:\n%s", len(missing), len(queries), strings.Join(missing, "\n"))
		}
		return ""
	})
	p.Logf("%d of %d queries of dashboards return data, %d of them numbers", len(queries), len(queries), numbers)
}

// withoutSeries are rules about what a good cluster need not have, because no answer has a status of 5xx.
var withoutSeries = []string{"JobSetAPIErrorsHigh"}

// rulesHaveData waits until each rule was evaluated without an error, and each series that it depends on exists.
func (p *prometheus) rulesHaveData() {
	p.Helper()
	total := 0
	p.eventually(func() string {
		var rules []struct{ Name, Query, Health, Error string }
		p.get("/rules", nil, &rules)
		var missing []string
		for _, rule := range rules {
			if slices.Contains(withoutSeries, rule.Name) && rule.Health == "ok" {
				continue
			}
			if answer := p.query(rule.Query); rule.Health != "ok" || answer.Error != "" || len(answer.Empty) > 0 {
				missing = append(missing, fmt.Sprintf("%+v: %+v", rule, answer))
			}
		}
		total = len(rules)
		if total == 0 || len(missing) > 0 {
			return fmt.Sprintf("%d of %d rules lack data:\n%s", len(missing), total, strings.Join(missing, "\n"))
		}
		return ""
	})
	p.Logf("%d of %d rules have all their series", total, total)
}
