// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
)

// ourSlices selects the slices that jobset-controller writes, and clusterSlices those of kube-controller-manager.
const (
	ourSlices     = "endpointslice.kubernetes.io/managed-by=controller.jobset-apiserver.io"
	clusterSlices = "endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io"
)

// TestServiceEndpoints has jobset-controller write the addresses of a set, gives them to the cluster and takes them
// back while the pods run. There is no moment in which no slice has the address of a pod.
func TestServiceEndpoints(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.admitsPods()
	asks := func(name string, extra ...string) string {
		return strings.Replace(manifest(name, runOn, extra...), "name: "+name+"\n", "name: "+name+"\n  annotations: {jobset-apiserver.io/service-endpoints: controller}\n", 1)
	}
	k.okIn(asks("train"), "apply", "-f", "-")
	hosts := []string{"train-workers-0-0", "train-workers-1-0"}
	k.eventually(k.addressesAt(ourSlices, clusterSlices, hosts))
	if got, want := k.field("service/train", `{.spec.selector.jobset-apiserver\.io/endpoints}`), "controller"; got != want {
		t.Errorf("the selector of the Service has %q, want %q", got, want)
	}
	if got := k.ok("get", "endpoints", "train", "-o", "jsonpath={.subsets}"); got != "" {
		t.Errorf("the Endpoints of the cluster are %s, want none", got)
	}
	lacks := k.watchHosts(hosts)
	k.ok("annotate", "jobset", "train", "--overwrite", "jobset-apiserver.io/service-endpoints=cluster")
	k.eventually(k.addressesAt(clusterSlices, ourSlices, hosts))
	k.ok("annotate", "jobset", "train", "--overwrite", "jobset-apiserver.io/service-endpoints=controller")
	k.eventually(k.addressesAt(ourSlices, clusterSlices, hosts))
	if moments := lacks(); len(moments) > 0 {
		t.Errorf("pods without an address: %s", strings.Join(moments, "; "))
	}

	// An address that is gone, and one that is new.
	pod := strings.TrimSpace(k.ok("get", "pods", "-l", "jobset.sigs.k8s.io/job-index=1", "-o", "name"))
	uid := k.field(pod, "{.metadata.uid}")
	k.ok("annotate", pod, "--overwrite", "jobset-apiserver.io/kwok-outcome=succeeded")
	k.eventually(func() string {
		if got := k.ok("get", "endpointslices", "-o", "jsonpath={.items[*].endpoints[*].targetRef.uid}"); strings.Contains(got, uid) {
			return "slices name a pod that has ended: " + got
		}
		return ""
	})

	// The Service of the next set is created for the controller: the cluster never changes its own slice, which is empty.
	k.okIn(asks("next"), "apply", "-f", "-")
	next := ",kubernetes.io/service-name=next"
	k.eventually(k.addressesAt(ourSlices+next, clusterSlices+next, []string{"next-workers-0-0", "next-workers-1-0"}))
	if got := k.ok("get", "endpointslices", "-l", clusterSlices+next, "-o", "jsonpath={.items[*].metadata.generation}"); got != "1" {
		t.Errorf("the generations of the slices of the cluster are %q, want 1", got)
	}
	// Another set that uses the Service ends that.
	k.okIn(asks("other", "network:\n  enableDNSHostnames: true\n  subdomain: next"), "apply", "-f", "-")
	for _, set := range []string{"next", "other"} {
		k.eventually(func() string {
			got := k.field("jobset/"+set, `{.status.conditions[?(@.type=="ServiceEndpointsByCluster")].reason}`)
			if got != "ServiceShared" {
				return fmt.Sprintf("the reason of ServiceEndpointsByCluster of %s is %q", set, got)
			}
			return ""
		})
	}
	k.ok("delete", "jobset", "train", "next", "other", "--wait=false")
	k.eventually(func() string { return k.ok("get", "endpointslices", "-o", "name") })
}

// TestServiceEndpointsOfALargeSet has jobset-controller write the addresses of a set that does not ask for it, while half of its pods wait
// for a node, and leave them to the cluster when all of them run.
func TestServiceEndpointsOfALargeSet(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.admitsPods()
	large := strings.NewReplacer("replicas: 2", "replicas: 1", "parallelism: 1", "parallelism: 60", "completions: 1", "completions: 60").Replace(manifest("train", runOn))
	_, workers, _ := strings.Cut(large, "replicatedJobs:\n")
	waiting := strings.NewReplacer("name: workers", "name: late", "containers:", "nodeSelector: {example.com/"+k.namespace+": late}\n            containers:").Replace(workers)
	k.okIn(large+waiting, "apply", "-f", "-")
	var early, all []string
	for i := range 60 {
		early, all = append(early, fmt.Sprintf("train-workers-0-%d", i)), append(all, fmt.Sprintf("train-workers-0-%d", i), fmt.Sprintf("train-late-0-%d", i))
	}
	slices.Sort(early)
	slices.Sort(all)
	k.eventually(k.addressesAt(ourSlices, clusterSlices, early))
	lacks := k.watchHosts(early)
	node := k.ok("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
	k.ok("label", "node", node, "example.com/"+k.namespace+"=late")
	t.Cleanup(func() { k.run("", "label", "node", node, "example.com/"+k.namespace+"-") })
	k.eventually(k.addressesAt(clusterSlices, ourSlices, all))
	if moments := lacks(); len(moments) > 0 {
		t.Errorf("pods without an address: %s", strings.Join(moments, "; "))
	}
	if got := k.field("service/train", "{.spec.selector}"); got != `{"jobset.sigs.k8s.io/jobset-name":"train"}` {
		t.Errorf("the selector of the Service is %s", got)
	}
	if got := k.field("jobset/train", `{.status.conditions[?(@.type=="ServiceEndpointsByCluster")].reason}`); got != "" {
		t.Errorf("the set has the condition ServiceEndpointsByCluster: %s", got)
	}
}

// addressesAt returns a check that some slices have the hosts, and others no address.
func (k *kubectl) addressesAt(full, empty string, hosts []string) func() string {
	return func() string {
		const each = "jsonpath={range .items[*].endpoints[*]}{.hostname} {end}"
		got := strings.Fields(k.ok("get", "endpointslices", "-l", full, "-o", each))
		slices.Sort(got)
		if rest := k.ok("get", "endpointslices", "-l", empty, "-o", each); rest != "" || !slices.Equal(got, hosts) {
			return fmt.Sprintf("%s has %v, want %v; %s has %q, want nothing", full, got, hosts, empty, rest)
		}
		return ""
	}
}

// watchHosts follows all slices of the namespace until the function is called that it returns, which returns when they lacked a host.
func (k *kubectl) watchHosts(hosts []string) (lacks func() []string) {
	k.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", k.kubeconfig)
	if err != nil {
		k.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		k.Fatal(err)
	}
	list, err := kube.DiscoveryV1().EndpointSlices(k.namespace).List(k.Context(), metav1.ListOptions{})
	if err != nil {
		k.Fatal(err)
	}
	ctx, stop := context.WithCancel(k.Context())
	events, err := kube.DiscoveryV1().EndpointSlices(k.namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		k.Fatal(err)
	}
	known := map[string]*discoveryv1.EndpointSlice{}
	for i := range list.Items {
		known[list.Items[i].Name] = &list.Items[i]
	}
	var moments []string
	var following sync.WaitGroup
	following.Go(func() {
		for event := range events.ResultChan() {
			slice, ok := event.Object.(*discoveryv1.EndpointSlice)
			if !ok && ctx.Err() != nil {
				return
			}
			if !ok {
				moments = append(moments, fmt.Sprintf("the watch has ended: %v", event.Object))
				continue
			}
			if known[slice.Name] = slice; event.Type == watch.Deleted {
				delete(known, slice.Name)
			}
			for _, host := range hosts {
				if !resolves(known, host) {
					moments = append(moments, fmt.Sprintf("no %s at version %s", host, slice.ResourceVersion))
				}
			}
		}
	})
	return func() []string {
		stop()
		following.Wait()
		return moments
	}
}

func resolves(known map[string]*discoveryv1.EndpointSlice, host string) bool {
	for _, slice := range known {
		if slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return ptr.Deref(e.Hostname, "") == host }) {
			return true
		}
	}
	return false
}
