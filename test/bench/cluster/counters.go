// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/testutil"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// counter counts requests from the beginning of a process on.
type counter struct {
	// prefix begins the names of its figures.
	prefix, process string
	read            func(ctx context.Context, process string) (Calls, error)
}

// counters are the counters of the cluster: the requests that servers answer, and, on this machine, those that other programs send.
func (c *Cluster) counters(servers []string) (all []counter) {
	for _, server := range servers {
		all = append(all, counter{"calls/" + server, server, c.served})
	}
	if c.Dir == "" {
		return all
	}
	for _, program := range c.senders() {
		all = append(all, counter{"sent/" + program, program, c.sent})
	}
	return all
}

// addServed adds the requests that were answered, and those that were sent.
func (w *Window) addServed(ctx context.Context, to *report.Phase) error {
	calls, err := w.meter.calls(ctx)
	if err != nil {
		return err
	}
	for _, counter := range w.meter.counters {
		addCalls(counter.prefix, w.calls[counter.prefix], calls[counter.prefix], to)
	}
	return nil
}

func addCalls(prefix string, before, after Calls, to *report.Phase) {
	for _, call := range slices.Sorted(maps.Keys(after)) {
		if n := after[call] - before[call]; n > 0 {
			to.Add(prefix+"/"+call, report.UnitCalls, n)
		}
	}
}

func (m *Meter) calls(ctx context.Context) (map[string]Calls, error) {
	all := map[string]Calls{}
	for _, counter := range m.counters {
		calls, err := counter.read(ctx, counter.process)
		if err != nil {
			return nil, err
		}
		all[counter.prefix] = calls
	}
	return all, nil
}

// senders are the programs that count the requests they send. KWOK serves no metrics.
func (c *Cluster) senders() []string {
	programs := []string{"kube-controller-manager", "kube-scheduler"}
	if c.Upstream {
		return append(programs, c.upstreamPrograms()...)
	}
	return append(programs, "jobset-apiserver", "jobset-controller")
}

// sent returns the requests that a program has sent to kube-apiserver since it began, by method. Their resources are not counted.
func (c *Cluster) sent(ctx context.Context, program string) (Calls, error) {
	metrics, err := c.Metrics(ctx, program)
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(c.config.Host)
	if err != nil {
		return nil, err
	}
	return sentTo(metrics, address.Port()), nil
}

// sentTo returns the requests to the server that listens on a port of this machine, under whatever name it is called.
func sentTo(metrics testutil.Metrics, port string) Calls {
	calls := Calls{}
	for _, sample := range metrics["rest_client_requests_total"] {
		if _, to, err := net.SplitHostPort(string(sample.Metric["host"])); err == nil && to == port {
			calls[string(sample.Metric["method"])] += float64(sample.Value)
		}
	}
	return calls
}

// ofControlPlane is the way to the metrics of kube-controller-manager and kube-scheduler.
func (c *Cluster) ofControlPlane(program string) (*rest.Config, error) {
	processes, err := c.Processes()
	if err != nil {
		return nil, err
	}
	settings, err := flags(processes[program])
	if err != nil {
		return nil, err
	}
	if settings["secure-port"] == "" {
		return nil, fmt.Errorf("%s has no --secure-port", program)
	}
	return c.metricsOf("https://127.0.0.1:" + settings["secure-port"]), nil
}
