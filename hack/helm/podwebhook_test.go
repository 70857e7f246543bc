// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestPodWebhookIsReached checks for each installation that kube-apiserver reaches the webhook for pods whether or not the server is ready: the
// Service, its pods and their port, the network policy, and the certificate.
func TestPodWebhookIsReached(t *testing.T) {
	for values, o := range installations {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			if slices.Contains(o.components, "without-leaderworkerset") {
				return // TestLeaderWorkerSetsAreLeftToUpstream
			}
			for by, all := range map[string]objects{"kustomize": o.build(t), "chart": release{values: values}.objects(t)} {
				for _, problem := range unreached(all) {
					t.Errorf("%s: %s", by, problem)
				}
			}
		})
	}
}

// unreached returns what keeps kube-apiserver from asking about pods of LeaderWorkerSets.
func unreached(all objects) (problems []string) {
	configuration := all["MutatingWebhookConfiguration/jobset-apiserver-pods"]
	if configuration == nil {
		return []string{"there is no webhook"}
	}
	name := at(configuration, "webhooks.0.clientConfig.service.name")
	service := all["Service/"+name]
	if service == nil {
		return []string{"there is no Service " + name}
	}
	if at(service, "spec.publishNotReadyAddresses") != "true" {
		problems = append(problems, "Service "+name+" drops servers that are not ready")
	}
	if at(all["Service/jobset-apiserver"], "spec.publishNotReadyAddresses") != "none" {
		problems = append(problems, "requests for the API come to servers that are not ready")
	}
	if at(service, "metadata.labels.app|kubernetes|io/name") == at(all["Service/jobset-apiserver"], "metadata.labels.app|kubernetes|io/name") {
		problems = append(problems, "a ServiceMonitor selects both Services")
	}
	workload := all[server]
	if workload == nil {
		workload = all[replicated]
	}
	if !matches(value(service, "spec", "selector"), workload) {
		problems = append(problems, fmt.Sprintf("Service %s selects %v", name, value(service, "spec", "selector")))
	}
	if at(service, "spec.selector") != at(all["Service/jobset-apiserver"], "spec.selector") {
		problems = append(problems, "the Services select different pods")
	}
	port := at(service, "spec.ports.0.targetPort")
	if at(workload, container+"ports.0.name") != port {
		problems = append(problems, "the pods have no port "+port)
	}
	policy := all["NetworkPolicy/jobset-apiserver"]
	if !matches(value(policy, "spec", "podSelector", "matchLabels"), workload) || at(policy, "spec.ingress.0.ports.0.port") != port {
		problems = append(problems, "the NetworkPolicy does not let requests through")
	}
	if certificate := all["Certificate/jobset-apiserver"]; certificate != nil {
		names, _ := value(certificate, "spec", "dnsNames").([]any)
		if !slices.Contains(names, any(name+".jobset-system.svc")) {
			problems = append(problems, fmt.Sprintf("the certificate is for %v", names))
		}
	}
	return problems
}

// matches returns whether a selector, which must not be empty, selects the pods of a workload.
func matches(selector any, workload object) bool {
	labels, _ := selector.(object)
	pods, _ := value(workload, "spec", "template", "metadata", "labels").(object)
	for key, wanted := range labels {
		if pods[key] != wanted {
			return false
		}
	}
	return len(labels) > 0
}

// TestLeaderWorkerSetsAreLeftToUpstream checks that nothing of an installation touches the sets of another controller: a webhook without a server would
// refuse all their pods, and two controllers would work on the same sets.
func TestLeaderWorkerSetsAreLeftToUpstream(t *testing.T) {
	const values = "kinds: {leaderworkerset: false}"
	for by, all := range map[string]objects{"kustomize": installations[values].build(t), "chart": release{values: values}.objects(t)} {
		for key, o := range all {
			switch {
			case key == "MutatingWebhookConfiguration/jobset-apiserver-pods", key == "Service/jobset-apiserver-webhook", key == "APIService/v1.leaderworkerset.x-k8s.io":
				t.Errorf("%s: there is %s", by, key)
			case strings.HasPrefix(key, "ClusterRole/jobset-controller-manager") && touches(o, "leaderworkersets", "statefulsets", "controllerrevisions"):
				t.Errorf("%s: %s allows to change objects of LeaderWorkerSets", by, key)
			}
		}
		if args := at(all[server], container+"args"); !strings.Contains(args, "--runtime-config=leaderworkerset.x-k8s.io/v1=false") {
			t.Errorf("%s: the flags of the server are %s", by, args)
		}
		if args := at(all[controller], container+"args"); !strings.Contains(args, "--controllers=*,-leaderworkerset") {
			t.Errorf("%s: the flags of the controller are %s", by, args)
		}
	}
}

// touches returns whether a role allows to do more than read a resource.
func touches(role object, resources ...string) bool {
	rules, _ := role["rules"].([]any)
	for _, rule := range rules {
		named, _ := value(rule, "resources").([]any)
		verbs, _ := value(rule, "verbs").([]any)
		for _, resource := range named {
			name, _, _ := strings.Cut(fmt.Sprint(resource), "/")
			if slices.Contains(resources, name) && slices.ContainsFunc(verbs, func(verb any) bool { return verb != "get" && verb != "list" && verb != "watch" }) {
				return true
			}
		}
	}
	return false
}
