// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/jobset-apiserver/jobset-apiserver/hack/monitoring/grafana"

func server() grafana.Dashboard {
	return grafana.Dashboard{
		UID: "jobset-apiserver", Title: "JobSet / API server",
		Description: "Requests, watches, store, members of the embedded etcd, backups, certificates and archive of jobset-apiserver.",
		Rows:        []grafana.Row{serverRequests(), watches(), store(), members(), backups(), archive(), process("jobset-apiserver", nil)},
	}
}

func serverRequests() grafana.Row {
	return grafana.Row{Title: "Requests", Panels: []grafana.Panel{
		{
			Title: "Requests by status", Unit: grafana.PerSecond, Stacked: true, Description: "Requests that ended, by status.",
			Queries: []grafana.Query{{
				Expr:   `sum by (code) (cluster_job_code:apiserver_request_total:rate5m{cluster=~"$cluster"})`,
				Legend: "{{code}}",
			}},
		}, {
			Title: "Requests by resource", Unit: grafana.PerSecond, Stacked: true, Description: "Requests that ended, by verb and resource.",
			Queries: []grafana.Query{{
				Expr:   `sum by (verb, resource) (rate(apiserver_request_total{cluster=~"$cluster", job="jobset-apiserver", resource!=""}[5m]))`,
				Legend: "{{verb}} {{resource}}",
			}},
		}, {
			Title: "Latency, 99th percentile", Unit: grafana.Seconds, Description: "Duration of requests without the time that webhooks take.",
			Queries: []grafana.Query{{
				Expr:   `max by (verb, resource) (cluster_job_verb_resource:apiserver_request_sli_duration_seconds:p99_rate5m{cluster=~"$cluster"})`,
				Legend: "{{verb}} {{resource}}",
			}},
		}, {
			Title: "Requests in progress", Unit: grafana.Count, Description: "By kind of request.",
			Queries: []grafana.Query{{
				Expr:   `sum by (request_kind) (apiserver_current_inflight_requests{cluster=~"$cluster", job="jobset-apiserver"})`,
				Legend: "{{request_kind}}",
			}},
		}, {
			Title: "Requests that wait for their priority level", Unit: grafana.Count,
			Description: "Length of the queues of API priority and fairness.",
			Queries: []grafana.Query{{
				Expr:   `sum by (priority_level) (apiserver_flowcontrol_current_inqueue_requests{cluster=~"$cluster", job="jobset-apiserver"})`,
				Legend: "{{priority_level}}",
			}},
		}, {
			Title: "Webhook for pods", Unit: grafana.PerSecond, Description: "Requests about pods of LeaderWorkerSets, by result.",
			Queries: []grafana.Query{{
				Expr:   `sum by (result) (rate(jobset_apiserver_pod_webhook_requests_total{cluster=~"$cluster"}[5m]))`,
				Legend: "{{result}}",
			}},
		},
	}}
}

func watches() grafana.Row {
	return grafana.Row{Title: "Watches", Panels: []grafana.Panel{
		{
			Title: "Watches", Unit: grafana.Count, Description: "Watches that are open, by resource.",
			Queries: []grafana.Query{{
				Expr:   `sum by (resource) (apiserver_longrunning_requests{cluster=~"$cluster", job="jobset-apiserver", verb="WATCH"})`,
				Legend: "{{resource}}",
			}},
		}, {
			Title: "Events sent to watches", Unit: grafana.PerSecond, Description: "Events by resource; each watch counts.",
			Queries: []grafana.Query{{
				Expr:   `sum by (resource) (rate(apiserver_watch_events_total{cluster=~"$cluster", job="jobset-apiserver"}[5m]))`,
				Legend: "{{resource}}",
			}},
		},
	}}
}

func store() grafana.Row {
	return grafana.Row{Title: "Store", Panels: []grafana.Panel{
		{
			Title: "Size of the store", Unit: grafana.Bytes, Description: "Size of etcd's file, and the quota and the part in use of the " +
				"embedded one.",
			Queries: []grafana.Query{
				{Expr: `max by (cluster, storage_cluster_id) (apiserver_storage_size_bytes{cluster=~"$cluster", job="jobset-apiserver"})`,
					Legend: "allocated {{cluster}} {{storage_cluster_id}}"},
				{Expr: `max by (cluster) (jobset_apiserver_storage_in_use_bytes{cluster=~"$cluster"})`, Legend: "in use {{cluster}}"},
				{Expr: `max by (cluster) (jobset_apiserver_storage_quota_bytes{cluster=~"$cluster"})`, Legend: "quota {{cluster}}"},
			},
		}, {
			Title: "Objects", Unit: grafana.Count, Description: "Stored objects by resource.",
			Queries: []grafana.Query{{
				Expr: `sum by (resource, group) (max by (cluster, resource, group) (
  apiserver_resource_objects{cluster=~"$cluster", job="jobset-apiserver"}))`,
				Legend: "{{resource}}.{{group}}",
			}},
		}, {
			Title: "Latency of etcd, 99th percentile", Unit: grafana.Seconds, Description: "Duration of requests to etcd, by operation.",
			Queries: []grafana.Query{{
				Expr: `histogram_quantile(0.99, sum by (operation, le) (
  rate(etcd_request_duration_seconds_bucket{cluster=~"$cluster", job="jobset-apiserver"}[5m])))`,
				Legend: "{{operation}}",
			}},
		}, {
			Title: "Checks of the store", Unit: grafana.PerSecond, Description: "Reads of the key of the witness, by result.",
			Queries: []grafana.Query{{
				Expr:   `sum by (result) (rate(jobset_apiserver_store_checks_total{cluster=~"$cluster"}[5m]))`,
				Legend: "{{result}}",
			}},
		}, {
			Title: "Why the store is refused", Unit: grafana.Count, Description: "1 for the reason why a server does not serve its store.",
			Queries: []grafana.Query{{
				Expr:   `max by (cluster, reason) (jobset_apiserver_store_refused{cluster=~"$cluster"})`,
				Legend: "{{cluster}} {{reason}}",
			}},
		}, {
			Title: "Refused for lack of space", Unit: grafana.PerSecond, Description: "Writes that were refused, by reason.",
			Queries: []grafana.Query{{
				Expr:   `sum by (reason) (rate(jobset_apiserver_storage_refused_writes_total{cluster=~"$cluster"}[5m]))`,
				Legend: "{{reason}}",
			}},
		},
	}}
}

func backups() grafana.Row {
	return grafana.Row{Title: "Backups and certificates", Panels: []grafana.Panel{
		{
			Title: "Age of the newest backup", Kind: grafana.Number, Unit: grafana.Seconds, Description: "Only with --backup-dir.",
			Queries: []grafana.Query{{
				Expr:   `time() - max by (cluster) (jobset_apiserver_backup_last_success_timestamp_seconds{cluster=~"$cluster"})`,
				Legend: "{{cluster}}",
			}},
		}, {
			Title: "Size of the last backup", Kind: grafana.Number, Unit: grafana.Bytes, Description: "Only with --backup-dir.",
			Queries: []grafana.Query{{
				Expr:   `max by (cluster) (jobset_apiserver_backup_last_size_bytes{cluster=~"$cluster"})`,
				Legend: "{{cluster}}",
			}},
		}, {
			Title: "Life of the serving certificate", Kind: grafana.Number, Unit: grafana.Seconds,
			Description: "Time until the certificate ends that kube-apiserver checks.",
			Queries: []grafana.Query{{
				Expr:   `min by (cluster) (jobset_apiserver_serving_certificate_expiration_timestamp_seconds{cluster=~"$cluster"}) - time()`,
				Legend: "{{cluster}}",
			}},
		},
	}}
}
