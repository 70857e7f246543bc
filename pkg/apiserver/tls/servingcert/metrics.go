// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"sync"
	"sync/atomic"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/instrument"
)

const subsystem = "jobset_apiserver_serving"

var (
	registerOnce sync.Once
	// shown is what the server of this process serves with.
	shown atomic.Pointer[dynamiccertificates.CertKeyContentProvider]
)

var (
	authorityEnd = instrument.Gauge(subsystem+"_authority_expiration_timestamp_seconds",
		"Time at which the authority ends that signs the serving certificate, in seconds since 1970, if the server keeps it in a Secret.")
	bundleWrites = instrument.Counter(subsystem+"_ca_bundle_writes_total", "Writes of a caBundle of an APIService or a webhook.")
	passes       = instrument.CounterVec(subsystem+"_certificate_passes_total",
		"Passes over the Secret of the serving certificate and the caBundles, by result: ok or error.", "result")
)

func init() {
	legacyregistry.MustRegister(authorityEnd, bundleWrites, passes)
	for _, result := range []string{"ok", "error"} {
		passes.WithLabelValues(result) // is there at 0, so that a first error is an increase
	}
}

func countPass(err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	passes.WithLabelValues(result).Inc()
}

// authorityEnds publishes when the authority ends that signs.
func (m *Manager) authorityEnds(c *content) {
	if c.signer != nil {
		authorityEnd.Set(float64(c.signer.Certificate.NotAfter.Unix()))
	}
}

// Show publishes when the certificate ends with which the server serves, wherever it comes from. It is called once by each server.
func Show(serving dynamiccertificates.CertKeyContentProvider) {
	shown.Store(&serving)
	registerOnce.Do(func() {
		legacyregistry.RawMustRegister(metrics.NewGaugeFunc(&metrics.GaugeOpts{
			Subsystem: subsystem, Name: "certificate_expiration_timestamp_seconds", StabilityLevel: metrics.ALPHA,
			Help: "Time at which the certificate ends with which the server serves, in seconds since 1970. 0 if it cannot be read.",
		}, expiration))
	})
}

func expiration() float64 {
	serving := shown.Load()
	if serving == nil {
		return 0
	}
	content, _ := (*serving).CurrentCertKeyContent()
	certificates, err := certutil.ParseCertsPEM(content)
	if err != nil {
		return 0
	}
	return float64(certificates[0].NotAfter.Unix())
}
