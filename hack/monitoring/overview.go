// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/jobset-apiserver/jobset-apiserver/hack/monitoring/grafana"

// dashboards are all dashboards. The names of their files are their UIDs.
func dashboards() []grafana.Dashboard {
	return []grafana.Dashboard{overview(), controller(), server()}
}

func overview() grafana.Dashboard {
	return grafana.Dashboard{
		UID: "jobset-overview", Title: "JobSet / Overview", Description: "Sets by phase, restarts and their causes, time until ready, and " +
			"goodput.",
		Namespaces: true,
		Rows:       []grafana.Row{jobSets(), restarts(), times(), shares(), otherKinds()},
	}
}

func jobSets() grafana.Row {
	return grafana.Row{Title: "JobSets", Panels: []grafana.Panel{
		{
			Title: "JobSets that run", Kind: grafana.Number, Unit: grafana.Count,
			Description: "JobSets all of whose Jobs are ready or have succeeded.",
			Queries:     []grafana.Query{{Expr: `sum(cluster_phase:jobset_jobsets:sum{cluster=~"$cluster", phase="Running"})`}},
		}, {
			Title: "JobSets by phase", Unit: grafana.Count, Stacked: true, Description: "JobSets that have not finished, by phase.",
			Queries: []grafana.Query{{
				Expr:   `sum by (phase) (cluster_phase:jobset_jobsets:sum{cluster=~"$cluster", phase!~"Completed|Failed"})`,
				Legend: "{{phase}}",
			}},
		}, {
			Title: "JobSets that wait", Unit: grafana.Count, Description: "JobSets that do not go on by themselves, by the condition that says why.",
			Queries: []grafana.Query{{Expr: `sum by (condition) (jobset_jobsets_with_condition{cluster=~"$cluster"})`, Legend: "{{condition}}"}},
		}, {
			Title: "JobSets that finished in the last hour", Unit: grafana.Count,
			Description: "Ends of JobSets by result. Cancelled ones count as failed.",
			Queries: []grafana.Query{{
				Expr:   `sum by (result) (increase(jobset_jobsets_finished_total{cluster=~"$cluster"}[1h]))`,
				Legend: "{{result}}",
			}},
		},
	}}
}

func restarts() grafana.Row {
	return grafana.Row{Title: "Restarts", Panels: []grafana.Panel{
		{
			Title: "Attempts that began in the last hour", Unit: grafana.Count, Description: "Starts, restarts and resumes by what triggered them.",
			Queries: []grafana.Query{{
				Expr:   `sum by (trigger) (cluster_trigger:jobset_attempts:increase1h{cluster=~"$cluster"})`,
				Legend: "{{trigger}}",
			}},
		}, {
			Title: "First causes of failures in the last hour", Unit: grafana.Count, Stacked: true,
			Description: "What ended attempts, by the kind of the first failure.",
			Queries: []grafana.Query{{
				Expr:   `sum by (cause) (increase(jobset_first_failures_total{cluster=~"$cluster"}[1h]))`,
				Legend: "{{cause}}",
			}},
		}, {
			Title: "Recovery, 90th percentile", Unit: grafana.Seconds,
			Description: "Time from the beginning of a restart until all Jobs were ready, over the last hour.",
			Queries: []grafana.Query{{
				Expr:   `histogram_quantile(0.9, sum by (trigger, le) (increase(jobset_recovery_seconds_bucket{cluster=~"$cluster"}[1h])))`,
				Legend: "{{trigger}}",
			}},
		},
	}}
}

func times() grafana.Row {
	return grafana.Row{Title: "Time", Panels: []grafana.Panel{
		{
			Title: "Time until ready", Unit: grafana.Seconds, Description: "Time from the creation of a JobSet until all of its Jobs were ready " +
				"for the first time, over the last hour.",
			Queries: []grafana.Query{
				{Expr: `histogram_quantile(0.5, sum by (le) (increase(jobset_startup_seconds_bucket{cluster=~"$cluster"}[1h])))`, Legend: "median"},
				{Expr: `histogram_quantile(0.99, sum by (le) (increase(jobset_startup_seconds_bucket{cluster=~"$cluster"}[1h])))`,
					Legend: "99th percentile"},
			},
		}, {
			Title: "Wait for exclusive placement, 90th percentile", Unit: grafana.Seconds,
			Description: "Time until JobSets that waited for domains had them, over the last hour.",
			Queries: []grafana.Query{{
				Expr:   `histogram_quantile(0.9, sum by (le) (increase(jobset_placement_wait_seconds_bucket{cluster=~"$cluster"}[1h])))`,
				Legend: "wait",
			}},
		},
	}}
}

// shares are the panels about single sets. Only these can be limited to namespaces: the other metrics count sets of all of them.
func shares() grafana.Row {
	return grafana.Row{Title: "JobSets of the namespaces", Panels: []grafana.Panel{
		{
			Title: "Ready share and goodput", Unit: grafana.Ratio,
			Description: "Mean over the latest 2000 JobSets: share of their life in which they were ready, and whose work a checkpoint has kept.",
			Queries: []grafana.Query{
				{Expr: `avg(jobset_ready_ratio{cluster=~"$cluster", namespace=~"$namespace"})`, Legend: "ready share"},
				{Expr: `avg(jobset_goodput_ratio{cluster=~"$cluster", namespace=~"$namespace"})`, Legend: "goodput"},
			},
		}, {
			Title: "Lowest ready shares", Kind: grafana.Table, Unit: grafana.Ratio,
			Description: "The ten JobSets that were ready for the smallest share of their life.",
			Queries: []grafana.Query{{
				Expr: `bottomk(10, max by (cluster, namespace, jobset_name) (jobset_ready_ratio{cluster=~"$cluster", namespace=~"$namespace"}))`,
			}},
		}, {
			Title: "Lowest goodput", Kind: grafana.Table, Unit: grafana.Ratio,
			Description: "The ten JobSets that kept the smallest share of their work.",
			Queries: []grafana.Query{{
				Expr: `bottomk(10, max by (cluster, namespace, jobset_name) (jobset_goodput_ratio{cluster=~"$cluster", namespace=~"$namespace"}))`,
			}},
		},
	}}
}

func otherKinds() grafana.Row {
	return grafana.Row{Title: "LeaderWorkerSets, SequentialJobs and pod groups", Panels: []grafana.Panel{
		{
			Title: "LeaderWorkerSets by phase", Unit: grafana.Count, Stacked: true, Description: "The phase is the first condition that is true.",
			Queries: []grafana.Query{{Expr: `sum by (phase) (leaderworkerset_leaderworkersets{cluster=~"$cluster"})`, Legend: "{{phase}}"}},
		}, {
			Title: "Groups recreated in the last hour", Unit: grafana.Count,
			Description: "Groups of LeaderWorkerSets that the controller recreated, by reason.",
			Queries: []grafana.Query{{
				Expr:   `sum by (reason) (increase(leaderworkerset_group_restarts_total{cluster=~"$cluster"}[1h]))`,
				Legend: "{{reason}}",
			}},
		}, {
			Title: "SequentialJobs by phase", Unit: grafana.Count, Stacked: true, Description: "SequentialJobs that have not finished, by phase.",
			Queries: []grafana.Query{{
				Expr:   `sum by (phase) (sequentialjob_sequentialjobs{cluster=~"$cluster", phase!~"Completed|Failed"})`,
				Legend: "{{phase}}",
			}},
		}, {
			Title: "Steps that ended in the last hour", Unit: grafana.Count, Description: "Attempts of steps of SequentialJobs by result.",
			Queries: []grafana.Query{{
				Expr:   `sum by (result) (increase(sequentialjob_steps_total{cluster=~"$cluster"}[1h]))`,
				Legend: "{{result}}",
			}},
		}, {
			Title: "Pod groups that became ready in the last hour", Unit: grafana.Count, Description: "By family of labels.",
			Queries: []grafana.Query{{Expr: `sum by (family) (increase(podgroup_ready_total{cluster=~"$cluster"}[1h]))`, Legend: "{{family}}"}},
		}, {
			Title: "Time until pod groups are ready, 90th percentile", Unit: grafana.Seconds,
			Description: "Time from the first pod of a group, over the last hour.",
			Queries: []grafana.Query{{
				Expr:   `histogram_quantile(0.9, sum by (family, le) (increase(podgroup_ready_seconds_bucket{cluster=~"$cluster"}[1h])))`,
				Legend: "{{family}}",
			}},
		},
	}}
}
