// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// resolver asks the DNS server of the cluster, which listens where kube-apiserver does.
func (e *env) resolver() *net.Resolver {
	e.Helper()
	endpoints, err := core.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Get(e.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		e.Fatal(err)
	}
	server := net.JoinHostPort(endpoints.Endpoints[0].Addresses[0], "53")
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server)
	}}
}

// resolves waits until a name in the namespace resolves to these addresses, none of them meaning that it does not exist.
func (e *env) resolves(name string, addresses ...string) {
	e.Helper()
	resolver := e.resolver()
	framework.Eventually(e, fmt.Sprintf("%s resolves to %q", name, addresses), func(ctx context.Context) error {
		got, err := resolver.LookupHost(ctx, name+"."+e.namespace+".svc.cluster.local.")
		var dns *net.DNSError
		if err != nil && (!errors.As(err, &dns) || !dns.IsNotFound) {
			return err
		}
		if strings.Join(got, ",") != strings.Join(addresses, ",") {
			return fmt.Errorf("it resolves to %q", got)
		}
		return nil
	})
}

// probed waits until the readiness probe has asked once more and got its answer: when it asks the next time.
func (e *env) probed(pod *corev1.Pod) {
	e.Helper()
	before, _ := strconv.Atoi(e.asked(pod, "/probes"))
	framework.Eventually(e, pod.Name+" is probed", func(ctx context.Context) error {
		text, err := ask(ctx, pod, "/probes")
		if err != nil {
			return err
		}
		if now, err := strconv.Atoi(text); err != nil || now < before+2 {
			return fmt.Errorf("%q probes", text)
		}
		return nil
	})
}

// readyIs waits until the condition of a pod is so.
func (e *env) readyIs(name string, want corev1.ConditionStatus) {
	e.Helper()
	framework.Eventually(e, name+" is ready: "+string(want), func(ctx context.Context) error {
		pod, err := core.CoreV1().Pods(e.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == want {
				return nil
			}
		}
		return fmt.Errorf("conditions are %+v", pod.Status.Conditions)
	})
}

// hasUnready waits until the one pod behind a Service is known to be not ready.
func (e *env) hasUnready(service string) {
	e.Helper()
	framework.Eventually(e, "the Service "+service+" has a pod", func(ctx context.Context) error {
		slices, err := core.DiscoveryV1().EndpointSlices(e.namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
		if err != nil {
			return err
		}
		for _, slice := range slices.Items {
			if len(slice.Endpoints) == 1 && !ptr.Deref(slice.Endpoints[0].Conditions.Ready, true) {
				return nil
			}
		}
		return fmt.Errorf("endpoints are %+v", slices.Items)
	})
}

// hiddenSet is a set of one pod that serves, and is not ready before it is asked to be.
func hiddenSet(name string) *jobsetv1alpha2.JobSet {
	js := set(name, 1, 1)
	serving(&js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0], hidden)
	return js
}

// TestNamesBeforeReadiness looks the pods of two sets up while they are not ready: one set publishes them, under a
// subdomain of its own and as its coordinator, the other one does not.
func TestNamesBeforeReadiness(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	open := hiddenSet("open")
	open.Spec.Network = &jobsetv1alpha2.Network{Subdomain: "named"}
	open.Spec.Coordinator = &jobsetv1alpha2.Coordinator{ReplicatedJob: "w"}
	e.create(open)
	closed := hiddenSet("closed")
	closed.Spec.Network = &jobsetv1alpha2.Network{PublishNotReadyAddresses: ptr.To(false)}
	e.create(closed)

	first := e.running(ofSet("open"), 1)[0]
	e.resolves("open-w-0-0.named", first.Status.PodIP)
	e.readyIs(first.Name, corev1.ConditionFalse)
	if coordinator := first.Annotations[jobsetv1alpha2.CoordinatorKey]; coordinator != "open-w-0-0.named" {
		t.Errorf("the coordinator is %q", coordinator)
	}

	second := e.running(ofSet("closed"), 1)[0]
	e.probed(&second)
	e.hasUnready("closed")
	e.resolves("closed-w-0-0.closed")
	e.asked(&second, "/ready?is=true")
	e.resolves("closed-w-0-0.closed", second.Status.PodIP)
	e.asked(&second, "/ready?is=false")
	e.readyIs(second.Name, corev1.ConditionFalse)
	e.resolves("closed-w-0-0.closed")
}

// TestStartWaitsForReadiness has one replicatedJob wait for another one, which runs but is not ready: by dependsOn, and
// by the order of the list.
func TestStartWaitsForReadiness(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for name, order := range map[string]func(*jobsetv1alpha2.JobSetSpec){
		"depends": func(spec *jobsetv1alpha2.JobSetSpec) {
			spec.ReplicatedJobs[1].DependsOn = []jobsetv1alpha2.DependsOn{{Name: "w", Status: jobsetv1alpha2.DependencyReady}}
		},
		"ordered": func(spec *jobsetv1alpha2.JobSetSpec) {
			spec.StartupPolicy = &jobsetv1alpha2.StartupPolicy{StartupPolicyOrder: jobsetv1alpha2.InOrder}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := &env{framework.Test{T: t}, e.namespace}
			js := hiddenSet(name)
			second := *js.Spec.ReplicatedJobs[0].DeepCopy()
			second.Name = "late"
			second.Template.Spec.Template.Spec.Containers[0] = corev1.Container{Name: "main", Image: localcluster.ProgramImage, Args: []string{"exit", "0"}}
			js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, second)
			order(&js.Spec)
			e.create(js)
			e.startsLate(name)
		})
	}
}

func (e *env) startsLate(name string) {
	e.Helper()
	first := e.running(ofSet(name), 1)[0]
	e.probed(&first)
	e.readyIs(first.Name, corev1.ConditionFalse)
	if pods := e.running(ofSet(name), 1); pods[0].UID != first.UID {
		e.Errorf("%s has replaced %s", pods[0].Name, first.Name)
	}
	e.asked(&first, "/ready?is=true")
	var late *batchv1.Job
	framework.Eventually(e, "the second replicatedJob has completed", func(ctx context.Context) (err error) {
		if late, err = core.BatchV1().Jobs(e.namespace).Get(ctx, name+"-late-0", metav1.GetOptions{}); err == nil && late.Status.Succeeded != 1 {
			err = fmt.Errorf("status is %+v", late.Status)
		}
		return err
	})
	pod, err := core.CoreV1().Pods(e.namespace).Get(e.Context(), first.Name, metav1.GetOptions{})
	if err != nil {
		e.Fatal(err)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && late.Status.StartTime.Before(&condition.LastTransitionTime) {
			e.Errorf("the second replicatedJob has started at %s, the first one was ready at %s", late.Status.StartTime, condition.LastTransitionTime)
		}
	}
	e.end(&first, 0)
	e.ended(name, jobsetv1alpha2.JobSetCompleted)
}
