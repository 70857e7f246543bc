// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// claim adds a policy with one claim that all pods mount.
func claim(name string, retention jobsetv1alpha2.RetentionPolicyType) func(*jobSet) {
	return func(js *jobSet) {
		js.Spec.VolumeClaimPolicies = append(js.Spec.VolumeClaimPolicies, jobsetv1alpha2.VolumeClaimPolicy{
			Templates:       []corev1.PersistentVolumeClaim{claimTemplate(name)},
			RetentionPolicy: &jobsetv1alpha2.VolumeRetentionPolicy{WhenDeleted: &retention},
		})
		for i := range js.Spec.ReplicatedJobs {
			container := &js.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec.Containers[0]
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
		}
	}
}

func claimTemplate(name string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
}

// owners returns the UID of the set that owns each claim of the namespace. A claim without an owner has a fixed word instead.
func (e *env) owners() map[string]string {
	e.Helper()
	list, err := e.stack.Kube.CoreV1().PersistentVolumeClaims(e.namespace).List(e.Context(), metav1.ListOptions{})
	if err != nil {
		e.Fatal(err)
	}
	owners := map[string]string{}
	for _, c := range list.Items {
		owners[c.Name] = "nobody"
		if owner := metav1.GetControllerOf(&c); owner != nil {
			owners[c.Name] = string(owner.UID)
		}
	}
	return owners
}

func (e *env) awaitClaims(want map[string]string) {
	e.Helper()
	e.eventually(func() string { return cmp.Diff(want, e.owners()) })
}

func TestRow7_3_24_VolumeClaims(t *testing.T) {
	deleted, retained := claim("scratch", jobsetv1alpha2.RetentionPolicyDelete), claim("models", jobsetv1alpha2.RetentionPolicyRetain)
	t.Run("the set owns the claim that is deleted with it, nobody the one that is retained", func(t *testing.T) {
		e := newEnv(t, released)
		js := e.create(testJobSet(deleted, retained))
		// The garbage collector goes by the owner; what it does is in TestRow7_1_22_SharedVolumeClaims.
		want := map[string]string{"scratch-test-js": string(js.UID), "models-test-js": "nobody"}
		e.awaitClaims(want)
		e.awaitJobs(running, allJobs...)
		e.mounts("scratch", "scratch-test-js")
		e.mounts("models", "models-test-js")
		e.complete(allJobs...)
		e.awaitCompleted()
		if diff := cmp.Diff(want, e.owners()); diff != "" {
			t.Errorf("owners of the claims after the end (-want +got):\n%s", diff)
		}
	})
	t.Run("another set with a template of that name completes", func(t *testing.T) {
		e := newEnv(t, released)
		first := testJobSet(retained)
		first.Name = "first"
		e.create(first)
		e.awaitClaims(map[string]string{"models-first": "nobody"})
		if err := e.sets.Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		e.create(testJobSet(retained))
		e.awaitClaims(map[string]string{"models-first": "nobody", "models-test-js": "nobody"})
		e.eventually(func() string {
			names := e.names(running)
			for _, job := range allJobs {
				if !slices.Contains(names, job) {
					return fmt.Sprintf("no Job %s among %v", job, names)
				}
			}
			return ""
		})
		e.complete(allJobs...)
		e.awaitCompleted()
	})
	t.Run("a suspended set has its claims too", func(t *testing.T) {
		e := newEnv(t, released)
		js := e.create(testJobSet(suspend, deleted, retained))
		e.awaitClaims(map[string]string{"scratch-test-js": string(js.UID), "models-test-js": "nobody"})
		e.awaitJobs(suspended, allJobs...)
	})
}

// mounts checks that the pods of all Jobs get the claim as a volume of that name.
func (e *env) mounts(volume, claim string) {
	e.Helper()
	for name, job := range e.jobs() {
		found := slices.ContainsFunc(job.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
			return v.Name == volume && v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
		})
		if !found {
			e.Errorf("Job %s has no volume %s of the claim %s: %v", name, volume, claim, job.Spec.Template.Spec.Volumes)
		}
	}
}

func TestRow7_3_34_TimeToLiveOfAFailedSet(t *testing.T) {
	t.Run("after it the set is deleted", func(t *testing.T) {
		e := newEnv(t, released)
		e.create(testJobSet(func(js *jobSet) { js.Spec.TTLSecondsAfterFinished = ptr.To[int32](2) }))
		e.awaitJobs(running, allJobs...)
		e.ready(jobsOfB...)
		e.fail(jobA)
		e.awaitFailed("FailedJobs")
		e.collectWhenDeleted(jobsOfB...)
		e.keepsJobs(live, jobA)
		e.awaitDeleted()
		e.livedAfterItsEnd(jobsetv1alpha2.JobSetFailed, 2)
		if got := e.get().Finalizers; !slices.Equal(got, []string{metav1.FinalizerDeleteDependents}) {
			t.Errorf("finalizers: got %v, want that of a deletion in the foreground", got)
		}
	})
	t.Run("without one it stays", func(t *testing.T) {
		e := newEnv(t, released)
		e.create(testJobSet())
		e.awaitJobs(running, allJobs...)
		e.fail(jobA)
		e.awaitFailed("FailedJobs")
		e.stays(func() string {
			if e.get().DeletionTimestamp != nil {
				return "the set is being deleted"
			}
			return ""
		})
	})
}
