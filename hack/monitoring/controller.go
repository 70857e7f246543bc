// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/jobset-apiserver/jobset-apiserver/hack/monitoring/grafana"

func controller() grafana.Dashboard {
	return grafana.Dashboard{
		UID: "jobset-controller", Title: "JobSet / Controller", Description: "Queues, syncs, requests and memory of jobset-controller.",
		Rows: []grafana.Row{leadership(), syncs(), queues(), process("jobset-controller", requests())},
	}
}

func leadership() grafana.Row {
	return grafana.Row{Title: "State", Panels: []grafana.Panel{
		{
			Title: "Replicas that lead", Kind: grafana.Number, Unit: grafana.Count, Description: "One replica of each cluster must hold the lease.",
			Queries: []grafana.Query{{
				Expr:   `sum by (cluster) (leader_election_master_status{cluster=~"$cluster", job="jobset-controller"})`,
				Legend: "{{cluster}}",
			}},
		}, {
			Title: "Replicas that answer", Kind: grafana.Number, Unit: grafana.Count, Description: "Replicas whose metrics can be read.",
			Queries: []grafana.Query{{Expr: `sum by (cluster) (up{cluster=~"$cluster", job="jobset-controller"})`, Legend: "{{cluster}}"}},
		}, {
			Title: "Children without owner", Kind: grafana.Number, Unit: grafana.Count,
			Description: "Jobs, StatefulSets and other children whose owner the API does not know. The garbage collector deletes them.",
			Queries:     []grafana.Query{{Expr: `sum by (owner_kind) (jobset_jobs_without_owner{cluster=~"$cluster"})`, Legend: "{{owner_kind}}"}},
		},
	}}
}

func syncs() grafana.Row {
	return grafana.Row{Title: "Syncs", Panels: []grafana.Panel{
		{
			Title: "Syncs", Unit: grafana.PerSecond, Description: "Syncs by controller.",
			Queries: []grafana.Query{{
				Expr:   `sum by (controller) (cluster_controller:controller_runtime_reconcile_total:rate5m{cluster=~"$cluster"})`,
				Legend: "{{controller}}",
			}},
		}, {
			Title: "Share of syncs with an error", Unit: grafana.Ratio, Description: "Syncs that ended with an error and are tried again.",
			Queries: []grafana.Query{{
				Expr:   `max by (controller) (cluster_controller:controller_runtime_reconcile_errors:ratio_rate5m{cluster=~"$cluster"})`,
				Legend: "{{controller}}",
			}},
		}, {
			Title: "Duration of syncs, 99th percentile", Unit: grafana.Seconds, Description: "Time that one sync takes.",
			Queries: []grafana.Query{{
				Expr: `histogram_quantile(0.99, sum by (controller, le) (` +
					`rate(controller_runtime_reconcile_time_seconds_bucket{cluster=~"$cluster", job="jobset-controller"}[5m])))`,
				Legend: "{{controller}}",
			}},
		},
	}}
}

func queues() grafana.Row {
	return grafana.Row{Title: "Queues", Panels: []grafana.Panel{
		{
			Title: "Objects that wait", Unit: grafana.Count, Description: "Length of the queues.",
			Queries: []grafana.Query{{
				Expr: `sum by (name) (
  workqueue_depth{cluster=~"$cluster", job="jobset-controller", name=~"jobset|sequentialjob|leaderworkerset|podgroup"})`,
				Legend: "{{name}}",
			}},
		}, {
			Title: "Time in the queue, 99th percentile", Unit: grafana.Seconds, Description: "Time from the event until the sync begins.",
			Queries: []grafana.Query{{
				Expr:   `max by (name) (cluster_name:workqueue_queue_duration_seconds:p99_rate5m{cluster=~"$cluster"})`,
				Legend: "{{name}}",
			}},
		}, {
			Title: "Workers that are busy", Unit: grafana.Ratio, Description: "Share of the workers that sync an object.",
			Queries: []grafana.Query{{
				Expr: `sum by (controller) (controller_runtime_active_workers{cluster=~"$cluster", job="jobset-controller"})
/
sum by (controller) (controller_runtime_max_concurrent_reconciles{cluster=~"$cluster", job="jobset-controller"} > 0)`,
				Legend: "{{controller}}",
			}},
		},
	}}
}

func requests() []grafana.Panel {
	return []grafana.Panel{
		{
			Title: "Requests to the API", Unit: grafana.PerSecond, Description: "Requests by method and status.",
			Queries: []grafana.Query{{
				Expr:   `sum by (method, code) (rate(rest_client_requests_total{cluster=~"$cluster", job="jobset-controller"}[5m]))`,
				Legend: "{{method}} {{code}}",
			}},
		}, {
			Title: "Duration of requests, 99th percentile", Unit: grafana.Seconds, Description: "Time until the API answers, by verb.",
			Queries: []grafana.Query{{
				Expr: `histogram_quantile(0.99, sum by (verb, le) (
  rate(rest_client_request_duration_seconds_bucket{cluster=~"$cluster", job="jobset-controller"}[5m])))`,
				Legend: "{{verb}}",
			}},
		},
	}
}

// process is the row of a program: what it asks of others, and what it uses.
func process(job string, before []grafana.Panel) grafana.Row {
	selector := `{cluster=~"$cluster", job="` + job + `"}`
	return grafana.Row{Title: "Process", Panels: append(before,
		grafana.Panel{
			Title: "Memory", Unit: grafana.Bytes, Description: "Resident memory, and the part that Go's heap uses.",
			Queries: []grafana.Query{
				{Expr: `max by (cluster, instance) (process_resident_memory_bytes` + selector + `)`, Legend: "resident {{cluster}} {{instance}}"},
				{Expr: `max by (cluster, instance) (go_memstats_heap_inuse_bytes` + selector + `)`, Legend: "heap {{cluster}} {{instance}}"},
			},
		},
		grafana.Panel{
			Title: "CPU", Unit: grafana.Cores, Description: "Processors in use.",
			Queries: []grafana.Query{{
				Expr:   `sum by (cluster, instance) (rate(process_cpu_seconds_total` + selector + `[5m]))`,
				Legend: "{{cluster}} {{instance}}",
			}},
		},
		grafana.Panel{
			Title: "Goroutines", Unit: grafana.Count, Description: "A number that only grows is a leak.",
			Queries: []grafana.Query{{Expr: `max by (cluster, instance) (go_goroutines` + selector + `)`, Legend: "{{cluster}} {{instance}}"}},
		},
		grafana.Panel{
			Title: "Version", Kind: grafana.Table, Unit: grafana.Count, Description: "What runs.",
			Queries: []grafana.Query{{Expr: `count by (cluster, git_version, go_version, platform) (kubernetes_build_info` + selector + `)`}},
		},
	)}
}
