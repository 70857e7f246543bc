// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// refusedWith is a set without Jobs, with what the API says.
func refusedWith(reason, message string) *Evidence {
	return healthy(without, warns("JobSet", "uid-train", reason, message))
}

// podless is a set whose Jobs have no pods, with what the API says.
func podless(message string) *Evidence {
	return healthy(func(e *Evidence) {
		notReadyYet(e)
		e.Pods = nil
	}, warns("Job", "uid-train-workers-0", "FailedCreate", message))
}

func creationCases() map[string]diagnosisCase {
	return map[string]diagnosisCase{
		"the API refuses the template": {
			evidence: refusedWith("JobCreationFailed", `job "train-workers-0" creation failed with error: Job.batch "train-workers-0" is invalid: spec.template.spec.containers[0].image: Required value`),
			want:     JobTemplateRefused, words: []string{"spec.replicatedJobs[0].template.spec.template.spec.containers[0].image: Required value", "replicatedJob workers"},
		},
		"a quota refuses the Jobs": {
			evidence: healthy(without, func(e *Evidence) {
				e.Quotas = []corev1.ResourceQuota{{ObjectMeta: metav1.ObjectMeta{Name: "tight"}, Status: corev1.ResourceQuotaStatus{
					Hard: corev1.ResourceList{"count/jobs.batch": resource.MustParse("1")}, Used: corev1.ResourceList{"count/jobs.batch": resource.MustParse("1")},
				}}}
			}, warns("JobSet", "uid-train", "JobCreationFailed", `jobs.batch "train-workers-0" is forbidden: exceeded quota: tight, requested: count/jobs.batch=1, used: count/jobs.batch=1, limited: count/jobs.batch=1`)),
			want: JobRefusedByQuota, words: []string{"quota tight", "requested: count/jobs.batch=1"},
		},
		"another party deletes a Job": {
			evidence: refusedWith("JobCreationFailed", `job "train-workers-0" creation failed with error: job train-workers-0 was deleted 3 times within a minute, each time after the controller had created it; the API does not say who deletes it, the audit log does; the controller creates it again at 2026-01-01T00:01:03Z`),
			want:     ChildUndoneByOther, words: []string{"job train-workers-0 was deleted 3 times within a minute", "the audit log does"},
		},
		"another party removes labels of a Job": {
			evidence: refusedWith("JobCreationFailed", `job "train-workers-0" creation failed with error: kyverno removed or changed the label x/y of job train-workers-0 3 times within a minute, each time after the controller had set it`),
			want:     ChildUndoneByOther, words: []string{"kyverno removed or changed the label x/y of job train-workers-0 3 times within a minute"},
		},
		"a webhook refuses the Jobs": {
			evidence: refusedWith("JobCreationFailed", `admission webhook "policy.example.com" denied the request: ask first`),
			want:     JobRefusedByWebhook, words: []string{"webhook policy.example.com: ask first"},
		},
		"a webhook does not answer": {
			evidence: refusedWith("JobCreationFailed", `Internal error occurred: failed calling webhook "mjob.kb.io": failed to call webhook: connection refused`),
			want:     JobRefusedByWebhook, words: []string{"webhook mjob.kb.io, which could not be called"},
		},
		"the API does not answer": {
			evidence: refusedWith("JobCreationFailed", `job "train-workers-0" creation failed with error: the server is currently unable to handle the request (post jobs.batch)`),
			want:     RequestFailed, words: []string{"the controller could not create the job, and tries again: "},
		},
		"a policy refuses the Jobs": {
			evidence: refusedWith("JobCreationFailed", `jobs.batch "x" is forbidden: ValidatingAdmissionPolicy 'no-fridays' with binding 'b' denied request: not today`),
			want:     JobRefusedByPolicy, words: []string{"policy no-fridays: not today"},
		},
		"the controller may not create Jobs": {
			evidence: refusedWith("JobCreationFailed", `jobs.batch is forbidden: User "system:serviceaccount:a:b" cannot create resource "jobs" in API group "batch"`),
			want:     JobCreationFailed, words: []string{"user system:serviceaccount:a:b cannot create resource"},
		},
		"the Service is refused, so that there are no Jobs": {
			evidence: healthy(without, func(e *Evidence) { e.Services["train"] = nil },
				warns("JobSet", "uid-train", "HeadlessServiceCreationFailed", `services "train" is forbidden: exceeded quota: tight, requested: services=1`)),
			want: JobRefusedByQuota, words: []string{"refuses the service"},
		},
		"a refusal that was overcome is no cause": {
			evidence: healthy(warns("JobSet", "uid-train", "JobCreationFailed", "something")), want: Running,
		},
		"the name of a Job is taken": {
			evidence: healthy(without, has(jobsetv1alpha2.ChildNameConflict, "JobNameTaken", "a job named train-workers-0 already exists and does not belong to the jobset"), func(e *Evidence) {
				foreign := childJob(e.JobSet, 0)
				foreign.OwnerReferences = []metav1.OwnerReference{{Kind: "CronJob", Name: "nightly"}}
				e.TakenJobs["train-workers-0"] = foreign
			}),
			want: JobNameTaken, words: []string{"train-workers-0", "belongs to CronJob nightly"},
		},
		"somebody else suspended a Job": {
			evidence: healthy(func(e *Evidence) {
				notReadyYet(e)
				e.Jobs[1].Spec.Suspend, e.Jobs[1].Annotations = ptr.To(true), map[string]string{jobsetv1alpha2.ReleasedKey: "1"}
			}),
			want: JobSuspendedByOther, words: []string{"train-workers-1"},
		},
		"pod security refuses the pods": {
			evidence: podless(`Error creating: pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true`),
			want:     PodsRefusedBySecurity, words: []string{`"restricted:latest": runAsNonRoot`},
		},
		"a quota refuses the pods": {
			evidence: podless(`Error creating: pods "x" is forbidden: failed quota: tight: must specify limits.cpu for: main`),
			want:     PodsRefusedByQuota, words: []string{"quota tight: must specify limits.cpu"},
		},
		"a webhook refuses the pods": {
			evidence: podless(`Error creating: admission webhook "w.example.com" denied the request: no`), want: PodsRefusedByWebhook,
		},
		"the service account is missing": {
			evidence: podless(`Error creating: pods "x" is forbidden: error looking up service account team/t: serviceaccount "t" not found`),
			want:     PodCreationFailed, words: []string{`serviceaccount "t" not found`},
		},
	}
}

func TestReadRefusal(t *testing.T) {
	for name, tc := range map[string]struct {
		message string
		want    refusal
	}{
		"one invalid field":       {`Job.batch "a" is invalid: spec.x: Invalid value: "1": must be 2`, refusal{refusedInvalid, `spec.x: Invalid value: "1": must be 2`}},
		"several invalid fields":  {`Job.batch "a" is invalid: [spec.x: Required value, spec.y: Required value]`, refusal{refusedInvalid, `spec.x: Required value, spec.y: Required value`}},
		"a webhook without words": {`admission webhook "w" denied the request`, refusal{refusedWebhook, "webhook w"}},
		"a quota that is not counted": {`jobs.batch "a" is forbidden: status unknown for quota: q, resources: count/jobs.batch`, refusal{
			refusedQuota, "quota q, whose use kube-controller-manager has not counted yet, which takes up to 5 minutes after the kind is installed: resources: count/jobs.batch",
		}},
		"anything else": {"the\nnetwork  is down", refusal{refusedOther, "the network is down"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, readRefusal(tc.message), cmp.AllowUnexported(refusal{})); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
		})
	}
}

// Scheduling.

func noNode(message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.NodeName, pod.Status.Phase = "", corev1.PodPending
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message, LastTransitionTime: before(time.Minute)},
			{Type: corev1.PodReady, Status: corev1.ConditionFalse},
		}
	}
}

func selects(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"pool": "gpu"} }

func candidates(nodes ...corev1.Node) func(*Evidence) {
	return func(e *Evidence) { e.Candidates, e.CandidatesRead = nodes, true }
}

func scheduleCases() map[string]diagnosisCase {
	tainted := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "dedicated", Value: "vision", Effect: corev1.TaintEffectNoSchedule}}}}
	const mixed = "0/20 nodes are available: 1 node(s) had untolerated taint(s), 19 node(s) didn't match Pod's node affinity/selector. preemption: 0/20 nodes are available: 20 Preemption is not helpful for scheduling."
	return map[string]diagnosisCase{
		"no node has room": {
			evidence: healthy(pods(noNode("0/20 nodes are available: 20 Insufficient cpu. no new claims to deallocate, preemption: 0/20 nodes are available."))),
			want:     UnschedulableResources, words: []string{"2 pods", "20 nodes: Insufficient cpu"},
		},
		"the nodes that pass most checks decide": {
			evidence: healthy(pods(noNode("0/20 nodes are available: 1 Insufficient memory, 19 node(s) had untolerated taint {a: b}."))),
			want:     UnschedulableResources, words: []string{"1 node: Insufficient memory"},
		},
		"the nodes of the selector have a taint": {
			evidence: healthy(pods(func(pod *corev1.Pod) { noNode(mixed)(pod); selects(pod) }), candidates(tainted)),
			want:     UnschedulableTaint, words: []string{`"dedicated=vision:NoSchedule" of node gpu-1`, "1 node fits"},
		},
		"no node has the labels, whatever taints others have": {
			evidence: healthy(pods(func(pod *corev1.Pod) { noNode(mixed)(pod); selects(pod) }), candidates()),
			want:     UnschedulableAffinity, words: []string{"19 nodes"},
		},
		"a claim is not bound": {
			evidence: healthy(pods(func(pod *corev1.Pod) {
				noNode("0/20 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found")(pod)
				pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-train"}}}}
			}), func(e *Evidence) {
				e.Claims["data-train"] = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "uid-claim"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
			}, warns("PersistentVolumeClaim", "uid-claim", "ProvisioningFailed", "no such class")),
			want: UnboundClaim, words: []string{"data-train"},
		},
		"a claim does not exist": {
			evidence: healthy(pods(func(pod *corev1.Pod) {
				noNode(`0/20 nodes are available: persistentvolumeclaim "data-train" not found.`)(pod)
				pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-train"}}}}
			}), func(e *Evidence) { e.Claims["data-train"] = nil }),
			want: UnboundClaim, words: []string{"the volume claim data-train, which does not exist"},
		},
		"a gate holds the pods": {
			evidence: healthy(pods(func(pod *corev1.Pod) {
				noNode("")(pod)
				pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/license"}}
			})),
			want: SchedulingGate, words: []string{"example.com/license"},
		},
		"the message says nothing that is known": {
			evidence: healthy(pods(noNode("running PreFilter plugin: oops"))), want: Unschedulable, words: []string{"oops"},
		},
		"the scheduler does not look at the pods": {
			evidence: healthy(pods(func(pod *corev1.Pod) { noNode("")(pod); pod.Status.Conditions = pod.Status.Conditions[1:] })),
			want:     SchedulerSilent, words: []string{"scheduler default-scheduler"},
		},
		"the group of the pods is not scheduled": {
			evidence: healthy(notReadyYet, func(e *Evidence) {
				e.PodGroups = unstructuredMap("train", kueueObject("PodGroup", "train", nil, kueueCondition("PodGroupInitiallyScheduled", "False", "needs 4 pods")))
			}),
			want: PodGroupWaits, words: []string{"pod group train", "needs 4 pods"},
		},
		"the gang of the pods is not complete": {
			evidence: healthy(pods(func(pod *corev1.Pod) { noNode("")(pod); pod.Status.Conditions = pod.Status.Conditions[1:] }), inGang(3)),
			want:     PodGroupWaits, words: []string{"2 pods wait for the pod group train", "only while 3 of its pods exist that have not ended, and there are 2"},
		},
		"a pod is replaced after another one of its gang has succeeded": {
			evidence: healthy(pods(func(pod *corev1.Pod) { noNode("")(pod); pod.Status.Conditions = pod.Status.Conditions[1:] }), inGang(2), func(e *Evidence) {
				e.Pods[0].Status.Phase = corev1.PodSucceeded
			}),
			want: PodGroupWaits, words: []string{"1 pod waits for the pod group train", "only while 2 of its pods exist that have not ended, and there are 1"},
		},
		"the scheduler does not look at a gang that is complete": {
			evidence: healthy(pods(func(pod *corev1.Pod) { noNode("")(pod); pod.Status.Conditions = pod.Status.Conditions[1:] }), inGang(2)),
			want:     SchedulerSilent, words: []string{"scheduler default-scheduler"},
		},
	}
}

// inGang puts all pods into a gang of a size.
func inGang(size int64) func(*Evidence) {
	return func(e *Evidence) {
		for _, pod := range e.Pods {
			pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("train")}
		}
		policy := map[string]any{"gang": map[string]any{"minCount": size}}
		e.PodGroups = unstructuredMap("train", kueueObject("PodGroup", "train", map[string]any{"schedulingPolicy": policy}, kueueCondition("PodGroupScheduled", "True", "")))
	}
}

func TestSchedulerReasons(t *testing.T) {
	got := schedulerReasons("0/5 nodes are available: 1 node(s) had untolerated taint {a: b, c}, 2 Insufficient cpu, 2 node(s) were unschedulable. preemption: 0/5 nodes are available: 5 No preemption victims found.")
	want := []schedulerReason{
		{1, "node(s) had untolerated taint {a: b, c}", UnschedulableTaint, 1}, {2, "Insufficient cpu", UnschedulableResources, 4}, {2, "node(s) were unschedulable", UnschedulableTaint, 1},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(schedulerReason{})); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

func TestFitsNode(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"pool": "gpu", "size": "8"}}}
	affinity := func(r ...corev1.NodeSelectorRequirement) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{}, {MatchExpressions: r}},
			}}}
		}
	}
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"a pod that asks for nothing fits":       {func(*corev1.Pod) {}, true},
		"the label of the selector is there":     {selects, true},
		"the selector has another value":         {func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "cpu"} }, false},
		"an expression holds":                    {affinity(corev1.NodeSelectorRequirement{Key: "size", Operator: corev1.NodeSelectorOpGt, Values: []string{"4"}}), true},
		"one of two expressions does not hold":   {affinity(corev1.NodeSelectorRequirement{Key: "size", Operator: corev1.NodeSelectorOpExists}, corev1.NodeSelectorRequirement{Key: "pool", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"gpu"}}), false},
		"terms that ask for nothing fit no node": {affinity(), false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			tc.change(pod)
			if got := fitsNode(pod, node); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestTolerated(t *testing.T) {
	taint := &corev1.Taint{Key: "a", Value: "b", Effect: corev1.TaintEffectNoSchedule}
	for name, tc := range map[string]struct {
		toleration corev1.Toleration
		want       bool
	}{
		"everything":          {corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		"the key":             {corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists}, true},
		"the value":           {corev1.Toleration{Key: "a", Value: "b"}, true},
		"another value":       {corev1.Toleration{Key: "a", Value: "c"}, false},
		"another key":         {corev1.Toleration{Key: "b", Operator: corev1.TolerationOpExists}, false},
		"another effect only": {corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tolerated(&corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{tc.toleration}}}, taint); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
