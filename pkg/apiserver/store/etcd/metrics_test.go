// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"slices"
	"strings"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/component-base/metrics"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// published are the values of the gauges and counters that a server publishes, by name and labels.
func published(t *testing.T, s *Server) map[string]float64 {
	t.Helper()
	registry := metrics.NewKubeRegistry()
	s.register(registry.RawMustRegister)
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, of := range all {
		name := of.GetName()
		if !slices.ContainsFunc(names, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			t.Errorf("%s is published", name)
		}
		for _, metric := range of.GetMetric() {
			name := name
			for _, label := range metric.GetLabel() {
				name += " " + label.GetName() + "=" + label.GetValue()
			}
			values[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return values
}

// names are the prefixes that docs/operations/metrics.md has.
var names = []string{"jobset_apiserver_store_", "etcd_server_", "etcd_disk_", "etcd_network_"}

func wantPublished(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		if found, exists := got[name]; !exists || found != value {
			t.Errorf("%s is %v (%t), want %v", name, found, exists, value)
		}
	}
}

// TestMetricsOfSingleMember checks the metrics of etcd that rules and dashboards read, and that one member has no certificate.
func TestMetricsOfSingleMember(t *testing.T) {
	s := start(t, shortDir(t))
	defer s.Close()
	got := published(t, s)
	wantPublished(t, got, map[string]float64{
		"jobset_apiserver_store_members role=voter": 1, "jobset_apiserver_store_members role=learner": 0,
		"jobset_apiserver_store_peer_certificate_expiration_timestamp_seconds": 0,
		"etcd_server_has_leader": 1, "etcd_server_is_leader": 1, "etcd_server_is_learner": 0,
	})
	for _, name := range []string{"etcd_server_leader_changes_seen_total", "etcd_server_proposals_committed_total",
		"etcd_server_proposals_applied_total", "etcd_disk_wal_fsync_duration_seconds", "etcd_disk_backend_commit_duration_seconds"} {
		if got[name] == 0 {
			t.Errorf("%s is 0 or does not exist", name)
		}
	}
}

func TestMetricsOfLearner(t *testing.T) {
	c := newCluster(t)
	first := c.found()
	defer first.Close()
	second := c.open(1)
	defer second.Close()
	if err := c.join(second); err != nil {
		t.Fatal(err)
	}
	certificates, err := certutil.CertsFromFile(first.config.Cluster.file("tls.crt"))
	if err != nil {
		t.Fatal(err)
	}
	wantPublished(t, published(t, first), map[string]float64{
		"jobset_apiserver_store_members role=voter": 1, "jobset_apiserver_store_members role=learner": 1,
		"jobset_apiserver_store_peer_certificate_expiration_timestamp_seconds": float64(certificates[0].NotAfter.Unix()),
	})
}

// TestMetricsOfSeveralMembers checks what exists only with others: the time to them, which a runbook names, and that a member that has lost
// them has no leader. The members of this process share these metrics, and only one is left to change them.
func TestMetricsOfSeveralMembers(t *testing.T) {
	tier.OnRequest(t, "three members form a cluster, which takes etcd eight seconds")
	c := newCluster(t)
	all := c.form()
	defer all[0].Close()
	await := func(what string, is func(map[string]float64) bool) {
		for begin := time.Now(); !is(published(t, all[0])); <-time.After(joinPause) {
			if time.Since(begin) > startTimeout {
				t.Fatal(what)
			}
		}
	}
	wantPublished(t, published(t, all[0]), map[string]float64{"jobset_apiserver_store_members role=voter": 3, "etcd_server_has_leader": 1})
	others := "etcd_network_peer_round_trip_time_seconds To=" + all[1].etcd.Server.MemberID().String()
	await("the time to other members is not published", func(values map[string]float64) bool { return values[others] > 0 })
	all[1].Close()
	all[2].Close()
	await("the member has a leader", func(values map[string]float64) bool { return values["etcd_server_has_leader"] == 0 })
}
