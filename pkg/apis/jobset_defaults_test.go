// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/google/go-cmp/cmp"
)

// indent moves a YAML text to the right, for nesting it in another one.
func indent(text string, by int) string {
	pad := strings.Repeat(" ", by)
	return pad + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+pad)
}

// pod wraps the YAML of a pod spec into a JobSet that has all defaults of its own already.
func pod(spec string) string {
	return `
metadata: {}
spec:
  replicatedJobs:
  - name: a
    replicas: 1
    groupName: default
    template:
      metadata: {}
      spec:
        template:
          metadata: {}
          spec:
` + indent(spec, 12)
}

func TestDefaultsOfTheSchema(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"an empty set stays empty": {
			text: "{}",
			want: "{metadata: {}, spec: {}}",
		},
		"a replicatedJob gets one replica in the default group, and its Job none of the Job defaults": {
			text: "spec: {replicatedJobs: [{name: a, template: {spec: {template: {spec: {containers: [{name: c}]}}}}}]}",
			want: pod("containers: [{name: c, resources: {}}]"),
		},
		"every replicatedJob is defaulted on its own": {
			text: "spec: {replicatedJobs: [{name: a, replicas: 0, template: {spec: {template: {spec: {containers: []}}}}}, {name: b, groupName: g, template: {spec: {template: {spec: {containers: []}}}}}]}",
			want: `
metadata: {}
spec:
  replicatedJobs:
  - {name: a, groupName: default, replicas: 0, template: {metadata: {}, spec: {template: {metadata: {}, spec: {containers: []}}}}}
  - {name: b, groupName: g, replicas: 1, template: {metadata: {}, spec: {template: {metadata: {}, spec: {containers: []}}}}}
`,
		},
		"the restart strategy is defaulted only where there is a failure policy": {
			text: "spec: {failurePolicy: {maxRestarts: 3}}",
			want: "{metadata: {}, spec: {failurePolicy: {maxRestarts: 3, restartStrategy: Recreate}}}",
		},
		"another restart strategy stays": {
			text: "spec: {failurePolicy: {restartStrategy: BlockingRecreate}}",
			want: "{metadata: {}, spec: {failurePolicy: {maxRestarts: 0, restartStrategy: BlockingRecreate}}}",
		},
		"names of rules are left to the create strategy": {
			text: "spec: {failurePolicy: {rules: [{action: FailJobSet}]}}",
			want: `{metadata: {}, spec: {failurePolicy: {maxRestarts: 0, restartStrategy: Recreate, rules: [{name: "", action: FailJobSet}]}}}`,
		},
		"whenDeleted is defaulted only where there is a retention policy": {
			text: "spec: {volumeClaimPolicies: [{retentionPolicy: {}}, {}, {retentionPolicy: {whenDeleted: Retain}}]}",
			want: "{metadata: {}, spec: {volumeClaimPolicies: [{retentionPolicy: {whenDeleted: Delete}}, {}, {retentionPolicy: {whenDeleted: Retain}}]}}",
		},
		"claim templates get nothing": {
			text: "spec: {volumeClaimPolicies: [{templates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 1Gi}}}}]}]}",
			want: "{metadata: {}, spec: {volumeClaimPolicies: [{templates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 1Gi}}}, status: {}}]}]}}",
		},
		"policies that the create strategy adds are not added by the schema": {
			text: "spec: {network: {}}",
			want: "{metadata: {}, spec: {network: {}}}",
		},
		"numbers that are 0 when they are absent are shown": {
			text: "spec: {coordinator: {replicatedJob: a}, failurePolicy: {restartStrategy: Recreate}}",
			want: "{metadata: {}, spec: {coordinator: {replicatedJob: a, jobIndex: 0, podIndex: 0}, failurePolicy: {maxRestarts: 0, restartStrategy: Recreate}}}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { checkDefaults(t, tc.text, tc.want) })
	}
}

// The defaults that the core API declares in its types; the main API server repeats them for the child Jobs, with many
// more that it has in code.
func TestDefaultsOfEmbeddedCoreTypes(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"protocol of container ports": {
			text: "containers: [{name: c, resources: {}, ports: [{containerPort: 1}, {containerPort: 2, protocol: UDP}]}]",
			want: "containers: [{name: c, resources: {}, ports: [{containerPort: 1, protocol: TCP}, {containerPort: 2, protocol: UDP}]}]",
		},
		"protocol of ports of init and ephemeral containers": {
			text: `
containers: []
initContainers: [{name: c, resources: {}, ports: [{containerPort: 1}]}]
ephemeralContainers: [{name: d, resources: {}, ports: [{containerPort: 1}]}]`,
			want: `
containers: []
initContainers: [{name: c, resources: {}, ports: [{containerPort: 1, protocol: TCP}]}]
ephemeralContainers: [{name: d, resources: {}, ports: [{containerPort: 1, protocol: TCP}]}]`,
		},
		"service of gRPC probes": {
			text: `
containers:
- {name: c, resources: {}, livenessProbe: {grpc: {port: 1}}, readinessProbe: {grpc: {port: 2}}, startupProbe: {grpc: {port: 3, service: s}}}`,
			want: `
containers:
- {name: c, resources: {}, livenessProbe: {grpc: {port: 1, service: ""}}, readinessProbe: {grpc: {port: 2, service: ""}}, startupProbe: {grpc: {port: 3, service: s}}}`,
		},
		"other settings of probes stay absent": {
			text: "containers: [{name: c, resources: {}, livenessProbe: {httpGet: {port: 80}}}]",
			want: "containers: [{name: c, resources: {}, livenessProbe: {httpGet: {port: 80}}}]",
		},
		"optional of keys in files": {
			text: "containers: [{name: c, resources: {}, env: [{name: e, valueFrom: {fileKeyRef: {key: k, path: p, volumeName: v}}}]}]",
			want: "containers: [{name: c, resources: {}, env: [{name: e, valueFrom: {fileKeyRef: {key: k, path: p, volumeName: v, optional: false}}}]}]",
		},
		"volumes of iSCSI, RBD and ScaleIO": {
			text: `
containers: []
volumes:
- {name: a, iscsi: {iqn: i, lun: 1, targetPortal: t}}
- {name: b, rbd: {image: i, monitors: [m]}}
- {name: c, scaleIO: {gateway: g, system: s, secretRef: {name: x}}}`,
			want: `
containers: []
volumes:
- {name: a, iscsi: {iqn: i, lun: 1, targetPortal: t, iscsiInterface: default}}
- {name: b, rbd: {image: i, monitors: [m], keyring: /etc/ceph/keyring, pool: rbd, user: admin}}
- {name: c, scaleIO: {gateway: g, system: s, secretRef: {name: x}, fsType: xfs, storageMode: ThinProvisioned}}`,
		},
		// cachingMode and kind are beyond the schema of the CustomResourceDefinition, which cannot express defaults that
		// refer to constants. They are what the Job gets anyway.
		"volumes of Azure disks": {
			text: "{containers: [], volumes: [{name: a, azureDisk: {diskName: d, diskURI: u}}]}",
			want: "{containers: [], volumes: [{name: a, azureDisk: {diskName: d, diskURI: u, fsType: ext4, readOnly: false, cachingMode: ReadWrite, kind: Shared}}]}",
		},
		// The core API declares "" as the default of these names, which its types leave out of JSON.
		"names of references stay absent": {
			text: "{containers: [{name: c, resources: {}, envFrom: [{configMapRef: {}}]}], volumes: [{name: a, configMap: {}}], imagePullSecrets: [{}]}",
			want: "{containers: [{name: c, resources: {}, envFrom: [{configMapRef: {}}]}], volumes: [{name: a, configMap: {}}], imagePullSecrets: [{}]}",
		},
		"what only the main API server defaults stays absent": {
			text: "{containers: [{name: c, image: i, resources: {}}], volumes: [{name: a, configMap: {name: x}}]}",
			want: "{containers: [{name: c, image: i, resources: {}}], volumes: [{name: a, configMap: {name: x}}]}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { checkDefaults(t, pod(tc.text), pod(tc.want)) })
	}
}

func checkDefaults(t *testing.T, text, want string) {
	t.Helper()
	scheme, codecs := newScheme()
	object := decode(t, codecs, flat(t, text))
	again := object.DeepCopy()
	scheme.Default(again)
	if diff := cmp.Diff(object, again); diff != "" {
		t.Errorf("defaulting twice (-once +twice):\n%s", diff)
	}
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	got, wanted := map[string]any{}, map[string]any{}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "apiVersion")
	delete(got, "kind")
	if err := yaml.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatalf("in %s: %v", want, err)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("after defaulting (-want +got):\n%s", diff)
	}
}

// flat brings a YAML mapping into a form that can follow the type metadata.
func flat(t *testing.T, text string) string {
	t.Helper()
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatalf("in %s: %v", text, err)
	}
	if len(fields) == 0 {
		return ""
	}
	out, err := yaml.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
