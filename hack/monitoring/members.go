// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/jobset-apiserver/jobset-apiserver/hack/monitoring/grafana"

func members() grafana.Row {
	return grafana.Row{Title: "Members of the embedded etcd", Panels: []grafana.Panel{
		{
			Title: "Members", Unit: grafana.Count, Description: "Members with a vote, and learners, which have none yet.",
			Queries: []grafana.Query{{
				Expr:   `max by (cluster, role) (jobset_apiserver_store_members{cluster=~"$cluster"})`,
				Legend: "{{cluster}} {{role}}",
			}},
		}, {
			Title: "Members with a leader", Unit: grafana.Count, Description: "Members that reach a leader, and members that are one.",
			Queries: []grafana.Query{
				{Expr: `sum by (cluster) (etcd_server_has_leader{cluster=~"$cluster", job="jobset-apiserver"})`, Legend: "with a leader {{cluster}}"},
				{Expr: `sum by (cluster) (etcd_server_is_leader{cluster=~"$cluster", job="jobset-apiserver"})`, Legend: "leader {{cluster}}"},
			},
		}, {
			Title: "Changes of the leader", Unit: grafana.Count, Description: "Changes within 15 minutes, as the members see them.",
			Queries: []grafana.Query{{
				Expr:   `max by (cluster) (increase(etcd_server_leader_changes_seen_total{cluster=~"$cluster", job="jobset-apiserver"}[15m]))`,
				Legend: "{{cluster}}",
			}},
		}, {
			Title: "Behind the others", Unit: grafana.Count,
			Description: "Entries of the log that are committed and that a member has not applied. The members are not read at the same " +
				"moment, so that some entries are normal.",
			Queries: []grafana.Query{{
				Expr: `max by (cluster) (etcd_server_proposals_committed_total{cluster=~"$cluster", job="jobset-apiserver"})
- on (cluster) group_right ()
max by (cluster, instance) (etcd_server_proposals_applied_total{cluster=~"$cluster", job="jobset-apiserver"})`,
				Legend: "{{cluster}} {{instance}}",
			}},
		}, {
			Title: "Latency of the disk, 99th percentile", Unit: grafana.Seconds, Description: "Time until the log of a member is on its disk.",
			Queries: []grafana.Query{{
				Expr: `histogram_quantile(0.99, sum by (cluster, instance, le) (
  rate(etcd_disk_wal_fsync_duration_seconds_bucket{cluster=~"$cluster", job="jobset-apiserver"}[5m])))`,
				Legend: "{{cluster}} {{instance}}",
			}},
		}, {
			Title: "Life of the certificate between members", Kind: grafana.Number, Unit: grafana.Seconds,
			Description: "Time until the first certificate ends. 0 if there is only one member.",
			Queries: []grafana.Query{{
				Expr: `clamp_min(
  min by (cluster) (jobset_apiserver_store_peer_certificate_expiration_timestamp_seconds{cluster=~"$cluster"}) - time(), 0)`,
				Legend: "{{cluster}}",
			}},
		},
	}}
}
