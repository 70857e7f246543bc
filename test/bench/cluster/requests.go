// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/testutil"
)

// Calls are numbers of requests, by verb and resource.
type Calls map[string]float64

// Metrics reads the metrics of an API server, of a controller of sets, or of kube-controller-manager and kube-scheduler.
func (c *Cluster) Metrics(ctx context.Context, program string) (testutil.Metrics, error) {
	data, err := c.read(ctx, program, "/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of %s: %w", program, err)
	}
	metrics := testutil.NewMetrics()
	return metrics, testutil.ParseMetrics(string(data), &metrics)
}

// read gets a path that is no resource from one of the programs.
func (c *Cluster) read(ctx context.Context, program, path string, query map[string]string) ([]byte, error) {
	config, err := c.configOf(program)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	request := client.Discovery().RESTClient().Get().AbsPath(path)
	for name, value := range query {
		request = request.Param(name, value)
	}
	return request.DoRaw(ctx)
}

func (c *Cluster) configOf(program string) (*rest.Config, error) {
	switch program {
	case "kube-apiserver":
		return c.Config(runtime.ContentTypeJSON), nil
	case "jobset-apiserver":
		return c.Direct(runtime.ContentTypeJSON)
	case "jobset-controller":
		return c.controller()
	case "kube-controller-manager", "kube-scheduler":
		return c.ofControlPlane(program)
	}
	for _, each := range c.upstream {
		if program == upstreamPrefix+each.Name {
			return c.metricsOf("https://127.0.0.1:" + each.MetricsPort), nil
		}
	}
	return nil, fmt.Errorf("%s has no metrics that are read", program)
}

// webhookVerb is the verb of calls that an API server makes to webhooks of admission. Their resource is the name of the webhook.
const webhookVerb = "WEBHOOK"

// served returns the requests that an API server has answered since it began, and the calls of webhooks that it made for them. Requests for
// our resources, which kube-apiserver passes on, are counted by our server.
func (c *Cluster) served(ctx context.Context, program string) (Calls, error) {
	metrics, err := c.Metrics(ctx, program)
	if err != nil {
		return nil, err
	}
	return servedBy(metrics), nil
}

func servedBy(metrics testutil.Metrics) Calls {
	calls := Calls{}
	for _, sample := range metrics["apiserver_request_total"] {
		resource := string(sample.Metric["resource"])
		if resource == "" {
			continue
		}
		if sub := string(sample.Metric["subresource"]); sub != "" {
			resource += "/" + sub
		}
		calls[string(sample.Metric["verb"])+" "+resource] += float64(sample.Value)
	}
	for _, sample := range metrics["apiserver_admission_webhook_request_total"] {
		calls[webhookVerb+" "+string(sample.Metric["name"])] += float64(sample.Value)
	}
	return calls
}

// counting returns the servers of a cluster of other machines whose requests can be counted: kube-apiserver, if its metrics may be read.
func (c *Cluster) counting(ctx context.Context) []string {
	servers := c.servers()[:1]
	if _, err := c.served(ctx, servers[0]); err != nil {
		return nil
	}
	return servers
}

// Profile gets a profile of a program. That of the CPU, named profile, is over so many seconds.
func (c *Cluster) Profile(ctx context.Context, program, name string, seconds int) ([]byte, error) {
	var query map[string]string
	if seconds > 0 {
		query = map[string]string{"seconds": strconv.Itoa(seconds)}
	}
	data, err := c.read(ctx, program, "/debug/pprof/"+name, query)
	if err != nil {
		return nil, fmt.Errorf("getting a profile of %s, which must run with --profiling: %w", program, err)
	}
	return data, nil
}

// Heap is what one of our programs has allocated. What is garbage counts too, until it is collected.
func (c *Cluster) Heap(ctx context.Context, program string) (float64, error) {
	metrics, err := c.Metrics(ctx, program)
	if err != nil {
		return 0, err
	}
	for _, sample := range metrics["go_memstats_heap_alloc_bytes"] {
		return float64(sample.Value), nil
	}
	return 0, fmt.Errorf("%s does not report the size of its heap", program)
}

// LiveHeap is what one of our programs has in its heap after its garbage is collected. The program must run with --profiling.
func (c *Cluster) LiveHeap(ctx context.Context, program string) (float64, error) {
	if _, err := c.read(ctx, program, "/debug/pprof/heap", map[string]string{"gc": "1"}); err != nil {
		return 0, fmt.Errorf("collecting the garbage of %s, which must run with --profiling: %w", program, err)
	}
	return c.Heap(ctx, program)
}

// servers are the programs that count the requests they answer.
func (c *Cluster) servers() []string {
	if c.Upstream {
		return []string{"kube-apiserver"}
	}
	return []string{"kube-apiserver", "jobset-apiserver"}
}
