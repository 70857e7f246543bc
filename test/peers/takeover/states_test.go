// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"errors"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// state is a state in which a set is moved. Two sets get there: one goes on under our controller, and the other one stays until it
// goes on under the controller of upstream again.
type state struct {
	name string
	// set and lws change the set before it is created. One of them is nil: the state is of the other kind.
	set func(*jobsetv1alpha2.JobSet)
	lws func(*leaderworkersetv1.LeaderWorkerSet)
	// reach brings a set there.
	reach func(*one)
	// goOn ends the state, and fails unless the controller that runs does what the state leads to.
	goOn func(*one)
}

func (s *state) begin(t *testing.T, o *takeover) {
	t.Helper()
	for _, by := range []string{"own", "upstream"} {
		each := s.of(t, o, by)
		if s.lws != nil {
			set := o.newLeaderWorkerSet(each.name)
			s.lws(set)
			o.createLeaderWorkerSet(t, set)
		} else {
			set := o.newSet(each.name)
			s.set(set)
			o.create(t, set)
		}
	}
	for _, by := range []string{"own", "upstream"} {
		s.reach(s.of(t, o, by))
	}
}

func (s *state) of(t *testing.T, o *takeover, by string) *one {
	each := &one{Test: framework.Test{T: t}, takeover: o, name: s.name + "-" + by, resource: jobSets}
	if s.lws != nil {
		each.resource = leaderWorkerSets
	}
	return each
}

// goOn ends the states of all sets that go on now, and notes what there is then.
func (o *takeover) goOn(t *testing.T, by string) {
	t.Helper()
	for _, s := range states() {
		t.Logf("%s: %s", by, s.name)
		s.goOn(s.of(t, o, by))
	}
	// No other set has changed.
	now := o.stored(t)
	for key, was := range o.sets {
		if !strings.HasSuffix(key, "-"+by) && (now[key] == nil || now[key].GetUID() != was.GetUID()) {
			t.Errorf("%s is gone or another one", key)
		}
	}
	o.note(t)
}

// states are all states.
func states() []*state {
	fail := func(e *one) { e.failPod() }
	nothing := func(*jobsetv1alpha2.JobSet) {}
	restarts := func(set *jobsetv1alpha2.JobSet) {
		set.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 3}
		set.Spec.ReplicatedJobs[0].Template.Spec.BackoffLimit = ptr.To[int32](0)
	}
	return []*state{
		{name: "suspended", set: func(set *jobsetv1alpha2.JobSet) { set.Spec.Suspend = ptr.To(true) },
			reach: func(e *one) { e.condition("Suspended") },
			goOn:  func(e *one) { e.change(`{"spec":{"suspend":false}}`); e.pods(4) }},
		{name: "queued", set: func(set *jobsetv1alpha2.JobSet) {
			set.Spec.Suspend, set.Labels = ptr.To(true), map[string]string{"kueue.x-k8s.io/queue-name": "queue"}
		},
			reach: func(e *one) { e.condition("Suspended") },
			goOn:  func(e *one) { e.change(`{"spec":{"suspend":false}}`); e.pods(4) }},
		{name: "restarted", set: restarts,
			reach: func(e *one) { e.pods(4); fail(e); e.restarts(1); e.pods(4) },
			goOn:  func(e *one) { fail(e); e.restarts(2); e.pods(4) }},
		{name: "restarting", set: restarts,
			reach: func(e *one) { e.pods(4); e.holdJob(true); fail(e); e.restarts(1); e.jobDeleted() },
			goOn:  func(e *one) { e.holdJob(false); e.pods(4); e.restarts(1) }},
		{name: "completed", set: func(set *jobsetv1alpha2.JobSet) { ends(set, "succeeded") },
			reach: func(e *one) { e.condition("Completed") },
			goOn:  func(e *one) { e.change(`{"spec":{"ttlSecondsAfterFinished":0}}`); e.gone() }},
		{name: "failed", set: func(set *jobsetv1alpha2.JobSet) { ends(set, "failed") },
			reach: func(e *one) { e.condition("Failed") },
			goOn:  func(e *one) { e.change(`{"spec":{"ttlSecondsAfterFinished":0}}`); e.gone() }},
		{name: "deleting", set: func(set *jobsetv1alpha2.JobSet) { set.Finalizers = []string{holder} },
			reach: func(e *one) { e.pods(4); e.delete(e.T, e.resource, e.name) },
			goOn:  func(e *one) { e.change(`{"metadata":{"finalizers":null}}`); e.gone() }},
		{name: "claims", set: withClaims,
			reach: func(e *one) { e.claims(1) },
			goOn:  func(e *one) { e.delete(e.T, e.resource, e.name); e.gone(); e.claims(0) }},
		{name: "managed", set: func(set *jobsetv1alpha2.JobSet) { set.Spec.ManagedBy = ptr.To("example.com/other") },
			reach: func(e *one) {},
			goOn:  func(e *one) { e.change(`{"metadata":{"labels":{"seen":"yes"}}}`); e.pods(0) }},
		{name: "exclusive", set: func(set *jobsetv1alpha2.JobSet) {
			restarts(set)
			set.Annotations = map[string]string{"alpha.jobset.sigs.k8s.io/exclusive-topology": "kubernetes.io/hostname"}
		},
			reach: func(e *one) { e.pods(4) },
			goOn:  func(e *one) { fail(e); e.restarts(1); e.pods(4) }},
		{name: "in-place", set: func(set *jobsetv1alpha2.JobSet) {
			restarts(set)
			set.Spec.FailurePolicy.RestartStrategy = "InPlaceRestart"
			job := &set.Spec.ReplicatedJobs[0].Template.Spec
			job.BackoffLimit, job.PodReplacementPolicy = ptr.To[int32](2147483647), ptr.To(batchv1.Failed)
		},
			reach: func(e *one) { e.pods(4); e.attempts(0) },
			goOn:  func(e *one) { e.attempts(1) }},
		{name: "running", set: nothing,
			reach: func(e *one) { e.pods(4) },
			goOn: func(e *one) {
				e.change(`{"spec":{"suspend":true}}`)
				e.pods(0)
				e.change(`{"spec":{"suspend":false}}`)
				e.pods(4)
			}},
		{name: "applied", set: nothing, // as a GitOps tool does
			reach: func(e *one) { e.pods(4); e.apply() },
			goOn: func(e *one) {
				before := e.get(e.T, e.resource, e.name).GetResourceVersion()
				if after := e.apply(); after != before {
					e.Errorf("%s: applying the same manifest again has changed the set", e.name)
				}
			}},
		{name: "updating", lws: func(set *leaderworkersetv1.LeaderWorkerSet) {
			set.Spec.RolloutStrategy.RollingUpdateConfiguration.Partition = ptr.To[int32](1)
		},
			reach: func(e *one) { e.pods(4); e.change(newTemplate); e.updated(1); e.pods(4) },
			goOn: func(e *one) {
				second := e.podUID(e.name + "-1")
				e.change(`{"spec":{"rolloutStrategy":{"rollingUpdateConfiguration":{"partition":0}}}}`)
				e.updated(2)
				e.pods(4)
				if now := e.podUID(e.name + "-1"); now != second {
					e.Errorf("%s: the group that had been updated already was created again: %s, then %s", e.name, second, now)
				}
			}},
		{name: "scaled", lws: func(*leaderworkersetv1.LeaderWorkerSet) {},
			reach: func(e *one) { e.pods(4); e.change(`{"spec":{"replicas":3}}`); e.pods(6) },
			goOn:  func(e *one) { e.change(`{"spec":{"replicas":1}}`); e.pods(2) }},
		{name: "recreated", lws: func(*leaderworkersetv1.LeaderWorkerSet) {},
			reach: func(e *one) { e.pods(4) },
			goOn: func(e *one) {
				leader := e.podUID(e.name + "-0")
				if err := cluster.Kube.CoreV1().Pods(e.namespace).Delete(e.Context(), e.name+"-0-1", metav1.DeleteOptions{}); err != nil {
					e.Fatal(err)
				}
				e.eventually("the group is created again", func(context.Context) error {
					if e.podUID(e.name+"-0") == leader {
						return errors.New("the leader is the same")
					}
					return nil
				})
				e.pods(4)
			}},
	}
}

// newTemplate is a patch that makes another template.
const newTemplate = `{"spec":{"leaderWorkerTemplate":{"workerTemplate":{"metadata":{"labels":{"version":"two"}}}}}}`

// ends makes the pods of a set end.
func ends(set *jobsetv1alpha2.JobSet, how string) {
	template := &set.Spec.ReplicatedJobs[0].Template.Spec
	template.BackoffLimit = ptr.To[int32](0)
	template.Template.Annotations = map[string]string{"jobset-apiserver.io/kwok-outcome": how, "jobset-apiserver.io/kwok-run-seconds": "0"}
}

func withClaims(set *jobsetv1alpha2.JobSet) {
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	set.Spec.VolumeClaimPolicies = []jobsetv1alpha2.VolumeClaimPolicy{{Templates: []corev1.PersistentVolumeClaim{claim}}}
	container := &set.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0]
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
}
