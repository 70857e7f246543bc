// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/install"
	v1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

const leaderPod = "{spec: {containers: [{name: a}]}}"

// TestDefaults has a case for each row of docs/reference/leaderworkerset.md#defaults.
func TestLeaderWorkerSetDefaults(t *testing.T) {
	all := map[string]string{
		"replicas": "1", "size": "1", "restartPolicy": "RecreateGroupOnPodRestart", "startupPolicy": "LeaderCreated",
		"rolloutStrategy": "{type: RollingUpdate, rollingUpdateConfiguration: {partition: 0, maxUnavailable: 1, maxSurge: 0}}",
		"networkConfig":   "{subdomainPolicy: Shared}",
	}
	text := func(fields map[string]string, more string) string {
		return "{replicas: " + fields["replicas"] + ", startupPolicy: " + fields["startupPolicy"] + ", rolloutStrategy: " + fields["rolloutStrategy"] +
			", networkConfig: " + fields["networkConfig"] + ", leaderWorkerTemplate: {size: " + fields["size"] + ", restartPolicy: " + fields["restartPolicy"] +
			", workerTemplate: " + leaderPod + more + "}}"
	}
	with := func(key, value string) map[string]string {
		out := map[string]string{}
		for k, v := range all {
			out[k] = v
		}
		out[key] = value
		return out
	}
	rollout := func(parameters string) map[string]string {
		return with("rolloutStrategy", "{type: RollingUpdate, rollingUpdateConfiguration: {"+parameters+"}}")
	}
	for name, tc := range map[string]struct{ given, want string }{
		"a template alone":       {"{leaderWorkerTemplate: {workerTemplate: " + leaderPod + "}}", text(all, "")},
		"null is absent":         {"{replicas: null, rolloutStrategy: null, networkConfig: null, leaderWorkerTemplate: {size: null, restartPolicy: null, workerTemplate: " + leaderPod + "}}", text(all, "")},
		"empty texts are absent": {`{startupPolicy: "", rolloutStrategy: {type: ""}, leaderWorkerTemplate: {restartPolicy: "", workerTemplate: ` + leaderPod + `}}`, text(all, "")},
		"an empty networkConfig": {"{networkConfig: {}, leaderWorkerTemplate: {workerTemplate: " + leaderPod + "}}", text(all, "")},
		"a null configuration":   {"{rolloutStrategy: {rollingUpdateConfiguration: null}, leaderWorkerTemplate: {workerTemplate: " + leaderPod + "}}", text(all, "")},
		"an empty configuration": {"{rolloutStrategy: {rollingUpdateConfiguration: {}}, leaderWorkerTemplate: {workerTemplate: " + leaderPod + "}}", text(all, "")},
		"maxSurge alone": {
			"{rolloutStrategy: {rollingUpdateConfiguration: {maxSurge: 2}}, leaderWorkerTemplate: {workerTemplate: " + leaderPod + "}}",
			text(rollout("partition: 0, maxUnavailable: 1, maxSurge: 2"), ""),
		},
		"an explicit 0 stays": {
			"{rolloutStrategy: {rollingUpdateConfiguration: {maxUnavailable: 0, maxSurge: 2}}, leaderWorkerTemplate: {workerTemplate: " + leaderPod + "}}",
			text(rollout("partition: 0, maxUnavailable: 0, maxSurge: 2"), ""),
		},
		"an unknown strategy gets no configuration": {
			"{rolloutStrategy: {type: OnDelete}, leaderWorkerTemplate: {workerTemplate: " + leaderPod + "}}", text(with("rolloutStrategy", "{type: OnDelete}"), ""),
		},
		"subGroupPolicyType": {
			"{leaderWorkerTemplate: {subGroupPolicy: {subGroupSize: 2}, workerTemplate: " + leaderPod + "}}",
			text(all, ", subGroupPolicy: {subGroupSize: 2, subGroupPolicyType: LeaderWorker}"),
		},
		"0 replicas stay": {"{replicas: 0, leaderWorkerTemplate: {workerTemplate: " + leaderPod + "}}", text(with("replicas", "0"), "")},
		"Default is rewritten on admission only": {
			"{leaderWorkerTemplate: {restartPolicy: Default, workerTemplate: " + leaderPod + "}}", text(with("restartPolicy", "Default"), ""),
		},
	} {
		t.Run(name, func(t *testing.T) { checkLeaderWorkerSetDefaults(t, tc.given, tc.want) })
	}
}

func checkLeaderWorkerSetDefaults(t *testing.T, given, want string) {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	got, expected := &v1.LeaderWorkerSet{}, &v1.LeaderWorkerSet{}
	if err := yaml.UnmarshalStrict([]byte(given), &got.Spec); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(want), &expected.Spec); err != nil {
		t.Fatal(err)
	}
	scheme.Default(got)
	if diff := cmp.Diff(expected.Spec, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	again := got.DeepCopy()
	scheme.Default(again)
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("defaults of defaults (-want +got):\n%s", diff)
	}
}

func TestDefaultsOfBackoff(t *testing.T) {
	for given, want := range map[string]string{
		"{}": "10 300", "{baseSeconds: 400}": "400 400", "{baseSeconds: 20}": "20 300", "{maxSeconds: 40}": "10 40",
	} {
		backoff := &v1.GroupRestartBackoff{}
		if err := yaml.UnmarshalStrict([]byte(given), backoff); err != nil {
			t.Fatal(err)
		}
		v1.SetDefaults_GroupRestartBackoff(backoff)
		base, longest, _ := strings.Cut(want, " ")
		text, err := json.Marshal(backoff)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(`{"baseSeconds":`+base+`,"maxSeconds":`+longest+`}`, string(text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", given, diff)
		}
	}
}

// TestDefaultsOfTemplates has a case for each default of the published schema of pods. All of them are in each list of containers.
func TestDefaultsOfTemplates(t *testing.T) {
	container := func(fields string) string {
		list := "[{name: a, " + fields + "}]"
		return "{containers: " + list + ", initContainers: " + list + ", ephemeralContainers: " + list + "}"
	}
	volume := func(source string) string { return "{containers: [{name: a}], volumes: [{name: v, " + source + "}]}" }
	for name, tc := range map[string]struct{ given, want string }{
		"ports": {
			container("ports: [{containerPort: 1}, {containerPort: 2, protocol: UDP}]"),
			container("ports: [{containerPort: 1, protocol: TCP}, {containerPort: 2, protocol: UDP}]"),
		},
		"keys of files": {
			container("env: [{name: a, valueFrom: {fileKeyRef: {volumeName: v, path: p, key: k}}}, {name: b, valueFrom: {configMapKeyRef: {key: k}}}]"),
			container("env: [{name: a, valueFrom: {fileKeyRef: {volumeName: v, path: p, key: k, optional: false}}}, {name: b, valueFrom: {configMapKeyRef: {key: k}}}]"),
		},
		"probes": {
			container("livenessProbe: {grpc: {port: 1}}, readinessProbe: {grpc: {port: 1}}, startupProbe: {grpc: {port: 1}}"),
			container("livenessProbe: {grpc: {port: 1, service: ''}}, readinessProbe: {grpc: {port: 1, service: ''}}, startupProbe: {grpc: {port: 1, service: ''}}"),
		},
		"azureDisk": {
			volume("azureDisk: {diskName: d, diskURI: u}"),
			volume("azureDisk: {diskName: d, diskURI: u, fsType: ext4, readOnly: false}"),
		},
		"iscsi": {volume("iscsi: {iqn: i, lun: 0, targetPortal: t}"), volume("iscsi: {iqn: i, lun: 0, targetPortal: t, iscsiInterface: default}")},
		"rbd": {
			volume("rbd: {image: i, monitors: [m]}"),
			volume("rbd: {image: i, monitors: [m], keyring: /etc/ceph/keyring, pool: rbd, user: admin}"),
		},
		"scaleIO": {
			volume("scaleIO: {gateway: g, system: s, secretRef: {name: s}}"),
			volume("scaleIO: {gateway: g, system: s, secretRef: {name: s}, fsType: xfs, storageMode: ThinProvisioned}"),
		},
		"none of the core API": {
			"{containers: [{name: a, image: a, livenessProbe: {httpGet: {port: 1}}, env: [{name: n, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}], volumes: [{name: v, secret: {secretName: s}}, {name: h, hostPath: {path: /p}}]}",
			"{containers: [{name: a, image: a, livenessProbe: {httpGet: {port: 1}}, env: [{name: n, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}], volumes: [{name: v, secret: {secretName: s}}, {name: h, hostPath: {path: /p}}]}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := func(pod string) string {
				return "{replicas: 1, startupPolicy: LeaderCreated, networkConfig: {subdomainPolicy: Shared}, rolloutStrategy: {type: RollingUpdate, rollingUpdateConfiguration: " +
					"{partition: 0, maxUnavailable: 1, maxSurge: 0}}, leaderWorkerTemplate: {size: 1, restartPolicy: None, workerTemplate: {spec: " + pod + "}, leaderTemplate: {spec: " + pod + "}}}"
			}
			checkLeaderWorkerSetDefaults(t, set(tc.given), set(tc.want))
		})
	}
}

// TestSerializedForm has what clients read of a set with the workerTemplate alone.
func TestSerializedForm(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	set := &v1.LeaderWorkerSet{}
	const text = `{metadata: {name: a}, spec: {leaderWorkerTemplate: {workerTemplate: {spec: {containers: [{name: m, resources: {limits: {cpu: 1000m, memory: 1024Mi, a/b: 4}}}, {name: s}]}},
  volumeClaimTemplates: [{metadata: {name: v}}]}}}`
	if err := yaml.UnmarshalStrict([]byte(text), set); err != nil {
		t.Fatal(err)
	}
	scheme.Default(set)
	got, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"metadata":{"name":"a"},"spec":{"replicas":1,"leaderWorkerTemplate":{"workerTemplate":{"metadata":{},"spec":{"containers":[` +
		`{"name":"m","resources":{"limits":{"a/b":"4","cpu":"1","memory":"1Gi"}}},{"name":"s","resources":{}}]}},"size":1,"restartPolicy":"RecreateGroupOnPodRestart",` +
		`"volumeClaimTemplates":[{"metadata":{"name":"v"},"spec":{"resources":{}},"status":{}}]},` +
		`"rolloutStrategy":{"type":"RollingUpdate","rollingUpdateConfiguration":{"partition":0,"maxUnavailable":1,"maxSurge":0}},"startupPolicy":"LeaderCreated",` +
		`"networkConfig":{"subdomainPolicy":"Shared"}}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}
