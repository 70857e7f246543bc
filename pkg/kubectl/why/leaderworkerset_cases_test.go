// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// leaderWorkerSetCase is how a set differs from the running one, and what has to be found first in it.
type leaderWorkerSetCase struct {
	change      []func(*leaderWorkerSetCluster)
	want        Cause
	wantSummary string
	wantCommand string
}

// childCasesOfGroups are about what is not created.
func childCasesOfGroups() map[string]leaderWorkerSetCase {
	noChildren := func(c *leaderWorkerSetCluster) { c.pods, c.sets = nil, nil }
	return map[string]leaderWorkerSetCase{
		"the controller does not run": {[]func(*leaderWorkerSetCluster){func(c *leaderWorkerSetCluster) { c.Leases = []coordinationv1.Lease{{}} }}, ControllerNotRunning,
			"the controller of LeaderWorkerSets does not run, so nothing happens to the set", "control-plane=controller-manager"},
		"the controller has not acted": {[]func(*leaderWorkerSetCluster){noChildren, func(c *leaderWorkerSetCluster) { c.Set.Status = leaderworkersetv1.LeaderWorkerSetStatus{} }}, ControllerNotActing,
			"the controller of LeaderWorkerSets runs, but has not acted on the set", ""},
		"the StatefulSet is somebody else's": {[]func(*leaderWorkerSetCluster){noChildren, func(c *leaderWorkerSetCluster) {
			c.TakenSet = &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "vllm"}}
		}},
			StatefulSetNameTaken, "needs the name of the StatefulSet vllm, which exists and has no owner", "delete statefulset vllm"},
		"the template is invalid": {[]func(*leaderWorkerSetCluster){noChildren, eventAbout("LeaderWorkerSet", "vllm-uid", "FailedCreate",
			`Failed to create leader statefulset vllm: StatefulSet.apps "vllm" is invalid: spec.template.spec.containers[0].image: Required value`)},
			StatefulSetRefused, "the API refuses the StatefulSet vllm: spec.template.spec.containers[0].image: Required value", "edit leaderworkerset vllm"},
		"the claim templates were changed": {[]func(*leaderWorkerSetCluster){func(c *leaderWorkerSetCluster) { c.Set.Generation = 2 }, eventAbout("LeaderWorkerSet", "vllm-uid", "FailedUpdate",
			`Failed to update leader statefulset vllm: StatefulSet.apps "vllm" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden`)},
			StatefulSetRefused, "its volumeClaimTemplates are immutable", "restore spec.leaderWorkerTemplate.volumeClaimTemplates"},
		"another party deletes the StatefulSet": {[]func(*leaderWorkerSetCluster){noChildren, eventAbout("LeaderWorkerSet", "vllm-uid", "FailedCreate",
			`Failed to create leader statefulset vllm: statefulset vllm was deleted 3 times within a minute, each time after the controller had created it; the API does not say who deletes it, the audit log does; the controller creates it again at 2026-01-01T00:01:03Z`)}, ChildUndoneByOther, "statefulset vllm was deleted 3 times within a minute", "events --for leaderworkerset/vllm"},
		"another party deletes a revision": {[]func(*leaderWorkerSetCluster){noChildren, eventAbout("LeaderWorkerSet", "vllm-uid", "FailedCreate",
			`Failed to create revision vllm-1: controllerrevision vllm-1 was deleted 3 times within a minute, each time after the controller had created it; the API does not say who deletes it, the audit log does; the controller creates it again at 2026-01-01T00:01:03Z`)}, ChildUndoneByOther, "controllerrevision vllm-1 was deleted 3 times within a minute", "events --for leaderworkerset/vllm"},
		"a leader pod cannot be deleted": {[]func(*leaderWorkerSetCluster){eventAbout("LeaderWorkerSet", "vllm-uid", "FailedDelete",
			`Failed to delete leader pod vllm-1: admission webhook "w.example.com" denied the request: no`)}, StatefulSetRefused, "a webhook refuses to delete the leader pod vllm-1: webhook w.example.com: no", "events --for leaderworkerset/vllm"},
		"a status was not stored while a server was away": {[]func(*leaderWorkerSetCluster){workerWaits(withoutNode("0/3 nodes are available: 3 Insufficient cpu.")), eventAbout("LeaderWorkerSet", "vllm-uid", "FailedUpdate",
			"Failed to update the status: the server is currently unable to handle the request (put leaderworkersets.leaderworkerset.x-k8s.io vllm)")}, UnschedulableResources, "1 pod finds no node with enough room", ""},
		"a status was not stored and all groups are ready": {[]func(*leaderWorkerSetCluster){eventAbout("LeaderWorkerSet", "vllm-uid", "FailedUpdate", "Failed to update the status: etcdserver: request timed out")},
			Running, "runs: 2 of 2 groups ready", ""},
		"the workers were not created while the API was away": {[]func(*leaderWorkerSetCluster){func(c *leaderWorkerSetCluster) { c.pods, c.sets = c.pods[:3], c.sets[:2] }, eventAbout("LeaderWorkerSet", "vllm-uid", "FailedCreate",
			`Failed to create worker statefulset for leader pod vllm-1: Post "https://10.0.0.1/apis/apps/v1": dial tcp 10.0.0.1:443: connect: connection refused`)}, RequestFailed,
			"the controller could not write the StatefulSet of the workers of vllm-1, and tries again: Post", "events --for leaderworkerset/vllm"},
		"a PodGroup cannot be created": {[]func(*leaderWorkerSetCluster){lacksGroup, eventAbout("LeaderWorkerSet", "vllm-uid", "FailedCreate",
			`Failed to create podgroup vllm-1-k: podgroups.scheduling.volcano.sh is forbidden: User "controller" cannot create resource`)}, StatefulSetRefused,
			"the controller has no permission to create the podgroup vllm-1-k: user controller cannot create resource", "events --for leaderworkerset/vllm"},
		"a refusal of a deletion that is over": {[]func(*leaderWorkerSetCluster){eventAbout("LeaderWorkerSet", "vllm-uid", "FailedDelete", "Failed to delete leader pod vllm-1: no"), func(c *leaderWorkerSetCluster) {
			c.Events[0].LastTimestamp = before(10 * time.Minute)
		}}, Running, "", ""},
		"a refusal that was overcome": {[]func(*leaderWorkerSetCluster){eventAbout("LeaderWorkerSet", "vllm-uid", "FailedUpdate", "Failed to update leader statefulset vllm: no answer")},
			Running, "runs: 2 of 2 groups ready", ""},
		"a quota refuses the workers": {[]func(*leaderWorkerSetCluster){func(c *leaderWorkerSetCluster) { c.pods, c.sets = c.pods[:3], c.sets[:2] }, eventAbout("LeaderWorkerSet", "vllm-uid", "FailedCreate",
			`Failed to create worker statefulset for leader pod vllm-1: statefulsets.apps "vllm-1" is forbidden: exceeded quota: sets, requested: count/statefulsets.apps=1`)},
			StatefulSetRefused, "a quota refuses the StatefulSet of the workers of vllm-1: quota sets", "describe resourcequota"},
		"the server that completes pods is away": {[]func(*leaderWorkerSetCluster){lacksGroup, eventAbout("StatefulSet", "vllm-leaders", "FailedCreate",
			`create Pod vllm-1 in StatefulSet vllm failed error: Internal error occurred: failed calling webhook "mpod.kb.io": failed to call webhook: connection refused`)},
			PodsRefusedByWebhook, "the server of LeaderWorkerSets does not answer, and without it no pod of a set is admitted", "kubectl get apiservice v1.leaderworkerset.x-k8s.io"},
		"Kueue is away": {[]func(*leaderWorkerSetCluster){lacksGroup, eventAbout("StatefulSet", "vllm-leaders", "FailedCreate",
			`create Pod vllm-1 in StatefulSet vllm failed error: Internal error occurred: failed calling webhook "mpod.kb.io": failed to call webhook: Post "https://kueue-webhook-service.kueue-system.svc:443/mutate--v1-pod?timeout=10s": connection refused`)},
			PodsRefusedByWebhook, "Kueue does not answer, and without its webhook no pod that it may manage is admitted", "kubectl get pods -A -l app.kubernetes.io/name=kueue"},
		"another webhook refuses the pods": {[]func(*leaderWorkerSetCluster){lacksGroup, eventAbout("StatefulSet", "vllm-leaders", "FailedCreate", `admission webhook "w.example.com" denied the request: no`)},
			PodsRefusedByWebhook, "a webhook refuses the pods: webhook w.example.com: no", "describe statefulset vllm"},
		"a quota refuses the pods": {[]func(*leaderWorkerSetCluster){func(c *leaderWorkerSetCluster) { c.pods = c.pods[:3] }, eventAbout("StatefulSet", "vllm-1-pod-workers", "FailedCreate",
			`create Pod vllm-1-1 in StatefulSet vllm-1 failed error: pods "vllm-1-1" is forbidden: exceeded quota: pods, requested: pods=1`)}, PodsRefusedByQuota, "a quota refuses the pods: quota pods", ""},
		"a quota refuses the claims of the pods": {[]func(*leaderWorkerSetCluster){lacksGroup, eventAbout("StatefulSet", "vllm-leaders", "FailedCreate",
			`create Claim data-vllm-1 for Pod vllm-1 in StatefulSet vllm failed error: persistentvolumeclaims "data-vllm-1" is forbidden: exceeded quota: disks, requested: persistentvolumeclaims=1`)},
			PodsRefusedByQuota, "a quota refuses the volume claims of the pods: quota disks", "describe resourcequota"},
		"a claim of a pod is invalid": {[]func(*leaderWorkerSetCluster){lacksGroup, eventAbout("StatefulSet", "vllm-leaders", "FailedCreate",
			`create Pod vllm-1 in StatefulSet vllm failed error: failed to create PVC data-vllm-1: PersistentVolumeClaim "data-vllm-1" is invalid: spec.resources[storage]: Required value`)},
			PodCreationFailed, "the volume claims of the pods cannot be created: ", "describe statefulset vllm"},
		"the server is away after a group has failed for good": {[]func(*leaderWorkerSetCluster){lacksGroup, says("Failed", "MaxGroupRestartsExceeded", "Group 0 (3 restarts) has failed again"), eventAbout("StatefulSet", "vllm-leaders", "FailedCreate",
			`create Pod vllm-1 in StatefulSet vllm failed error: Internal error occurred: failed calling webhook "mpod.kb.io": failed to call webhook: connection refused`)},
			PodsRefusedByWebhook, "the server of LeaderWorkerSets does not answer", "kubectl jobset doctor"},
		"the Service is gone":            {[]func(*leaderWorkerSetCluster){func(c *leaderWorkerSetCluster) { c.Services["vllm"] = nil }}, ServiceMissing, "the Service vllm is gone", ""},
		"the Service is somebody else's": {[]func(*leaderWorkerSetCluster){func(c *leaderWorkerSetCluster) { c.Services["vllm"].Spec = corev1.ServiceSpec{ClusterIP: "10.0.0.1"} }}, ServiceForeign, "it is not headless", ""},
		"events are forbidden":           {[]func(*leaderWorkerSetCluster){lacksGroup, func(c *leaderWorkerSetCluster) { c.NotLookedAt = []Gap{{"events", reasonForbidden}} }}, CauseUnknown, "cause unknown: cannot read events", ""},
	}
}

// podCasesOfGroups are about pods and replicas that do not become ready.
func podCasesOfGroups() map[string]leaderWorkerSetCase {
	return map[string]leaderWorkerSetCase{
		"a worker finds no node": {[]func(*leaderWorkerSetCluster){workerWaits(withoutNode("0/3 nodes are available: 3 Insufficient cpu."))}, UnschedulableResources,
			"1 pod finds no node with enough room: 3 nodes: Insufficient cpu", ""},
		"an image cannot be pulled": {[]func(*leaderWorkerSetCluster){workerWaits(func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "nope", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
		})}, ImagePull, "the image nope cannot be pulled", ""},
		"Kueue holds the pods": {[]func(*leaderWorkerSetCluster){workerWaits(func(pod *corev1.Pod) {
			pod.Spec.NodeName, pod.Spec.SchedulingGates = "", []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
		})}, SchedulingGate, "1 pod is held by the scheduling gate kueue.x-k8s.io/admission: Kueue", "get workloads"},
		"a node is lost and holds a group": {[]func(*leaderWorkerSetCluster){func(c *leaderWorkerSetCluster) {
			c.pods[3].DeletionTimestamp, c.pods[2].DeletionTimestamp = ptr.To(before(10*time.Minute)), ptr.To(before(10*time.Minute))
			c.Nodes["node-1"] = &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}}}
		}}, NodeLost, "the node node-1 is lost", "describe node node-1"},
		"pods do not end": {[]func(*leaderWorkerSetCluster){func(c *leaderWorkerSetCluster) { c.pods[3].DeletionTimestamp = ptr.To(before(10 * time.Minute)) }}, TerminatingPodsBlock,
			"the next pods wait for 1 pod that should have ended 10m ago: vllm-1-1", "delete pod vllm-1-1 --grace-period=0 --force"},
		"no domain is free": {[]func(*leaderWorkerSetCluster){exclusive, leaderOnly(withoutNode("0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules."))}, NoFreeDomain,
			"group 1 finds no free domain: exclusive placement gives each group the nodes of one value of the label example.com/rack alone", "get nodes -L example.com/rack"},
		"the node has no label": {[]func(*leaderWorkerSetCluster){exclusive, leaderOnly(), func(c *leaderWorkerSetCluster) { c.Nodes["node-1"] = &corev1.Node{} }}, TopologyLabelMissing,
			"the workers of group 1 are not created: the node node-1 of the leader has no label example.com/rack", "kubectl label node node-1"},
		"a volume claim is pending": {[]func(*leaderWorkerSetCluster){workerWaits(func(pod *corev1.Pod) {
			withoutNode("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.")(pod)
			pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-vllm-1-1"}}}}
		}), func(c *leaderWorkerSetCluster) {
			c.Claims["data-vllm-1-1"] = &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast")}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
		}}, UnboundClaim, "1 pod waits for the volume claim data-vllm-1-1, which is not bound", "describe persistentvolumeclaim data-vllm-1-1"},
		"a gang of the cluster waits": {[]func(*leaderWorkerSetCluster){leaderOnly(func(pod *corev1.Pod) { pod.Spec.NodeName, pod.CreationTimestamp = "", before(time.Second) }), func(c *leaderWorkerSetCluster) {
			c.PodGroups = map[string]*unstructured.Unstructured{"vllm-1-k": {Object: map[string]any{"status": map[string]any{"conditions": []any{
				map[string]any{"type": "PodGroupInitiallyScheduled", "status": "False", "reason": "Unschedulable", "message": "2 pods need 3 nodes"}}}}}}
		}}, PodGroupWaits, "the pod group vllm-1-k is not scheduled, and its pods are only scheduled together: 2 pods need 3 nodes", "describe podgroup vllm-1-k"},
		"a gang of Volcano waits": {[]func(*leaderWorkerSetCluster){leaderOnly(func(pod *corev1.Pod) { pod.Spec.NodeName, pod.CreationTimestamp = "", before(time.Second) }), volcano("Inqueue")}, PodGroupWaits,
			"the pod group vllm-1-k of Volcano is Inqueue, and its pods are only scheduled together: 2/2 tasks in gang unschedulable", ""},
		"a gang of coscheduling waits": {[]func(*leaderWorkerSetCluster){leaderOnly(func(pod *corev1.Pod) { pod.Spec.NodeName, pod.CreationTimestamp = "", before(time.Second) }), coscheduled(
			&unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": "PreScheduling"}}})}, PodGroupWaits,
			"the pod group vllm-1-k of the coscheduling plugin is PreScheduling, and its pods are only scheduled together", "describe podgroups.scheduling.x-k8s.io vllm-1-k"},
		"a gang of coscheduling lacks": {[]func(*leaderWorkerSetCluster){leaderOnly(func(pod *corev1.Pod) { pod.Spec.NodeName, pod.CreationTimestamp = "", before(time.Second) }), coscheduled(nil)}, PodGroupWaits,
			"the pods wait for the pod group vllm-1-k of the coscheduling plugin, which does not exist", "describe podgroups.scheduling.x-k8s.io vllm-1-k"},
		"a group has used up its restarts": {[]func(*leaderWorkerSetCluster){recreated(leaderworkersetv1.GroupStatus{Restarts: 3, Failed: true}), says("Failed", "MaxGroupRestartsExceeded", "too many")}, MaxRestartsReached,
			"group 1 has used up its 3 restarts (maxGroupRestarts) and is left as it is; the last failure: container main of pod vllm-1-1 on node node-1 ended with exit code 139", "restart lws/vllm --group 1"},
		"a group waits": {[]func(*leaderWorkerSetCluster){recreated(leaderworkersetv1.GroupStatus{Restarts: 4, RestartsInRow: 4, RestartAt: ptr.To(metav1.NewTime(now.Add(40 * time.Second)))})}, GroupBackoff,
			"group 1 failed 4 times in a row and is recreated in 40s (groupRestartBackoff); the last failure: container main of pod vllm-1-1", ""},
		"a group is recreated again and again": {[]func(*leaderWorkerSetCluster){recreated(leaderworkersetv1.GroupStatus{Restarts: 7})}, GroupRestarts,
			"group 1 is not ready and was recreated after 7 failures, last 60s ago; the last failure: container main of pod vllm-1-1", "logs lws/vllm --group 1"},
		"workers wait for the leader": {[]func(*leaderWorkerSetCluster){leaderOnly(), func(c *leaderWorkerSetCluster) { c.Set.Spec.StartupPolicy = leaderworkersetv1.StartupPolicyLeaderReady }}, LeaderNotReady,
			"the workers of group 1 are created once the leader is ready (startupPolicy LeaderReady)", "describe pod vllm-1"},
	}
}

// healthCasesOfGroups are about what users ask for, and what is normal.
func healthCasesOfGroups() map[string]leaderWorkerSetCase {
	restart := func(r leaderworkersetv1.RequestedRestart) func(*leaderWorkerSetCluster) {
		return func(c *leaderWorkerSetCluster) {
			r.RequestTime = metav1.NewMicroTime(before(time.Minute).Time)
			c.Set.Status.Restart = &r
			c.Set.Status.LastAction = &leaderworkersetv1.LastAction{Action: leaderworkersetv1.ActionRestart, User: "alice", Reason: "new weights"}
		}
	}
	return map[string]leaderWorkerSetCase{
		"all groups are ready": {nil, Running, "runs: 2 of 2 groups ready", "tree lws/vllm"},
		"a partition keeps the old revision": {[]func(*leaderWorkerSetCluster){says("Available", "AllGroupsReady", "All replicas are ready"), func(c *leaderWorkerSetCluster) {
			c.Set.Spec.RolloutStrategy.RollingUpdateConfiguration.Partition = ptr.To[int32](1)
		}}, Running, "groups below the partition 1 keep theirs", ""},
		"an update is in progress": {[]func(*leaderWorkerSetCluster){updates}, Updating, "an update is in progress: 1 of 2 groups have the revision", ""},
		"an update is paused": {[]func(*leaderWorkerSetCluster){updates, func(c *leaderWorkerSetCluster) {
			c.Set.Spec.Paused = ptr.To(true)
			c.Set.Status.LastAction = &leaderworkersetv1.LastAction{Action: leaderworkersetv1.ActionPause, User: "bob", Time: ptr.To(metav1.NewMicroTime(before(5 * time.Minute).Time))}
		}}, UpdatePaused, "the update is paused by bob 5m ago; 1 of 2 groups have the revision", "resume lws/vllm"},
		"a restart of all groups": {[]func(*leaderWorkerSetCluster){restart(leaderworkersetv1.RequestedRestart{All: true})}, Restarting,
			`a restart of all groups, requested 60s ago by alice: "new weights", is in progress: the controller has not begun yet`, ""},
		"a restart of one group": {[]func(*leaderWorkerSetCluster){restart(leaderworkersetv1.RequestedRestart{Groups: []int32{1}, Found: true, Leaders: []types.UID{"a"}})}, Restarting,
			"a restart of 1 group, requested 60s ago by alice: \"new weights\", is in progress: 1 group still to be recreated", ""},
		"groups start": {[]func(*leaderWorkerSetCluster){workerWaits(func(*corev1.Pod) {})}, Starting, "starting, no problem found: 1 of 2 groups ready", ""},
		"deleted": {[]func(*leaderWorkerSetCluster){func(c *leaderWorkerSetCluster) {
			c.Set.DeletionTimestamp, c.Set.Finalizers = ptr.To(before(time.Minute)), []string{metav1.FinalizerDeleteDependents}
		}}, Deleting, "the set was deleted 60s ago and waits until its StatefulSets and pods are gone", ""},
		"a finalizer keeps it": {[]func(*leaderWorkerSetCluster){func(c *leaderWorkerSetCluster) {
			c.Set.DeletionTimestamp, c.Set.Finalizers = ptr.To(before(time.Minute)), []string{"example.com/mine"}
		}}, FinalizerBlocksDeletion, "the finalizer example.com/mine keeps it", "patch leaderworkerset vllm"},
	}
}

// updateCasesOfGroups are about updates that do not go on, and what else keeps a replica at another revision.
func updateCasesOfGroups() map[string]leaderWorkerSetCase {
	since := func(age time.Duration) func(*leaderWorkerSetCluster) {
		return func(c *leaderWorkerSetCluster) {
			c.Set.Status.Conditions[0].LastTransitionTime, c.pods[2].CreationTimestamp = before(age), before(age-time.Minute)
		}
	}
	notReady := workerWaits(func(*corev1.Pod) {})
	return map[string]leaderWorkerSetCase{
		"the new groups do not become ready": {[]func(*leaderWorkerSetCluster){updates, notReady, since(20 * time.Minute)}, UpdateStuck,
			"the update waits for group 1 of the new revision, which is not ready, and has replaced no group for 19m (maxUnavailable 1); 1 of 2 groups have the revision", "rollback lws/vllm"},
		"the logs of the new group": {[]func(*leaderWorkerSetCluster){updates, notReady, since(20 * time.Minute)}, UpdateStuck, "", "logs lws/vllm --group 1"},
		"a new group is young":      {[]func(*leaderWorkerSetCluster){updates, notReady, since(9 * time.Minute)}, Updating, "an update is in progress: 1 of 2 groups have the revision", ""},
		"nobody replaces groups": {[]func(*leaderWorkerSetCluster){updates, since(time.Hour), func(c *leaderWorkerSetCluster) {
			for _, pod := range c.pods {
				pod.Labels[leaderworkersetv1.RevisionKey] = "old"
			}
			for _, workers := range c.sets[1:] {
				workers.Labels[leaderworkersetv1.RevisionKey] = "old"
			}
		}}, UpdateStuck, "the update has replaced no group for 60m; 0 of 2 groups have the revision", "timeline lws/vllm"},
		"an image of the new revision is missing": {[]func(*leaderWorkerSetCluster){updates, since(time.Hour), workerWaits(func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "nope", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}
		})}, ImagePull, "the image nope cannot be pulled", ""},
		"workers of another revision": {[]func(*leaderWorkerSetCluster){func(c *leaderWorkerSetCluster) { c.sets[2].Labels[leaderworkersetv1.RevisionKey] = "other" }}, RevisionMixed,
			"group 1 has a leader and workers of different revisions", "restart lws/vllm --group 1"},
		"a worker of another revision": {[]func(*leaderWorkerSetCluster){func(c *leaderWorkerSetCluster) { c.pods[3].Labels[leaderworkersetv1.RevisionKey] = "other" }}, RevisionMixed,
			"group 1 has a leader and workers of different revisions", ""},
		"workers of a former leader": {[]func(*leaderWorkerSetCluster){func(c *leaderWorkerSetCluster) {
			c.sets[2].Labels[leaderworkersetv1.RevisionKey], c.sets[2].OwnerReferences[0].UID = "other", "former"
		}}, Running, "runs: 2 of 2 groups ready", ""},
	}
}

// leaderWorkerSetCases are all cases of LeaderWorkerSets.
func leaderWorkerSetCases() map[string]leaderWorkerSetCase {
	all := childCasesOfGroups()
	for _, table := range []map[string]leaderWorkerSetCase{podCasesOfGroups(), healthCasesOfGroups(), updateCasesOfGroups()} {
		for name, tc := range table {
			all[name] = tc
		}
	}
	return all
}
