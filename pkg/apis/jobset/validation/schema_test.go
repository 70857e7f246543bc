// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
)

const unique = "must be unique in the list: remove or rename one of the two"

// schemaCases are the rows of docs/reference/jobset.md#schema-checks, which apply to new and to changed objects.
var schemaCases = map[string]struct {
	change func(*jobset.JobSet)
	want   []refusal
}{
	"3.2 a replicatedJob without a name": {
		change: func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[1].Name = "" },
		want:   only("spec.replicatedJobs[1].name", required, "must be set: it becomes part of the names of the Jobs"),
	},
	"3.2 a replicatedJob without a template": {
		change: func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[1].Template = batchv1.JobTemplateSpec{} },
		want:   only("spec.replicatedJobs[1].template", required, "must be set: it describes the Jobs, with their containers in spec.template.spec.containers"),
	},
	"3.2 a Job template without a pod template": {
		change: func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[1].Template.Spec.Template = corev1.PodTemplateSpec{} },
		want:   only("spec.replicatedJobs[1].template.spec.template", required, "must be set: it describes the pods, with their containers in spec.containers"),
	},
	"3.2 a pod template without containers": {
		change: func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec.Containers = nil },
		want:   only("spec.replicatedJobs[1].template.spec.template.spec.containers", required, "must list the containers of the pod"),
	},
	"3.2 an explicitly empty list of containers passes, as upstream": {
		change: func(js *jobset.JobSet) {
			js.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec.Containers = []corev1.Container{}
		},
	},
	"3.2 two replicatedJobs of one name": {
		change: func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[1].Name = "launcher" },
		want:   only("spec.replicatedJobs[1]", duplicate, unique),
	},
	"3.2 negative replicas": {
		change: func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[1].Replicas = ptr.To[int32](-1) },
		want:   only("spec.replicatedJobs[1].replicas", invalid, "must be 0 or more"),
	},
	"3.2 no replicas pass": {
		change: func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[1].Replicas = ptr.To[int32](0) },
	},
	"3.2 six dependencies": {
		change: func(js *jobset.JobSet) {
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, *js.Spec.ReplicatedJobs[1].DeepCopy())
				js.Spec.ReplicatedJobs[len(js.Spec.ReplicatedJobs)-1].Name = name
			}
			last := &js.Spec.ReplicatedJobs[len(js.Spec.ReplicatedJobs)-1]
			for _, name := range []string{"launcher", "workers", "a", "b", "c", "d"} {
				last.DependsOn = append(last.DependsOn, jobset.DependsOn{Name: name, Status: jobset.DependencyReady})
			}
		},
		want: only("spec.replicatedJobs[6].dependsOn", tooMany, "must have at most 5 items"),
	},
	"3.2 two dependencies on one replicatedJob": {
		change: func(js *jobset.JobSet) {
			js.Spec.ReplicatedJobs[1].DependsOn = []jobset.DependsOn{
				{Name: "launcher", Status: jobset.DependencyReady}, {Name: "launcher", Status: jobset.DependencyComplete},
			}
		},
		want: only("spec.replicatedJobs[1].dependsOn[1]", duplicate, unique),
	},
	"3.2 an unknown state to depend on": {
		change: func(js *jobset.JobSet) {
			js.Spec.ReplicatedJobs[1].DependsOn = []jobset.DependsOn{{Name: "launcher", Status: "Failed"}}
		},
		want: only("spec.replicatedJobs[1].dependsOn[0].status", notSupported, `supported values: "Ready", "Complete"`),
	},
	"3.2 no state to depend on": {
		change: func(js *jobset.JobSet) {
			js.Spec.ReplicatedJobs[1].DependsOn = []jobset.DependsOn{{Name: "launcher"}}
		},
		want: only("spec.replicatedJobs[1].dependsOn[0].status", required, "must be one of Ready, Complete"),
	},
	"3.2 nothing to depend on": {
		change: func(js *jobset.JobSet) {
			js.Spec.ReplicatedJobs[1].DependsOn = []jobset.DependsOn{{Status: jobset.DependencyReady}}
		},
		want: only("spec.replicatedJobs[1].dependsOn[0].name", required, "must be the name of an earlier replicatedJob"),
	},
	"3.2 a success policy without an operator": {
		change: func(js *jobset.JobSet) { js.Spec.SuccessPolicy = &jobset.SuccessPolicy{} },
		want:   only("spec.successPolicy.operator", required, "must be one of All, Any"),
	},
	"3.2 an unknown operator": {
		change: func(js *jobset.JobSet) { js.Spec.SuccessPolicy = &jobset.SuccessPolicy{Operator: "Most"} },
		want:   only("spec.successPolicy.operator", notSupported, `supported values: "All", "Any"`),
	},
	"3.2 a startup policy without an order": {
		change: func(js *jobset.JobSet) { js.Spec.StartupPolicy = &jobset.StartupPolicy{} },
		want:   only("spec.startupPolicy.startupPolicyOrder", required, "must be one of AnyOrder, InOrder"),
	},
	"3.2 an unknown order": {
		change: func(js *jobset.JobSet) { js.Spec.StartupPolicy = &jobset.StartupPolicy{StartupPolicyOrder: "Reverse"} },
		want:   only("spec.startupPolicy.startupPolicyOrder", notSupported, `supported values: "AnyOrder", "InOrder"`),
	},
	"3.2 an unknown restart strategy": {
		change: func(js *jobset.JobSet) { js.Spec.FailurePolicy = &jobset.FailurePolicy{RestartStrategy: "Never"} },
		want:   only("spec.failurePolicy.restartStrategy", notSupported, `supported values: "Recreate", "BlockingRecreate"`),
	},
	"3.2 a rule without an action": {
		change: withRules(jobset.FailurePolicyRule{Name: "r"}),
		want: only("spec.failurePolicy.rules[0].action", required,
			"must be one of FailJobSet, RestartJobSet, RestartJobSetAndIgnoreMaxRestarts"),
	},
	"3.2 a rule with an unknown action": {
		change: withRules(jobset.FailurePolicyRule{Name: "r", Action: "Cry"}),
		want: only("spec.failurePolicy.rules[0].action", notSupported,
			`supported values: "FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts"`),
	},
	"3.2 a rule without a name": {
		change: withRules(jobset.FailurePolicyRule{Action: jobset.FailJobSet}),
		want:   only("spec.failurePolicy.rules[0].name", required, "must be set: it identifies the rule in conditions"),
	},
	"3.2 a coordinator without a replicatedJob": {
		change: func(js *jobset.JobSet) { js.Spec.Coordinator = &jobset.Coordinator{} },
		want:   only("spec.coordinator.replicatedJob", required, "must be the name of a replicatedJob of this JobSet"),
	},
	"3.2 a negative time to live": {
		change: func(js *jobset.JobSet) { js.Spec.TTLSecondsAfterFinished = ptr.To[int32](-1) },
		want:   only("spec.ttlSecondsAfterFinished", invalid, "must be 0 or more; leave it out to keep the set"),
	},
	"3.2 fifty-one volume claim policies": {
		change: func(js *jobset.JobSet) {
			for range 51 {
				js.Spec.VolumeClaimPolicies = append(js.Spec.VolumeClaimPolicies, jobset.VolumeClaimPolicy{Templates: []corev1.PersistentVolumeClaim{}})
			}
		},
		want: only("spec.volumeClaimPolicies", tooMany, "must have at most 50 items"),
	},
	"3.2 fifty-one templates in a volume claim policy": {
		change: func(js *jobset.JobSet) {
			var names []string
			for i := range 51 {
				names = append(names, string(rune('a'+i%26))+string(rune('a'+i/26)))
			}
			withClaims(names...)(js)
		},
		want: only("spec.volumeClaimPolicies[0].templates", tooMany, "must have at most 50 items"),
	},
	"3.2 an unknown retention": {
		change: func(js *jobset.JobSet) {
			withClaims("data")(js)
			js.Spec.VolumeClaimPolicies[0].RetentionPolicy = &jobset.VolumeRetentionPolicy{WhenDeleted: ptr.To(jobset.RetentionPolicyType("Shred"))}
		},
		want: only("spec.volumeClaimPolicies[0].retentionPolicy.whenDeleted", notSupported, `supported values: "Delete", "Retain"`),
	},
	"3.2 InOrder together with dependsOn": {
		change: func(js *jobset.JobSet) {
			js.Spec.StartupPolicy.StartupPolicyOrder = jobset.InOrder
			js.Spec.ReplicatedJobs[1].DependsOn = []jobset.DependsOn{{Name: "launcher", Status: jobset.DependencyReady}}
		},
		want: only("spec", invalid, "StartupPolicy and DependsOn APIs are mutually exclusive: set startupPolicyOrder to AnyOrder, or remove dependsOn"),
	},
	"3.2 InOrder together with an empty dependsOn": {
		change: func(js *jobset.JobSet) {
			js.Spec.StartupPolicy.StartupPolicyOrder = jobset.InOrder
			js.Spec.ReplicatedJobs[1].DependsOn = []jobset.DependsOn{}
		},
		want: only("spec", invalid, "StartupPolicy and DependsOn APIs are mutually exclusive: set startupPolicyOrder to AnyOrder, or remove dependsOn"),
	},
	"3.2 AnyOrder together with dependsOn passes": {
		change: func(js *jobset.JobSet) {
			js.Spec.ReplicatedJobs[1].DependsOn = []jobset.DependsOn{{Name: "launcher", Status: jobset.DependencyReady}}
		},
	},
	"3.2 InOrder without replicatedJobs passes, unlike upstream": {
		change: func(js *jobset.JobSet) {
			js.Spec.StartupPolicy.StartupPolicyOrder = jobset.InOrder
			js.Spec.ReplicatedJobs = nil
		},
	},
	"3.2 a claim template with a namespace": {
		change: func(js *jobset.JobSet) {
			withClaims("data")(js)
			js.Spec.VolumeClaimPolicies[0].Templates[0].Namespace = "other"
		},
		want: only("spec.volumeClaimPolicies[0]", invalid,
			"namespace cannot be set for VolumeClaimPolicies templates: leave it out; claims are created in the namespace of the JobSet"),
	},
	"3.2 a volume claim policy without templates": {
		change: func(js *jobset.JobSet) {
			js.Spec.VolumeClaimPolicies = []jobset.VolumeClaimPolicy{{RetentionPolicy: &jobset.VolumeRetentionPolicy{}}}
		},
		want: only("spec.volumeClaimPolicies[0].templates", required, "must list the claims to create"),
	},
}

// withRules sets a failure policy with these rules.
func withRules(rules ...jobset.FailurePolicyRule) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		js.Spec.FailurePolicy = &jobset.FailurePolicy{RestartStrategy: jobset.RestartStrategyRecreate, Rules: rules}
	}
}

// withClaims adds a volume claim policy with templates of these names, which the workers mount.
func withClaims(names ...string) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		policy := jobset.VolumeClaimPolicy{}
		container := &js.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec.Containers[0]
		for _, name := range names {
			policy.Templates = append(policy.Templates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
		}
		js.Spec.VolumeClaimPolicies = append(js.Spec.VolumeClaimPolicies, policy)
	}
}

func TestSchemaOnCreate(t *testing.T) {
	for name, tc := range schemaCases {
		t.Run(name, func(t *testing.T) {
			js := train(tc.change)
			if diff := cmp.Diff(tc.want, refusals(validation.ValidateJobSetCreate(js, gates.Gates{}))); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

// An update must bring in no error of the schema, whatever it is refused for besides.
func TestSchemaOnUpdate(t *testing.T) {
	for name, tc := range schemaCases {
		if tc.want == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			got := refusals(validation.ValidateJobSetUpdate(train(tc.change), train(), gates.Gates{}))
			for _, want := range tc.want {
				if !contains(got, want) {
					t.Errorf("refusals lack %+v:\n%+v", want, got)
				}
			}
		})
	}
}

func contains(list []refusal, want refusal) bool {
	for _, r := range list {
		if r == want {
			return true
		}
	}
	return false
}

func TestValidSetsPass(t *testing.T) {
	cases := map[string]*jobset.JobSet{
		"a launcher with workers": train(),
		"no replicatedJobs":       train(func(js *jobset.JobSet) { js.Spec.ReplicatedJobs = nil }),
		"an empty spec":           train(func(js *jobset.JobSet) { js.Spec = jobset.JobSetSpec{} }),
		"a dotted name without replicatedJobs": train(func(js *jobset.JobSet) {
			js.Name, js.Spec.ReplicatedJobs = "0.train", nil
		}),
		"every section": train(withClaims("data", "logs"), withRules(jobset.FailurePolicyRule{
			Name: "a1_,:z", Action: jobset.FailJobSet,
			OnJobFailureReasons:         []string{"BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy"},
			OnJobFailureMessagePatterns: []string{"exit code (1|2)$"},
			TargetReplicatedJobs:        []string{"workers", "workers"},
		}), func(js *jobset.JobSet) {
			js.Spec.Coordinator = &jobset.Coordinator{ReplicatedJob: "workers", JobIndex: 1, PodIndex: 3}
			js.Spec.Network.Subdomain = "mesh"
			js.Spec.ManagedBy = ptr.To("acme.io/controller")
			js.Spec.SuccessPolicy = &jobset.SuccessPolicy{Operator: jobset.OperatorAny, TargetReplicatedJobs: []string{"workers", "workers"}}
			js.Spec.TTLSecondsAfterFinished = ptr.To[int32](0)
			js.Spec.FailurePolicy.MaxRestarts = -1
			js.Spec.VolumeClaimPolicies[0].RetentionPolicy = &jobset.VolumeRetentionPolicy{WhenDeleted: ptr.To(jobset.RetentionPolicyRetain)}
		}),
	}
	for name, js := range cases {
		t.Run(name, func(t *testing.T) {
			if errs := validation.ValidateJobSetCreate(js, gates.Gates{}); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
			if errs := validation.ValidateJobSetUpdate(js, js.DeepCopy(), gates.Gates{}); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
		})
	}
}
