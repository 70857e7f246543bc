// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "jobset_apiserver_store"

// libraryPrefixes are the prefixes of the metrics of etcd that the server publishes: leader, raft, disk and network of the member.
var libraryPrefixes = []string{"etcd_server_", "etcd_disk_", "etcd_network_"}

// Register publishes the metrics of the member, and the metrics of etcd about it. It is called once, after the member has started.
func (s *Server) Register() { s.register(legacyregistry.RawMustRegister) }

func (s *Server) register(register func(...prometheus.Collector)) {
	gauge := func(name, help string, labels map[string]string, value func() float64) {
		opts := &metrics.GaugeOpts{Subsystem: subsystem, Name: name, Help: help, ConstLabels: labels, StabilityLevel: metrics.ALPHA}
		register(metrics.NewGaugeFunc(opts, value))
	}
	for role, learner := range map[string]bool{"voter": false, "learner": true} {
		gauge("members", "Members of the embedded etcd as this one knows them, by role: voter, or learner, which has no vote yet.",
			map[string]string{"role": role}, func() float64 { return s.count(learner) })
	}
	gauge("peer_certificate_expiration_timestamp_seconds",
		"Time at which the certificate ends that the members of the embedded etcd show to each other, in seconds since 1970. 0 if there is only "+
			"one member, or if it cannot be read.", nil, s.peerExpiration)
	register(library{})
}

// count returns the number of members that are learners, or are not.
func (s *Server) count(learner bool) (count float64) {
	for _, member := range s.etcd.Server.Cluster().Members() {
		if member.IsLearner == learner {
			count++
		}
	}
	return count
}

func (s *Server) peerExpiration() float64 {
	if s.config.Cluster == nil {
		return 0
	}
	certificates, err := certutil.CertsFromFile(s.config.Cluster.file("tls.crt"))
	if err != nil {
		return 0
	}
	return float64(certificates[0].NotAfter.Unix())
}

// library has the metrics of etcd. It registers them in the default registry of Prometheus, which the server does not publish.
type library struct{}

// Describe implements prometheus.Collector. The metrics depend on the version of etcd, so that none are promised.
func (library) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (library) Collect(out chan<- prometheus.Metric) {
	all, _ := prometheus.DefaultGatherer.Gather() // with an error, it returns what has none
	for _, of := range all {
		if !slices.ContainsFunc(libraryPrefixes, func(prefix string) bool { return strings.HasPrefix(of.GetName(), prefix) }) {
			continue
		}
		desc := prometheus.NewDesc(of.GetName(), of.GetHelp(), nil, nil)
		for _, metric := range of.GetMetric() {
			out <- gathered{desc, metric}
		}
	}
}

// gathered is a metric of another registry.
type gathered struct {
	desc   *prometheus.Desc
	metric *dto.Metric
}

// Desc implements prometheus.Metric.
func (g gathered) Desc() *prometheus.Desc { return g.desc }

// Write implements prometheus.Metric.
func (g gathered) Write(to *dto.Metric) error {
	to.Label, to.Gauge, to.Counter = g.metric.Label, g.metric.Gauge, g.metric.Counter
	to.Summary, to.Untyped, to.Histogram = g.metric.Summary, g.metric.Untyped, g.metric.Histogram
	return nil
}
