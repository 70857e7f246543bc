// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/jobset-apiserver/jobset-apiserver/hack/monitoring/grafana"

func archive() grafana.Row {
	return grafana.Row{Title: "Archive of runs", Panels: []grafana.Panel{
		{
			Title: "Runs that wait for the database", Unit: grafana.Count, Description: "Entries of the outbox. Only with --archive-database.",
			Queries: []grafana.Query{{
				Expr:   `max by (cluster) (jobset_apiserver_archive_outbox_entries{cluster=~"$cluster"})`,
				Legend: "{{cluster}}",
			}},
		}, {
			Title: "Age of the oldest of them", Unit: grafana.Seconds, Description: "How long the oldest entry of the outbox has waited.",
			Queries: []grafana.Query{{
				Expr:   `max by (cluster) (jobset_apiserver_archive_outbox_oldest_seconds{cluster=~"$cluster"})`,
				Legend: "{{cluster}}",
			}},
		}, {
			Title: "Size of the outbox", Unit: grafana.Bytes, Description: "What the outbox takes of the store.",
			Queries: []grafana.Query{{
				Expr:   `max by (cluster) (jobset_apiserver_archive_outbox_bytes{cluster=~"$cluster"})`,
				Legend: "{{cluster}}",
			}},
		}, {
			Title: "Runs that were recorded", Unit: grafana.PerSecond, Description: "Writes to the database, by result.",
			Queries: []grafana.Query{{
				Expr:   `sum by (result) (rate(jobset_apiserver_archive_recorded_total{cluster=~"$cluster"}[5m]))`,
				Legend: "{{result}}",
			}},
		}, {
			Title: "Runs that were lost", Unit: grafana.PerSecond, Description: "Runs that are missing in the archive, by reason.",
			Queries: []grafana.Query{{
				Expr:   `sum by (reason) (rate(jobset_apiserver_archive_lost_total{cluster=~"$cluster"}[5m]))`,
				Legend: "{{reason}}",
			}},
		},
	}}
}
