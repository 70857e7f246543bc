// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

// BenchmarkList lists all JobSets in protobuf and in JSON by turns, decoding included, and compares the two.
func BenchmarkList(b *testing.B) {
	s := prepare(b)
	for _, way := range []struct {
		name   string
		config func() (*rest.Config, error)
	}{
		{"direct", s.cluster.direct},
		{"through-kube-apiserver", s.cluster.throughKube},
	} {
		b.Run(way.name, func(b *testing.B) {
			config, err := way.config()
			if err != nil {
				b.Fatal(err)
			}
			compareEncodings(b, config)
		})
	}
}

func compareEncodings(b *testing.B, config *rest.Config) {
	protobuf := newMeter(b, config, "application/vnd.kubernetes.protobuf")
	json := newMeter(b, config, "application/json")
	rounds := 0
	for b.Loop() {
		// One list takes so long that the framework would be content with a single one of each.
		for range 5 {
			protobuf.list(b)
			json.list(b)
			rounds++
		}
	}
	mebibytes := func(m *meter) float64 { return float64(m.bytes.Load()) / float64(rounds) / (1 << 20) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(protobuf.median(), "protobuf-ms")
	b.ReportMetric(json.median(), "json-ms")
	b.ReportMetric(json.median()/protobuf.median(), "json/protobuf-time")
	b.ReportMetric(mebibytes(protobuf), "protobuf-MiB")
	b.ReportMetric(mebibytes(json), "json-MiB")
	b.ReportMetric(float64(json.bytes.Load())/float64(protobuf.bytes.Load()), "json/protobuf-bytes")
}

// meter is a client for one encoding that counts what it gets and how long that takes.
type meter struct {
	client versioned.Interface
	spent  []time.Duration
	bytes  atomic.Int64
}

func newMeter(b *testing.B, config *rest.Config, encoding string) *meter {
	b.Helper()
	m := &meter{}
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = encoding, encoding
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &countingTransport{next: next, bytes: &m.bytes} })
	client, err := versioned.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	m.client = client
	m.list(b) // opens the connection and fills the caches of the server
	m.spent = nil
	m.bytes.Store(0)
	return m
}

func (m *meter) list(b *testing.B) {
	b.Helper()
	start := time.Now()
	sets, err := m.client.JobsetV1alpha2().JobSets(namespace).List(context.Background(), metav1.ListOptions{})
	m.spent = append(m.spent, time.Since(start))
	if err != nil {
		b.Fatal(err)
	}
	if len(sets.Items) != total {
		b.Fatalf("list has %d JobSets, must have %d", len(sets.Items), total)
	}
}

// median in milliseconds bears other programs on the machine better than the mean.
func (m *meter) median() float64 {
	slices.Sort(m.spent)
	return float64(m.spent[len(m.spent)/2].Microseconds()) / 1000
}

// countingTransport counts the bytes of the bodies of the answers.
type countingTransport struct {
	next  http.RoundTripper
	bytes *atomic.Int64
}

func (t *countingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil {
		response.Body = &countingBody{ReadCloser: response.Body, bytes: t.bytes}
	}
	return response, err
}

type countingBody struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (c *countingBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}
