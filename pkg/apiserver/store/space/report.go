// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package space

import (
	"fmt"
	"net/http"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/instrument"
)

// Reasons of refusals.
const (
	reasonReserve = "reserve"
	reasonMemory  = "memory"
	reasonWatches = "watches"
	reasonQuota   = "quota"
)

const subsystem = "jobset_apiserver_storage"

var refusals = instrument.CounterVec(subsystem+"_refused_writes_total",
	"Writes that were refused for lack of space, by reason: the reserve of the store was reached, or that of memory by objects or by "+
		"watches, or etcd has used up its quota.", "reason")

func init() {
	legacyregistry.MustRegister(refusals)
	for _, reason := range []string{reasonReserve, reasonMemory, reasonWatches, reasonQuota} {
		refusals.WithLabelValues(reason)
	}
}

// Register makes the state of the guard visible in the metrics of the process. It is called once.
func (g *Guard) Register() {
	gauges := []struct {
		name, help string
		value      func() float64
	}{
		{"exhausted", "1 while etcd has used up its space quota and accepts only deletions.",
			func() float64 { return number(g.exhausted() != nil) }},
		{"reserve_reached", "1 while creations and changes of spec are refused because the store or memory is nearly full.",
			func() float64 { return number(g.low() != nil) }},
	}
	if g.store != nil {
		gauges = append(gauges, []struct {
			name, help string
			value      func() float64
		}{
			{"quota_bytes", "Size of the embedded etcd's file at which it refuses writes.",
				func() float64 { return float64(g.store.Usage().QuotaBytes) }},
			{"allocated_bytes", "Size of the embedded etcd's file.", func() float64 { return float64(g.store.Usage().AllocatedBytes) }},
			{"in_use_bytes", "Part of the embedded etcd's file that is not free.", func() float64 { return float64(g.store.Usage().InUseBytes) }},
		}...)
	}
	for _, gauge := range gauges {
		opts := &metrics.GaugeOpts{Subsystem: subsystem, Name: gauge.name, Help: gauge.help, StabilityLevel: metrics.ALPHA}
		legacyregistry.RawMustRegister(metrics.NewGaugeFunc(opts, gauge.value))
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// WithReadyzLine adds a line to what /readyz?verbose says. It is no check: a server without space stays ready, because
// deletions must reach it.
func (g *Guard) WithReadyzLine(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, verbose := req.URL.Query()["verbose"]; verbose && req.URL.Path == "/readyz" {
			w = &prefixed{ResponseWriter: w, line: g.line()}
		}
		next.ServeHTTP(w, req)
	})
}

func (g *Guard) line() string {
	if g.exhausted() != nil {
		return "[!]storage-space used up: etcd accepts only deletions\n"
	}
	if lack := g.low(); lack != nil {
		return fmt.Sprintf("[!]storage-space low: creations and changes of spec are refused (%s)\n", lack.reason)
	}
	if g.store == nil {
		return "[+]storage-space ok\n"
	}
	usage := g.store.Usage()
	return fmt.Sprintf("[+]storage-space ok: %d%% of the quota is in use\n", percent(usage.InUseBytes, usage.QuotaBytes))
}

// prefixed writes a line before the body.
type prefixed struct {
	http.ResponseWriter
	line string
}

// Write writes the line, once, and then the content.
func (p *prefixed) Write(content []byte) (int, error) {
	if p.line != "" {
		line := p.line
		p.line = ""
		if _, err := p.ResponseWriter.Write([]byte(line)); err != nil {
			return 0, err
		}
	}
	return p.ResponseWriter.Write(content)
}
