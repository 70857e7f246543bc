// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

const (
	server     = "StatefulSet/jobset-apiserver"
	replicated = "Deployment/jobset-apiserver"
	controller = "Deployment/jobset-controller"
	pod        = "spec.template.spec."
	container  = pod + "containers.0."
)

// want is what an object must have at a path; "none" stands for nothing. An empty path asks for the object itself.
type want struct{ object, path, value string }

// absent and present are wants about whole objects.
func absent(name string) want  { return want{name, "", "absent"} }
func present(name string) want { return want{name, "", "present"} }

// valuesTest is what the chart must render for values.
type valuesTest struct {
	values, namespace string
	wants             []want
}

var rendered = map[string]valuesTest{
	"defaults": {wants: []want{
		{server, container + "image", "jobset-apiserver:v0.1.0"}, {server, "spec.replicas", "1"},
		{"Namespace/jobset-system", "metadata.annotations.helm|sh/resource-policy", "keep"},
		{"Namespace/jobset-system", "metadata.labels.pod-security|kubernetes|io/enforce", "restricted"},
		{"ConfigMap/jobset-apiserver-storage", "metadata.annotations.helm|sh/resource-policy", "keep"},
		{"ConfigMap/jobset-apiserver-storage", "immutable", "true"},
		absent("APIService/v1.disaggregatedset.x-k8s.io"), absent("PersistentVolumeClaim/jobset-apiserver-backups"),
		absent("ServiceMonitor/jobset-apiserver"), absent(replicated), absent("ClusterRole/jobset-controller-manager:pod-groups"),
		present("ClusterRole/jobset-controller-manager:endpoints"),
	}},
	"release in the namespace of the programs": {namespace: "jobset-system", wants: []want{absent("Namespace/jobset-system"), present(server)}},
	"registry, tag and digest": {
		values: "{image: {registry: registry.example.com/team/, tag: v2, pullPolicy: Always, pullSecrets: [pull]}, controller: {image: {digest: 'sha256:" + strings.Repeat("0", 64) + "'}}}",
		wants: []want{
			{server, container + "image", "registry.example.com/team/jobset-apiserver:v2"}, {server, container + "imagePullPolicy", "Always"},
			{server, pod + "imagePullSecrets", `[{"name":"pull"}]`},
			{controller, container + "image", "registry.example.com/team/jobset-controller@sha256:" + strings.Repeat("0", 64)},
		},
	},
	"claim": {values: "store: {embedded: {size: 20Gi, storageClass: fast}}", wants: []want{
		{server, "spec.volumeClaimTemplates.0.spec", `{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"20Gi"}},"storageClassName":"fast"}`},
	}},
	"claim that exists": {values: "store: {embedded: {existingClaim: mine}}", wants: []want{
		{server, "spec.volumeClaimTemplates", "none"}, {server, pod + "volumes.1", `{"name":"data","persistentVolumeClaim":{"claimName":"mine"}}`},
	}},
	"backups": {values: "store: {embedded: {backup: {enabled: true, size: 5Gi, storageClass: slow}}}", wants: []want{
		{"PersistentVolumeClaim/jobset-apiserver-backups", "metadata.annotations.helm|sh/resource-policy", "keep"},
		{"PersistentVolumeClaim/jobset-apiserver-backups", "spec.storageClassName", "slow"},
		{"PersistentVolumeClaim/jobset-apiserver-backups", "spec.resources.requests.storage", "5Gi"},
	}},
	"extra volumes and variables": {
		values: "{apiserver: {extraEnv: [{name: A, value: b}], extraVolumes: [{name: v, secret: {secretName: s}}], extraVolumeMounts: [{name: v, mountPath: /v}]}, controller: {extraEnv: [{name: A, value: b}], extraVolumes: [{name: v, secret: {secretName: s}}], extraVolumeMounts: [{name: v, mountPath: /v}], resources: {limits: {memory: null}}}}",
		wants: []want{
			{server, container + "env.3.name", "A"}, {server, container + "volumeMounts.2.mountPath", "/v"}, {server, pod + "volumes.1.secret.secretName", "s"},
			{controller, container + "env.0.value", "b"}, {controller, container + "volumeMounts.1.mountPath", "/v"},
			{controller, pod + "volumes.1.secret.secretName", "s"},
		},
	},
	"copies of backups": {
		values: "store: {embedded: {backup: {enabled: true, s3: {enabled: true, url: 's3://b-1/x/', endpoint: 'https://minio:9000', region: r, secretName: mine, keep: 0, caKey: ca.crt, pathStyle: true}}}}", wants: []want{
			{server, container + "env.3.value", "s3://b-1/x/"}, {server, container + "env.4.value", "https://minio:9000"}, {server, container + "env.5.value", "r"},
			{server, pod + "volumes.2.secret.secretName", "mine"}, {server, container + "args.10", "--s3-credentials-dir=/etc/jobset-apiserver/s3"},
			{server, container + "args.11", "--s3-ca-file=/etc/jobset-apiserver/s3/ca.crt"}, {server, container + "args.12", "--s3-path-style=true"},
		},
	},
	"copies of backups with the host of the bucket": {
		values: "store: {embedded: {backup: {enabled: true, s3: {enabled: true, pathStyle: false}}}}", wants: []want{
			{server, container + "args.11", "--s3-path-style=false"}, {server, container + "args.12", "none"},
		},
	},
	"copies of backups as is usual for the service": {
		values: "store: {embedded: {backup: {enabled: true, s3: {enabled: true}}}}", wants: []want{{server, container + "args.11", "none"}},
	},
	"CronJob of backups": {
		values: "{store: {type: external, external: {secretName: tls, backup: {s3: {enabled: true, schedule: '@daily', secretName: mine, caKey: ca.crt, pathStyle: false}}}}, image: {registry: r.example.com, pullSecrets: [pull]}}", wants: []want{
			{"CronJob/jobset-apiserver-backup", "spec.schedule", "@daily"},
			{"CronJob/jobset-apiserver-backup", "spec.jobTemplate." + pod + "imagePullSecrets", `[{"name":"pull"}]`},
			{"CronJob/jobset-apiserver-backup", "spec.jobTemplate." + container + "image", "r.example.com/jobset-apiserver:v0.1.0"},
			{"CronJob/jobset-apiserver-backup", "spec.jobTemplate." + pod + "volumes.1.secret.secretName", "tls"},
			{"CronJob/jobset-apiserver-backup", "spec.jobTemplate." + pod + "volumes.2.secret.secretName", "mine"},
			{"CronJob/jobset-apiserver-backup", "spec.jobTemplate." + container + "args.5", "--s3-ca-file=/etc/jobset-apiserver/s3/ca.crt"},
			{"CronJob/jobset-apiserver-backup", "spec.jobTemplate." + container + "args.6", "--s3-path-style=false"},
		},
	},
	"backups on a claim that exists": {values: "store: {embedded: {backup: {enabled: true, existingClaim: mine}}}", wants: []want{
		absent("PersistentVolumeClaim/jobset-apiserver-backups"), {server, pod + "volumes.1.persistentVolumeClaim.claimName", "mine"},
	}},
	"external store": {values: "store: {type: external, external: {endpoints: ['https://a:2379', 'https://b:2379'], secretName: mine}}", wants: []want{
		absent(server), {replicated, "spec.replicas", "3"}, {controller, "spec.replicas", "2"},
		{"ConfigMap/jobset-apiserver-etcd", "data.endpoints", "https://a:2379,https://b:2379"}, {replicated, pod + "volumes.1.secret.secretName", "mine"},
		{replicated, "spec.strategy.rollingUpdate", `{"maxSurge":1,"maxUnavailable":0}`},
	}},
	"replicas": {values: "{store: {type: external}, apiserver: {replicas: 5}, controller: {replicas: 0}}", wants: []want{
		{replicated, "spec.replicas", "5"}, {controller, "spec.replicas", "0"},
	}},
	"own authority": {values: "tls: {mode: secret, secretName: mine, caBundle: '-----BEGIN CERTIFICATE-----'}", wants: []want{
		{"APIService/v1alpha2.jobset.x-k8s.io", "spec.caBundle", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t"},
		{"MutatingWebhookConfiguration/jobset-apiserver-pods", "webhooks.0.clientConfig.caBundle", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t"},
		{server, pod + "volumes.1.secret.secretName", "mine"}, absent("Secret/jobset-apiserver-serving"), absent("ClusterRole/jobset-apiserver:ca-bundles"),
	}},
	"certificate of the servers": {wants: []want{
		{server, container + "args.1", "--tls-managed-secret=jobset-system/jobset-apiserver-serving"}, {"Secret/jobset-apiserver-serving", "data", "none"},
		{"APIService/v1alpha2.jobset.x-k8s.io", "spec.caBundle", "none"}, present("Role/jobset-apiserver:serving-certificate"),
	}},
	"cert-manager": {values: "{tls: {mode: cert-manager}, commonAnnotations: {a: b}}", wants: []want{
		present("Certificate/jobset-apiserver"),
		{"APIService/v1alpha2.jobset.x-k8s.io", "metadata.annotations", `{"a":"b","cert-manager.io/inject-ca-from":"jobset-system/jobset-apiserver"}`},
		{"APIService/v1alpha2.jobset.x-k8s.io", "spec.caBundle", "none"},
	}},
	"no LeaderWorkerSets": {values: "kinds: {leaderworkerset: false}", wants: []want{
		absent("APIService/v1.leaderworkerset.x-k8s.io"), absent("MutatingWebhookConfiguration/jobset-apiserver-pods"), present("APIService/v1alpha2.jobset.x-k8s.io"),
	}},
	"only LeaderWorkerSets": {values: "kinds: {jobset: false, sequentialjob: false}", wants: []want{
		absent("APIService/v1alpha2.jobset.x-k8s.io"), absent("APIService/v1alpha1.batch.jobset-apiserver.io"), present("APIService/v1.leaderworkerset.x-k8s.io"),
		{server, container + "args.7", "--runtime-config=jobset.x-k8s.io/v1alpha2=false,batch.jobset-apiserver.io/v1alpha1=false"},
		{controller, container + "args.5", "--controllers=*,-jobset,-endpoints,-sequentialjob,-podgroup"},
	}},
	"DisaggregatedSets": {values: "kinds: {disaggregatedset: true}", wants: []want{
		present("APIService/v1.disaggregatedset.x-k8s.io"), present("ClusterRole/disaggregatedset-edit"),
		{controller, container + "args.5", "--feature-gates=DisaggregatedSet=true"},
	}},
	"no definitions of upstream": {wants: []want{absent("CustomResourceDefinition/jobsets.jobset.x-k8s.io")}},
	"definitions of upstream": {values: "{upstreamDefinitions: true, kinds: {leaderworkerset: false}}", wants: []want{
		{"CustomResourceDefinition/jobsets.jobset.x-k8s.io", "spec.versions.0.served", "false"},
		absent("CustomResourceDefinition/leaderworkersets.leaderworkerset.x-k8s.io"), absent("CustomResourceDefinition/disaggregatedsets.disaggregatedset.x-k8s.io"),
	}},
	"feature gates": {
		values: "{featureGates: {B: true, A: true}, apiserver: {featureGates: {B: false}}, controller: {featureGates: {SequentialJobWorkload: true}}}",
		wants: []want{
			{server, container + "args.7", "--feature-gates=A=true,B=false"}, {controller, container + "args.5", "--feature-gates=A=true,B=true,SequentialJobWorkload=true"},
			present("ClusterRole/jobset-controller-manager:workloads"),
		},
	},
	"flags and levels of logs": {values: "{apiserver: {extraArgs: [--audit-log-path=-], verbosity: 4}, controller: {extraArgs: [--kube-api-qps=50], verbosity: 0}}", wants: []want{
		{server, container + "args.3", "--v=4"}, {server, container + "args.7", "--audit-log-path=-"},
		{controller, container + "args.4", "--v=0"}, {controller, container + "args.5", "--kube-api-qps=50"},
	}},
	"gangs": {values: "controller: {extraArgs: [--kube-api-qps=50, --gang-scheduling-provider=volcano]}", wants: []want{
		present("ClusterRole/jobset-controller-manager:pod-groups"), present("ClusterRoleBinding/jobset-controller-manager:pod-groups"),
	}},
	"addresses of Services by a flag": {values: "controller: {serviceEndpoints: {mode: cluster}, extraArgs: [--service-endpoints=controller]}", wants: []want{
		present("ClusterRole/jobset-controller-manager:endpoints"),
	}},
	"addresses of large Services by a flag": {values: "controller: {serviceEndpoints: {mode: cluster}, extraArgs: [--service-endpoints=auto]}", wants: []want{
		present("ClusterRole/jobset-controller-manager:endpoints"),
	}},
	"gangs by a configuration file": {values: "controller: {extraArgs: [--config=/etc/jobset/config.yaml]}", wants: []want{
		present("ClusterRole/jobset-controller-manager:pod-groups"),
	}},
	"addresses of Services": {values: "controller: {serviceEndpoints: {mode: controller, canary: false}, extraArgs: [--kube-api-qps=50]}", wants: []want{
		present("ClusterRole/jobset-controller-manager:endpoints"), present("ClusterRoleBinding/jobset-controller-manager:endpoints"),
		{controller, container + "args.5", "--service-endpoints=controller"}, {controller, container + "args.6", "--service-endpoints-canary=false"},
		{controller, container + "args.7", "--kube-api-qps=50"},
	}},
	"addresses of Services, checked": {values: "controller: {serviceEndpoints: {mode: controller}}", wants: []want{
		{controller, container + "args.5", "--service-endpoints=controller"}, {controller, container + "args.6", "none"},
	}},
	"addresses of large Services": {values: "controller: {serviceEndpoints: {mode: auto}}", wants: []want{
		present("ClusterRole/jobset-controller-manager:endpoints"), present("ValidatingAdmissionPolicy/jobset-controller-endpoints"),
		{controller, container + "args.5", "none"},
	}},
	"addresses of Services by the cluster": {values: "controller: {serviceEndpoints: {mode: cluster}}", wants: []want{
		absent("ClusterRole/jobset-controller-manager:endpoints"), absent("ValidatingAdmissionPolicy/jobset-controller-endpoints"),
		{controller, container + "args.5", "--service-endpoints=cluster"},
	}},
	"addresses of Services by annotation": {values: "controller: {serviceEndpoints: {mode: cluster, permissions: true}}", wants: []want{
		present("ClusterRole/jobset-controller-manager:endpoints"), present("ValidatingAdmissionPolicyBinding/jobset-controller-endpoints"),
	}},
	"memory": {values: "{apiserver: {resources: {limits: {memory: 512Mi}}}, controller: {resources: {limits: null}}}", wants: []want{
		{server, container + "env.0.value", "460MiB"}, {controller, container + "env", "none"}, {server, container + "resources.requests.cpu", "100m"},
	}},
	"network of the node": {values: "{store: {type: external}, apiserver: {hostNetwork: true, port: 18443}}", wants: []want{
		{replicated, pod + "hostNetwork", "true"}, {replicated, pod + "dnsPolicy", "ClusterFirstWithHostNet"}, {replicated, container + "args.0", "--secure-port=18443"},
		{replicated, container + "ports.0.containerPort", "18443"}, {replicated, "spec.strategy.rollingUpdate", `{"maxSurge":0,"maxUnavailable":1}`},
		{"Namespace/jobset-system", "metadata.labels.pod-security|kubernetes|io/enforce", "privileged"}, {controller, pod + "hostNetwork", "none"},
	}},
	"senders": {values: "networkPolicy: {apiserver: {from: [{ipBlock: {cidr: 192.0.2.0/28}}]}}", wants: []want{
		{"NetworkPolicy/jobset-apiserver", "spec.ingress.0.from", `[{"ipBlock":{"cidr":"192.0.2.0/28"}}]`}, {"NetworkPolicy/jobset-controller-manager", "spec.ingress.0.from", "none"},
	}},
	"without policies, budgets and the quota": {
		values: "{networkPolicy: {enabled: false}, apiserver: {podDisruptionBudget: {enabled: false}}, controller: {podDisruptionBudget: {enabled: false}}, quota: {enabled: false}}",
		wants: []want{
			absent("NetworkPolicy/jobset-apiserver"), absent("NetworkPolicy/jobset-controller-manager"), absent("PodDisruptionBudget/jobset-apiserver"),
			absent("PodDisruptionBudget/jobset-controller-manager"), absent("ResourceQuota/jobset-critical-pods"),
		},
	},
	"budgets and the quota": {values: "{apiserver: {podDisruptionBudget: {maxUnavailable: 2}}, controller: {podDisruptionBudget: {maxUnavailable: 3}}, quota: {pods: 7}}", wants: []want{
		{"PodDisruptionBudget/jobset-apiserver", "spec.maxUnavailable", "2"}, {"PodDisruptionBudget/jobset-controller-manager", "spec.maxUnavailable", "3"},
		{"ResourceQuota/jobset-critical-pods", "spec.hard.pods", "7"},
	}},
	"where the server runs": {
		values: "apiserver: {nodeSelector: {a: b}, tolerations: [{operator: Exists}], affinity: {nodeAffinity: {}}, priorityClassName: '', topologySpreadConstraints: [{maxSkew: 2}], podLabels: {team: x}, podAnnotations: {note: z}}",
		wants: []want{
			{server, pod + "nodeSelector", `{"a":"b"}`}, {server, pod + "tolerations", `[{"operator":"Exists"}]`}, {server, pod + "affinity", `{"nodeAffinity":{}}`},
			{server, pod + "priorityClassName", "none"}, {server, pod + "topologySpreadConstraints", `[{"maxSkew":2}]`}, {server, "spec.template.metadata.labels.team", "x"},
			{server, "spec.template.metadata.annotations.note", "z"}, {server, "spec.selector.matchLabels.team", "none"}, {controller, pod + "nodeSelector", "none"},
		},
	},
	"where the controller runs": {
		values: "controller: {nodeSelector: {a: b}, tolerations: [{operator: Exists}], affinity: {nodeAffinity: {}}, priorityClassName: p, topologySpreadConstraints: [{maxSkew: 2}], podLabels: {team: x}, podAnnotations: {note: z}}",
		wants: []want{
			{controller, pod + "nodeSelector", `{"a":"b"}`}, {controller, pod + "tolerations", `[{"operator":"Exists"}]`}, {controller, pod + "affinity", `{"nodeAffinity":{}}`},
			{controller, pod + "priorityClassName", "p"}, {controller, pod + "topologySpreadConstraints", `[{"maxSkew":2}]`}, {controller, "spec.template.metadata.labels.team", "x"},
			{controller, "spec.template.metadata.annotations.note", "z"}, {server, pod + "nodeSelector", "none"},
		},
	},
	"no spread": {values: "{store: {type: external}, apiserver: {topologySpreadConstraints: []}, controller: {topologySpreadConstraints: []}}", wants: []want{
		{replicated, pod + "topologySpreadConstraints", "none"}, {controller, pod + "topologySpreadConstraints", "none"},
	}},
	"monitoring": {values: "monitoring: {serviceMonitors: true, rules: true, dashboards: true, labels: {release: prometheus}}", wants: []want{
		{"ServiceMonitor/jobset-apiserver", "metadata.labels.release", "prometheus"}, {"ServiceMonitor/jobset-controller", "metadata.labels.release", "prometheus"},
		{"PrometheusRule/jobset", "metadata.labels.release", "prometheus"}, {"ConfigMap/jobset-dashboard-overview", "metadata.labels.release", "none"},
	}},
	"only rules": {values: "monitoring: {rules: true}", wants: []want{
		present("PrometheusRule/jobset"), absent("ServiceMonitor/jobset-apiserver"), absent("Secret/jobset-metrics-reader-token"), absent("ConfigMap/jobset-dashboard-overview"),
	}},
}

// TestValues checks what single values change.
func TestValues(t *testing.T) { checkValues(t, rendered) }

func checkValues(t *testing.T, tests map[string]valuesTest) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := release{values: test.values, namespace: test.namespace}.objects(t)
			for _, w := range test.wants {
				o, found := got[w.object]
				switch {
				case w.path == "" && found != (w.value == "present"):
					t.Errorf("%s must be %s", w.object, w.value)
				case w.path != "" && !found:
					t.Errorf("%s is absent", w.object)
				case w.path != "" && at(o, w.path) != w.value:
					t.Errorf("%s: %s is %s, must be %s", w.object, w.path, at(o, w.path), w.value)
				}
			}
		})
	}
}

// TestCommonMetadata checks that labels and annotations are on every object.
func TestCommonMetadata(t *testing.T) {
	for _, store := range []string{"embedded", "external"} {
		values := "{commonLabels: {team: x}, commonAnnotations: {note: z}, store: {type: " + store + ", embedded: {backup: {enabled: true}}}, " +
			"tls: {mode: cert-manager}, kinds: {disaggregatedset: true}, monitoring: {serviceMonitors: true, rules: true, dashboards: true}}"
		for name, o := range (release{values: values}).objects(t) {
			if at(o, "metadata.labels.team") != "x" || at(o, "metadata.annotations.note") != "z" {
				t.Errorf("%s: labels are %s, annotations are %s", name, at(o, "metadata.labels"), at(o, "metadata.annotations"))
			}
			if at(o, "metadata.labels.helm|sh/chart") != "jobset-apiserver-0.1.0" {
				t.Errorf("%s: labels are %s", name, at(o, "metadata.labels"))
			}
		}
	}
}

// TestNotes checks what Helm prints after an installation.
func TestNotes(t *testing.T) {
	for values, want := range map[string]string{
		"{}":                                    "kubectl wait --for=condition=Available",
		"tls: {mode: secret, secretName: mine}": "put it into the Secret mine",
		"apiserver: {hostNetwork: true}":        "uses port 8443 of its nodes",
		"store: {type: external}":               "with its store in your etcd cluster",
		"apiserver: {replicas: 3}":              "with its store in three volumes of its own (alpha)",
		"image: {tag: v9}":                      "jobset-apiserver v9 is installed",
	} {
		texts, err := release{values: values}.texts(t)
		if err != nil {
			t.Fatal(err)
		}
		if notes := texts["jobset-apiserver/templates/NOTES.txt"]; !strings.Contains(notes, want) {
			t.Errorf("%s: the notes must contain %q, are:\n%s", values, want, notes)
		}
	}
}
