// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// leaderWorkerSetCluster is what belongs to a set, to be changed before it is assembled.
type leaderWorkerSetCluster struct {
	*Evidence
	leaders *appsv1.StatefulSet
	sets    []*appsv1.StatefulSet
	pods    []*corev1.Pod
}

// runningLeaderWorkerSet is a set of two replicas of two pods, all ready.
func runningLeaderWorkerSet() *leaderWorkerSetCluster {
	set := builders.LeaderWorkerSet("vllm", 2, 2)
	set.Namespace, set.CreationTimestamp, set.Status.ObservedGeneration, set.Status.ReadyReplicas = "team", before(time.Hour), 1, 2
	payload, err := helper.RevisionPayload(set)
	if err != nil {
		panic(err)
	}
	c := &leaderWorkerSetCluster{leaders: builders.LeaderStatefulSet(set, helper.RevisionKey(payload))}
	healthy := healthy()
	c.Evidence = &Evidence{
		of: leaderWorkerSetKind(), Namespace: "team", Name: "vllm", Now: healthy.Now, Set: set, Leases: healthy.Leases, LeasesRead: true,
		Nodes: map[string]*corev1.Node{}, Claims: map[string]*corev1.PersistentVolumeClaim{}, Services: map[string]*corev1.Service{"vllm": {
			ObjectMeta: metav1.ObjectMeta{Name: "vllm"},
			Spec:       corev1.ServiceSpec{ClusterIP: "None", Selector: map[string]string{leaderworkersetv1.SetNameLabelKey: "vllm"}},
		}},
	}
	c.sets = append(c.sets, c.leaders)
	scheduled := func(pod *corev1.Pod) {
		pod.CreationTimestamp = before(time.Hour)
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: before(time.Hour)})
	}
	for i := range 2 {
		leader := builders.LeaderPod(set, c.leaders, i, scheduled)
		workers := builders.WorkerStatefulSet(set, leader)
		c.pods = append(c.pods, leader, builders.WorkerPod(set, workers, 1, scheduled))
		c.sets = append(c.sets, workers)
	}
	return c
}

func (c *leaderWorkerSetCluster) evidence() *Evidence {
	var sets []appsv1.StatefulSet
	var pods []corev1.Pod
	for _, set := range c.sets {
		sets = append(sets, *set)
	}
	for _, pod := range c.pods {
		pods = append(pods, *pod)
	}
	c.Replicas = snapshot.AssembleLeaderWorkerSet(c.Set, sets, pods, c.Now)
	c.Pods = c.Replicas.Pods()
	return c.Evidence
}

// says sets a condition of the set.
func says(conditionType, reason, message string) func(*leaderWorkerSetCluster) {
	return func(c *leaderWorkerSetCluster) {
		c.Set.Status.Conditions = append(c.Set.Status.Conditions, metav1.Condition{
			Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: before(2 * time.Minute),
		})
	}
}

// eventAbout adds a warning about an object.
func eventAbout(kind string, uid types.UID, reason, message string) func(*leaderWorkerSetCluster) {
	return func(c *leaderWorkerSetCluster) {
		c.Events = append(c.Events, corev1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: kind, Name: "vllm", UID: uid}, Reason: reason, Message: message, LastTimestamp: before(time.Minute),
		})
	}
}

// lacksGroup removes the pods and the workers of the replica with the index 1.
func lacksGroup(c *leaderWorkerSetCluster) {
	c.pods, c.sets = c.pods[:2], c.sets[:2]
}

// leaderOnly leaves only the leader of the replica with the index 1, and makes it not ready.
func leaderOnly(change ...func(*corev1.Pod)) func(*leaderWorkerSetCluster) {
	return func(c *leaderWorkerSetCluster) {
		c.pods, c.sets = c.pods[:3], c.sets[:2]
		c.pods[2].Status.Conditions = nil
		for _, f := range change {
			f(c.pods[2])
		}
	}
}

// workerWaits makes the worker of the replica with the index 1 one that does not run.
func workerWaits(change func(*corev1.Pod)) func(*leaderWorkerSetCluster) {
	return func(c *leaderWorkerSetCluster) {
		c.sets[2].Status.AvailableReplicas = 0
		c.pods[3].Status = corev1.PodStatus{Phase: corev1.PodPending}
		change(c.pods[3])
	}
}

// withoutNode makes a pod one that the scheduler refuses.
func withoutNode(message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.NodeName = ""
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message, LastTransitionTime: before(time.Minute)}}}
	}
}

// recreated puts a replica on record, with its worker not ready.
func recreated(s leaderworkersetv1.GroupStatus) func(*leaderWorkerSetCluster) {
	return func(c *leaderWorkerSetCluster) {
		s.Index, s.LastRestartTime = 1, ptr.To(before(time.Minute))
		s.FirstCause = &jobsetv1alpha2.FailureCause{Job: "vllm-1", Pod: "vllm-1-1", Container: "main", Node: "node-1", ExitCode: ptr.To[int32](139)}
		c.Set.Status.Groups = []leaderworkersetv1.GroupStatus{s}
		c.sets[2].Status.AvailableReplicas = 0
	}
}

func exclusive(c *leaderWorkerSetCluster) {
	c.Set.Annotations = map[string]string{leaderworkersetv1.ExclusiveKeyAnnotationKey: "example.com/rack"}
}

// updates makes the set one that is being updated, with the replica 0 still of the old revision.
func updates(c *leaderWorkerSetCluster) {
	says("UpdateInProgress", "GroupsUpdating", "Rolling Upgrade is in progress")(c)
	for _, pod := range c.pods[:2] {
		pod.Labels[leaderworkersetv1.RevisionKey] = "old"
	}
	c.sets[1].Labels[leaderworkersetv1.RevisionKey] = "old"
	c.leaders.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](1)
}

func volcano(phase string) func(*leaderWorkerSetCluster) {
	return func(c *leaderWorkerSetCluster) {
		c.Gangs = map[string]map[string]*unstructured.Unstructured{"Volcano": {"vllm-1-k": {Object: map[string]any{"status": map[string]any{
			"phase": phase, "conditions": []any{map[string]any{"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "2/2 tasks in gang unschedulable"}},
		}}}}}
	}
}

func coscheduled(group *unstructured.Unstructured) func(*leaderWorkerSetCluster) {
	return func(c *leaderWorkerSetCluster) {
		c.Gangs = map[string]map[string]*unstructured.Unstructured{"the coscheduling plugin": {"vllm-1-k": group}}
	}
}

func TestCausesOfLeaderWorkerSets(t *testing.T) {
	for name, tc := range leaderWorkerSetCases() {
		t.Run(name, func(t *testing.T) {
			c := runningLeaderWorkerSet()
			for _, change := range tc.change {
				change(c)
			}
			first := diagnoseLeaderWorkerSet(c.evidence()).Findings[0]
			if first.Cause != tc.want || !strings.Contains(first.Summary, tc.wantSummary) || !strings.Contains(strings.Join(first.Commands, "\n"), tc.wantCommand) {
				t.Errorf("got %s: %s\n%v\nwant %s: %s", first.Cause, first.Summary, first.Commands, tc.want, tc.wantSummary)
			}
			if len(first.Commands) == 0 || len(first.Evidence) == 0 && first.Cause != Running {
				t.Errorf("no evidence or no commands: %+v", first)
			}
		})
	}
}

// load puts the objects into a cluster and reads them.
func (c *leaderWorkerSetCluster) load(t *testing.T, refused ...string) *Evidence {
	t.Helper()
	return c.loadInto(t, newEnv(t, &Evidence{}), refused...)
}

// loadInto puts the objects into the cluster and reads them.
func (c *leaderWorkerSetCluster) loadInto(t *testing.T, w *env, refused ...string) *Evidence {
	t.Helper()
	var objects []runtime.Object
	for _, set := range c.sets {
		objects = append(objects, set)
	}
	for _, pod := range c.pods {
		objects = append(objects, pod)
	}
	for _, o := range objects {
		if err := w.kube.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.jobSets.Tracker().Add(c.Set); err != nil {
		t.Fatal(err)
	}
	for _, resource := range refused {
		w.refuses(&w.kube.Fake, resource, forbidden(resource))
	}
	e, err := load(context.Background(), w.Clients, leaderWorkerSetKind(), "vllm")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestLoadOfALeaderWorkerSet(t *testing.T) {
	e := runningLeaderWorkerSet().load(t)
	if e.Replicas.Leader == nil || len(e.Replicas.Replicas) != 2 || len(e.Pods) != 4 || len(e.Jobs) != 0 {
		t.Fatalf("got %+v", e)
	}
	if service, read := e.Services["vllm"]; !read || service != nil {
		t.Error("the Service was not looked for")
	}
	foreign := runningLeaderWorkerSet()
	foreign.leaders.OwnerReferences = nil
	if e := foreign.load(t); e.TakenSet == nil || diagnoseLeaderWorkerSet(e).Findings[0].Cause != StatefulSetNameTaken {
		t.Errorf("a StatefulSet of somebody else was not found: %+v", e.TakenSet)
	}
}

func TestLoadOfALeaderWorkerSetWithoutPermissions(t *testing.T) {
	e := runningLeaderWorkerSet().load(t, "statefulsets", "services", "leases")
	var gaps []string
	for _, gap := range e.NotLookedAt {
		gaps = append(gaps, fmt.Sprint(gap.Source, " ", gap.Reason))
	}
	for _, want := range []string{"statefulsets forbidden", "services forbidden", "leases forbidden"} {
		if !strings.Contains(strings.Join(gaps, ","), want) {
			t.Errorf("%q is not listed: %v", want, gaps)
		}
	}
	if first := diagnoseLeaderWorkerSet(e).Findings[0]; first.Cause != CauseUnknown || !strings.Contains(first.Summary, "statefulsets") {
		t.Errorf("got %s: %s", first.Cause, first.Summary)
	}
}

func TestLeaderWorkerSetThatDoesNotExist(t *testing.T) {
	w := newEnv(t, &Evidence{})
	if err := w.jobSets.Tracker().Add(runningLeaderWorkerSet().Set); err != nil {
		t.Fatal(err)
	}
	r, err := LeaderWorkerSet(context.Background(), w.Clients, "vlm")
	if err != nil || r.Findings[0].Cause != NotFound || !strings.Contains(strings.Join(r.Findings[0].Commands, "\n"), "why lws/vllm") {
		t.Errorf("got %+v, error %v", r, err)
	}
}
