// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
)

const (
	jobPath       = "spec.replicatedJobs[1].template.spec."
	podPath       = jobPath + "template.spec."
	containerPath = podPath + "containers[0]."
)

// templateCase changes the Job template of the workers, and lists the keys that are then missing or doubled, below prefix.
type templateCase struct {
	change  func(*batchv1.JobSpec)
	prefix  string
	missing []string
	doubled []string
}

func pod(change func(*corev1.PodSpec)) func(*batchv1.JobSpec) {
	return func(j *batchv1.JobSpec) { change(&j.Template.Spec) }
}

func container(change func(*corev1.Container)) func(*batchv1.JobSpec) {
	return func(j *batchv1.JobSpec) { change(&j.Template.Spec.Containers[0]) }
}

func runTemplates(t *testing.T, cases map[string]templateCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run("1.6 "+name, func(t *testing.T) {
			js := train(func(js *jobset.JobSet) { tc.change(&js.Spec.ReplicatedJobs[1].Template.Spec) })
			var want []refusal
			for _, key := range tc.missing {
				want = append(want, refusal{tc.prefix + key, required, "must be set"})
			}
			for _, key := range tc.doubled {
				want = append(want, refusal{tc.prefix + key, duplicate, unique})
			}
			if diff := cmp.Diff(want, refusals(validation.ValidateJobSetCreate(js, gates.Gates{}))); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

var selectorWithoutKeys = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{}}}

func TestJobTemplateKeys(t *testing.T) {
	runTemplates(t, map[string]templateCase{
		"selector expressions": {
			change: func(j *batchv1.JobSpec) { j.Selector = &selectorWithoutKeys },
			prefix: jobPath + "selector.matchExpressions[0].", missing: []string{"key", "operator"},
		},
		"Job success policy": {
			change: func(j *batchv1.JobSpec) { j.SuccessPolicy = &batchv1.SuccessPolicy{} },
			prefix: jobPath, missing: []string{"successPolicy.rules"},
		},
		"pod failure policy": {
			change: podFailurePolicy(),
			prefix: jobPath, missing: []string{"podFailurePolicy.rules"},
		},
		"pod failure policy rules": {
			change: podFailurePolicy(
				batchv1.PodFailurePolicyRule{OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{}},
				batchv1.PodFailurePolicyRule{OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{}}},
			),
			prefix:  jobPath + "podFailurePolicy.rules",
			missing: []string{"[0].action", "[0].onExitCodes.operator", "[0].onExitCodes.values", "[1].action", "[1].onPodConditions[0].type"},
		},
	})
}

func TestPodKeys(t *testing.T) {
	runTemplates(t, map[string]templateCase{
		"operating system": {
			change: pod(func(p *corev1.PodSpec) { p.OS = &corev1.PodOS{} }), prefix: podPath, missing: []string{"os.name"},
		},
		"pod resource claims": {
			change: pod(func(p *corev1.PodSpec) {
				p.Resources = &corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{}, {Name: "a"}, {Name: "a"}}}
			}),
			prefix: podPath + "resources.claims", missing: []string{"[0].name"}, doubled: []string{"[2]"},
		},
		"image pull secrets, where an empty name is a default": {
			change: pod(func(p *corev1.PodSpec) {
				p.ImagePullSecrets = []corev1.LocalObjectReference{{}, {Name: "a"}, {Name: "a"}}
			}),
			prefix: podPath, doubled: []string{"imagePullSecrets[2]"},
		},
		"host aliases": {
			change: pod(func(p *corev1.PodSpec) { p.HostAliases = []corev1.HostAlias{{}, {IP: "1.1.1.1"}, {IP: "1.1.1.1"}} }),
			prefix: podPath, missing: []string{"hostAliases[0].ip"}, doubled: []string{"hostAliases[2]"},
		},
		"readiness gates": {
			change: pod(func(p *corev1.PodSpec) { p.ReadinessGates = []corev1.PodReadinessGate{{}, {ConditionType: "a"}} }),
			prefix: podPath, missing: []string{"readinessGates[0].conditionType"},
		},
		"scheduling gates": {
			change: pod(func(p *corev1.PodSpec) { p.SchedulingGates = []corev1.PodSchedulingGate{{}, {Name: "a"}, {Name: "a"}} }),
			prefix: podPath, missing: []string{"schedulingGates[0].name"}, doubled: []string{"schedulingGates[2]"},
		},
		"resource claims of the pod": {
			change: pod(func(p *corev1.PodSpec) { p.ResourceClaims = []corev1.PodResourceClaim{{}, {Name: "a"}, {Name: "a"}} }),
			prefix: podPath, missing: []string{"resourceClaims[0].name"}, doubled: []string{"resourceClaims[2]"},
		},
		"pod security": {
			change: pod(func(p *corev1.PodSpec) {
				p.SecurityContext = &corev1.PodSecurityContext{
					SeccompProfile: &corev1.SeccompProfile{}, AppArmorProfile: &corev1.AppArmorProfile{}, Sysctls: []corev1.Sysctl{{}},
				}
			}),
			prefix: podPath + "securityContext.", missing: []string{"sysctls[0].name", "seccompProfile.type", "appArmorProfile.type"},
		},
		"spread constraints": {
			change: pod(func(p *corev1.PodSpec) {
				p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
					{LabelSelector: &selectorWithoutKeys},
					{MaxSkew: 1, TopologyKey: "a", WhenUnsatisfiable: "b"},
					{MaxSkew: 2, TopologyKey: "a", WhenUnsatisfiable: "c"},
					{MaxSkew: 2, TopologyKey: "a", WhenUnsatisfiable: "b"},
				}
			}),
			prefix:  podPath + "topologySpreadConstraints",
			missing: []string{"[0].maxSkew", "[0].topologyKey", "[0].whenUnsatisfiable", "[0].labelSelector.matchExpressions[0].key", "[0].labelSelector.matchExpressions[0].operator"},
			doubled: []string{"[3]"},
		},
		"node affinity without terms": {
			change: pod(func(p *corev1.PodSpec) {
				p.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}}
			}),
			prefix: podPath, missing: []string{"affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"},
		},
		"node affinity": {
			change: pod(func(p *corev1.PodSpec) {
				term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{}}, MatchFields: []corev1.NodeSelectorRequirement{{}}}
				p.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution:  &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}},
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Preference: term}, {Weight: 1}},
				}}
			}),
			prefix: podPath + "affinity.nodeAffinity.",
			missing: []string{
				"requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key",
				"requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator",
				"requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key",
				"requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].operator",
				"preferredDuringSchedulingIgnoredDuringExecution[0].weight",
				"preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].key",
				"preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].operator",
				"preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].key",
				"preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].operator",
			},
		},
		"pod affinity": {
			change: pod(func(p *corev1.PodSpec) {
				p.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{{LabelSelector: &selectorWithoutKeys}},
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "a", NamespaceSelector: &selectorWithoutKeys}}},
				}}
			}),
			prefix: podPath + "affinity.podAffinity.",
			missing: []string{
				"requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
				"requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchExpressions[0].key",
				"requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchExpressions[0].operator",
				"preferredDuringSchedulingIgnoredDuringExecution[0].weight",
				"preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.namespaceSelector.matchExpressions[0].key",
				"preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.namespaceSelector.matchExpressions[0].operator",
			},
		},
		"pod anti-affinity": {
			change: pod(func(p *corev1.PodSpec) {
				p.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{}},
				}}
			}),
			prefix: podPath, missing: []string{"affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey"},
		},
	})
}

func TestContainerKeys(t *testing.T) {
	common := corev1.EphemeralContainerCommon{}
	runTemplates(t, map[string]templateCase{
		"container names": {
			change: pod(func(p *corev1.PodSpec) { p.Containers = []corev1.Container{{}, {Name: "a"}, {Name: "a"}} }),
			prefix: podPath, missing: []string{"containers[0].name"}, doubled: []string{"containers[2]"},
		},
		"init container names": {
			change: pod(func(p *corev1.PodSpec) { p.InitContainers = []corev1.Container{{}, {Name: "a"}, {Name: "a"}} }),
			prefix: podPath, missing: []string{"initContainers[0].name"}, doubled: []string{"initContainers[2]"},
		},
		"ephemeral container names": {
			change: pod(func(p *corev1.PodSpec) {
				a := common
				a.Name = "a"
				p.EphemeralContainers = []corev1.EphemeralContainer{{}, {EphemeralContainerCommon: a}, {EphemeralContainerCommon: a}}
			}),
			prefix: podPath, missing: []string{"ephemeralContainers[0].name"}, doubled: []string{"ephemeralContainers[2]"},
		},
		"ports": {
			change: container(func(c *corev1.Container) {
				c.Ports = []corev1.ContainerPort{{}, {ContainerPort: 1, Protocol: "TCP"}, {ContainerPort: 1, Protocol: "UDP"}, {ContainerPort: 1, Protocol: "TCP"}}
			}),
			prefix: containerPath, missing: []string{"ports[0].containerPort"}, doubled: []string{"ports[3]"},
		},
		"environment names": {
			change: container(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{}, {Name: "a"}, {Name: "a"}} }),
			prefix: containerPath, missing: []string{"env[0].name"}, doubled: []string{"env[2]"},
		},
		"environment sources": {
			change: container(func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "a", ValueFrom: &corev1.EnvVarSource{
					FieldRef: &corev1.ObjectFieldSelector{}, ResourceFieldRef: &corev1.ResourceFieldSelector{},
					ConfigMapKeyRef: &corev1.ConfigMapKeySelector{}, SecretKeyRef: &corev1.SecretKeySelector{}, FileKeyRef: &corev1.FileKeySelector{},
				}}}
			}),
			prefix: containerPath + "env[0].valueFrom.",
			missing: []string{"fieldRef.fieldPath", "resourceFieldRef.resource", "configMapKeyRef.key", "secretKeyRef.key",
				"fileKeyRef.key", "fileKeyRef.path", "fileKeyRef.volumeName"},
		},
		"volume mounts": {
			change: container(func(c *corev1.Container) {
				c.VolumeMounts = []corev1.VolumeMount{{}, {Name: "a", MountPath: "/a"}, {Name: "b", MountPath: "/a"}}
			}),
			prefix: containerPath + "volumeMounts", missing: []string{"[0].mountPath", "[0].name"}, doubled: []string{"[2]"},
		},
		"volume devices": {
			change: container(func(c *corev1.Container) {
				c.VolumeDevices = []corev1.VolumeDevice{{}, {Name: "a", DevicePath: "/a"}, {Name: "b", DevicePath: "/a"}}
			}),
			prefix: containerPath + "volumeDevices", missing: []string{"[0].devicePath", "[0].name"}, doubled: []string{"[2]"},
		},
		"container resource claims": {
			change: container(func(c *corev1.Container) {
				c.Resources.Claims = []corev1.ResourceClaim{{}, {Name: "a"}, {Name: "a"}}
			}),
			prefix: containerPath + "resources.claims", missing: []string{"[0].name"}, doubled: []string{"[2]"},
		},
		"resize and restart rules": {
			change: container(func(c *corev1.Container) {
				c.ResizePolicy = []corev1.ContainerResizePolicy{{}}
				c.RestartPolicyRules = []corev1.ContainerRestartRule{{ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{}}}
			}),
			prefix: containerPath,
			missing: []string{"resizePolicy[0].resourceName", "resizePolicy[0].restartPolicy",
				"restartPolicyRules[0].action", "restartPolicyRules[0].exitCodes.operator"},
		},
		"probes": {
			change: container(func(c *corev1.Container) {
				c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{HTTPHeaders: []corev1.HTTPHeader{{}}}}}
				c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}}}
				c.StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{}}}
			}),
			prefix:  containerPath,
			missing: []string{"livenessProbe.httpGet.port", "livenessProbe.httpGet.httpHeaders[0].name", "readinessProbe.tcpSocket.port", "startupProbe.grpc.port"},
		},
		"lifecycle": {
			change: container(func(c *corev1.Container) {
				c.Lifecycle = &corev1.Lifecycle{
					PostStart: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{}},
					PreStop:   &corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{}, Sleep: &corev1.SleepAction{}},
				}
			}),
			prefix: containerPath + "lifecycle.", missing: []string{"postStart.httpGet.port", "preStop.tcpSocket.port"},
		},
		"container security": {
			change: container(func(c *corev1.Container) {
				c.SecurityContext = &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{}, AppArmorProfile: &corev1.AppArmorProfile{}}
			}),
			prefix: containerPath + "securityContext.", missing: []string{"seccompProfile.type", "appArmorProfile.type"},
		},
		"values that may be zero pass": {
			change: container(func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "EMPTY"}}
				c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
					Port: intstr.FromString("http"), HTTPHeaders: []corev1.HTTPHeader{{Name: "X"}},
				}}}
				c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{}}}
			}),
		},
	})
}
