// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	diffs "github.com/google/go-cmp/cmp"
)

// membersValues are the values of the chart for three members of the embedded etcd.
const membersValues = "apiserver: {replicas: 3}"

// ownPods are the labels of the pods of a server with an embedded etcd.
const ownPods = `{"app.kubernetes.io/name":"jobset-apiserver","jobset-apiserver.io/storage":"embedded"}`

// membersOverlay is the overlay with three members.
var membersOverlay = overlay{name: "embedded-ha"}

// TestMembersGrowInPlace checks that the overlay with three members can be applied over the one with a single store, and the chart
// likewise: what kube-apiserver does not let change is the same, and what the single installation has stays.
func TestMembersGrowInPlace(t *testing.T) {
	t.Parallel()
	immutable := []string{"selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates", "persistentVolumeClaimRetentionPolicy"}
	for name, o := range map[string]struct{ single, several objects }{
		"overlay": {overlay{name: "embedded"}.build(t), membersOverlay.build(t)},
		"chart":   {release{}.objects(t), release{values: membersValues}.objects(t)},
	} {
		for key := range o.single {
			if o.several[key] == nil {
				t.Errorf("%s: three members lack %s", name, key)
			}
		}
		for _, field := range immutable {
			before, after := value(o.single[server], "spec", field), value(o.several[server], "spec", field)
			if before == nil || !diffs.Equal(before, after) {
				t.Errorf("%s: %s of the StatefulSet changes (-single +three):\n%s", name, field, diffs.Diff(before, after))
			}
		}
		storage := "ConfigMap/jobset-apiserver-storage"
		if !diffs.Equal(o.single[storage]["data"], o.several[storage]["data"]) {
			t.Errorf("%s: the immutable %s changes", name, storage)
		}
	}
}

// TestMembersResolve checks that each name in the flag belongs to a headless Service which selects one pod. The Service that the
// StatefulSet names is not headless, and has no addresses of pods that wait for the other members.
func TestMembersResolve(t *testing.T) {
	t.Parallel()
	all := membersOverlay.build(t)
	labels, _ := value(all[server], "spec", "template", "metadata", "labels").(object)
	hosts := strings.Split(flagOf(t, all[server], "--embedded-etcd-members="), ",")
	if len(hosts) != 3 {
		t.Fatalf("the hosts are %q", hosts)
	}
	for ordinal, host := range hosts {
		name, found := strings.CutSuffix(host, ".jobset-system.svc")
		service := all["Service/"+name]
		if !found || service == nil {
			t.Errorf("%s is not the name of a Service", host)
			continue
		}
		if at(service, "spec.clusterIP") != "None" || at(service, "spec.publishNotReadyAddresses") != "true" {
			t.Errorf("%s must be headless and have pods that are not ready: %s", name, at(service, "spec"))
		}
		selector, _ := value(service, "spec", "selector").(object)
		for key, want := range selector {
			got := labels[key]
			if key == "statefulset.kubernetes.io/pod-name" {
				got = fmt.Sprintf("jobset-apiserver-%d", ordinal)
			}
			if got != want {
				t.Errorf("%s selects %s=%v, which the pod with ordinal %d does not have", name, key, want, ordinal)
			}
		}
		if selector["statefulset.kubernetes.io/pod-name"] == nil {
			t.Errorf("%s selects several pods: %v", name, selector)
		}
		if ports := portsOf(service, "spec.ports", "port"); !slices.Equal(ports, []string{"2379", "2380"}) {
			t.Errorf("%s has the ports %v", name, ports)
		}
	}
}

// TestMembersRun checks what three members need of their pods beside the flag.
func TestMembersRun(t *testing.T) {
	t.Parallel()
	all := membersOverlay.build(t)
	const term = "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.0."
	for path, want := range map[string]string{
		"spec.replicas": "3", "spec.podManagementPolicy": "Parallel",
		// Pods that have been ready for a shorter time would be replaced together.
		"spec.minReadySeconds": "none",
		// Without a partition, a pod that is deleted during an update comes back as it was before.
		"spec.updateStrategy":                                         `{"rollingUpdate":{"partition":0},"type":"RollingUpdate"}`,
		pod + term + "topologyKey":                                    "kubernetes.io/hostname",
		pod + term + "labelSelector.matchLabels":                      ownPods,
		pod + "topologySpreadConstraints.0.topologyKey":               "topology.kubernetes.io/zone",
		pod + "topologySpreadConstraints.0.whenUnsatisfiable":         "ScheduleAnyway",
		pod + "topologySpreadConstraints.0.labelSelector.matchLabels": ownPods,
		// The members stay while there is no majority: a restart does not bring the others back.
		container + "livenessProbe.httpGet.path": "/livez?exclude=etcd",
		"spec.volumeClaimTemplates.1":            "none",
	} {
		if got := at(all[server], path); got != want {
			t.Errorf("%s is %s, must be %s", path, got, want)
		}
	}
	if ports := portsOf(all[server], container+"ports", "containerPort"); !slices.Equal(ports, []string{"8443", "2379", "2380"}) {
		t.Errorf("the container has the ports %v", ports)
	}
	budget := all["PodDisruptionBudget/jobset-apiserver"]
	if at(budget, "spec.maxUnavailable") != "1" || at(budget, "spec.selector.matchLabels") != ownPods {
		t.Errorf("the budget is %s", at(budget, "spec"))
	}
}

// TestMembersRights checks that the server gets the Secret with the certificates of the members by its name, and no other right.
func TestMembersRights(t *testing.T) {
	t.Parallel()
	single, all := overlay{name: "embedded"}.build(t), membersOverlay.build(t)
	const secret = "jobset-apiserver-serving-peers"
	if o := all["Secret/"+secret]; o == nil || o["data"] != nil || o["stringData"] != nil {
		t.Errorf("the Secret must exist without content: %v", o)
	}
	if got := flagOf(t, all[server], "--tls-managed-secret="); got+"-peers" != "jobset-system/"+secret {
		t.Errorf("the managed Secret is %s", got)
	}
	var added []string
	for key, o := range all {
		switch kind, _, _ := strings.Cut(key, "/"); {
		case !strings.Contains(kind, "Role"):
		case single[key] == nil:
			added = append(added, key)
		case !diffs.Equal(single[key], o):
			t.Errorf("%s changes", key)
		}
	}
	slices.Sort(added)
	names := []string{"Role/jobset-apiserver:peer-certificates", "RoleBinding/jobset-apiserver:peer-certificates"}
	if !slices.Equal(added, names) {
		t.Fatalf("three members add %v, want %v", added, names)
	}
	want := `[{"apiGroups":[""],"resourceNames":["` + secret + `"],"resources":["secrets"],"verbs":["get","list","watch","update"]}]`
	if got := at(all[added[0]], "rules"); got != want {
		t.Errorf("the role has the rules %s, must have %s", got, want)
	}
	if got := at(all[added[1]], "roleRef.name") + " " + at(all[added[1]], "subjects"); got !=
		`jobset-apiserver:peer-certificates [{"kind":"ServiceAccount","name":"jobset-apiserver","namespace":"jobset-system"}]` {
		t.Errorf("the binding is %s", got)
	}
}

// TestMembersNetworkPolicy checks that only pods of the server reach the members, and that the rules of the single store stay.
func TestMembersNetworkPolicy(t *testing.T) {
	t.Parallel()
	const policy = "NetworkPolicy/jobset-apiserver"
	for name, o := range map[string]struct{ single, several object }{
		"overlay": {overlay{name: "embedded"}.build(t)[policy], membersOverlay.build(t)[policy]},
		"chart":   {release{}.objects(t)[policy], release{values: membersValues}.objects(t)[policy]},
	} {
		for _, path := range []string{"spec.ingress.0", "spec.podSelector", "spec.policyTypes"} {
			if at(o.single, path) != at(o.several, path) {
				t.Errorf("%s: %s is %s, was %s: others do not reach the servers any more", name, path, at(o.several, path), at(o.single, path))
			}
		}
		want := `{"from":[{"podSelector":{"matchLabels":` + ownPods + `}}],` +
			`"ports":[{"port":"etcd-client","protocol":"TCP"},{"port":"etcd-peer","protocol":"TCP"}]}`
		if got := at(o.several, "spec.ingress.1"); got != want {
			t.Errorf("%s: the rule for members is %s, must be %s", name, got, want)
		}
		if at(o.single, "spec.ingress.1") != "none" || at(o.several, "spec.ingress.2") != "none" {
			t.Errorf("%s: further rules: %s, %s", name, at(o.single, "spec"), at(o.several, "spec"))
		}
	}
}

// TestMembersKeepApart checks that values for affinity and spread do not let two members run on one node.
func TestMembersKeepApart(t *testing.T) {
	t.Parallel()
	const (
		required = `"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[`
		apart    = `{"labelSelector":{"matchLabels":` + ownPods + `},"topologyKey":"kubernetes.io/hostname"}]}}`
		zone     = "podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone}]}"
	)
	for values, want := range map[string]string{
		"":                              "{" + required + apart,
		"affinity: {nodeAffinity: {}}":  `{"nodeAffinity":{},` + required + apart,
		"affinity: {" + zone + "}":      "{" + required + `{"topologyKey":"zone"},` + apart,
		"topologySpreadConstraints: []": "{" + required + apart,
	} {
		set := release{values: "apiserver: {replicas: 3, " + values + "}"}.objects(t)[server]
		if got := at(set, pod+"affinity"); got != want {
			t.Errorf("%s: the affinity is %s, must be %s", values, got, want)
		}
		if got, none := at(set, pod+"topologySpreadConstraints"), strings.HasPrefix(values, "topology"); (got == "none") != none {
			t.Errorf("%s: the spread is %s", values, got)
		}
	}
}

// TestMembersAreNotScaledDown checks that an upgrade with the default values does not take away the majority of three members.
func TestMembersAreNotScaledDown(t *testing.T) {
	t.Parallel()
	const message = "apiserver.replicas: is 1, but the StatefulSet has 3 pods, and no member serves without the majority of the others: " +
		"set it to 3"
	const members = "--embedded-etcd-members=a,b,c"
	const spec = `{"replicas":%d,"template":{"spec":{"containers":[{"args":[%q]}]}}}`
	for _, test := range []struct {
		values, flag string
		replicas     int
		refused      bool
	}{
		{"{}", members, 3, true}, {membersValues, members, 3, false}, {"{}", members, 0, false},
		{"{}", "--v=2", 1, false}, {"{}", "--v=2", 2, false}, {membersValues, "--v=2", 1, false},
	} {
		set := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"StatefulSet","spec":`+spec+"}", test.replicas, test.flag)
		cluster := answering(t, map[string]string{"/apis/apps/v1/namespaces/jobset-system/statefulsets/jobset-apiserver": set})
		_, err := release{values: test.values, cluster: cluster}.texts(t)
		if (err != nil) != test.refused || err != nil && !strings.Contains(err.Error(), message) {
			t.Errorf("%s over %d pods with %s: refused must be %t, is %v", test.values, test.replicas, test.flag, test.refused, err)
		}
	}
}

// flagOf returns the value of a flag of the server.
func flagOf(t *testing.T, o object, flag string) string {
	t.Helper()
	containers, _ := value(o, "spec", "template", "spec", "containers").([]any)
	for _, c := range containers {
		args, _ := value(c, "args").([]any)
		for _, arg := range args {
			if got, found := strings.CutPrefix(fmt.Sprint(arg), flag); found {
				return got
			}
		}
	}
	t.Fatalf("the server has no flag %s", flag)
	return ""
}

// portsOf returns the numbers in a list of ports.
func portsOf(o object, path, field string) (ports []string) {
	for i := 0; ; i++ {
		port := at(o, fmt.Sprintf("%s.%d.%s", path, i, field))
		if port == "none" {
			return ports
		}
		ports = append(ports, port)
	}
}
