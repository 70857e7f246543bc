// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// claim is one of a volume that all nodes share.
func claim(name string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: ptr.To(localcluster.SharedStorageClass), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
	}}
}

// volumeOf waits until a claim is bound, and returns the directory of its volume on this machine.
func (e *env) volumeOf(name string) (dir string) {
	e.Helper()
	framework.Eventually(e, "the claim "+name+" is bound", func(ctx context.Context) error {
		claim, err := core.CoreV1().PersistentVolumeClaims(e.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("it is %s", claim.Status.Phase)
		}
		volume, err := core.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		dir = volume.Spec.HostPath.Path
		return nil
	})
	return dir
}

// holds checks the lines of the file log of a volume.
func (e *env) holds(dir string, want ...string) {
	e.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "log"))
	if got := strings.Split(strings.TrimSpace(string(content)), "\n"); err != nil || strings.Join(got, ", ") != strings.Join(want, ", ") {
		e.Errorf("the volume holds %q, error %v, want %q", got, err, want)
	}
}

// gone waits until a claim and the directory of its volume have been removed.
func (e *env) gone(name, dir string) {
	e.Helper()
	framework.Eventually(e, "the claim "+name+" is gone", func(ctx context.Context) error {
		if _, err := core.CoreV1().PersistentVolumeClaims(e.namespace).Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("get: %v", err)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			return fmt.Errorf("%s: %v", dir, err)
		}
		return nil
	})
}

// withClaims is a set of one pod that adds a line to the log of the volume keep, and succeeds if there are that many lines then.
func withClaims(maxRestarts int32, lines string) *jobsetv1alpha2.JobSet {
	js := set("claims", 1, 1, "append", "/keep/log", lines)
	js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: maxRestarts}
	js.Spec.VolumeClaimPolicies = []jobsetv1alpha2.VolumeClaimPolicy{
		{
			Templates:       []corev1.PersistentVolumeClaim{claim("keep")},
			RetentionPolicy: &jobsetv1alpha2.VolumeRetentionPolicy{WhenDeleted: ptr.To(jobsetv1alpha2.RetentionPolicyRetain)},
		},
		{Templates: []corev1.PersistentVolumeClaim{claim("drop")}},
	}
	pod := &js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
	pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "keep", MountPath: "/keep"}, {Name: "drop", MountPath: "/drop"}}
	pod.Containers[0].Env = []corev1.EnvVar{{Name: "LINE", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + jobsetv1alpha2.RestartsKey + "']"},
	}}}
	return js
}

// TestClaimsOutliveRestarts has a set fail until its volume has three lines. Of its two claims one is kept when the set
// is deleted, with what is in it, and is used by the next set of the same name.
func TestClaimsOutliveRestarts(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(withClaims(5, "3"))
	js := e.ended("claims", jobsetv1alpha2.JobSetCompleted)
	if js.Status.Restarts != 2 {
		t.Errorf("%d restarts", js.Status.Restarts)
	}
	keep, drop := e.volumeOf("keep-claims"), e.volumeOf("drop-claims")
	e.holds(keep, "claims-w-0-0 0", "claims-w-0-0 1", "claims-w-0-0 2")

	sets := jobsets.JobsetV1alpha2().JobSets(e.namespace)
	if err := sets.Delete(t.Context(), "claims", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}); err != nil {
		t.Fatal(err)
	}
	e.gone("drop-claims", drop)
	framework.Eventually(t, "the set is gone", func(ctx context.Context) error {
		if _, err := sets.Get(ctx, "claims", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("get: %v", err)
		}
		return nil
	})
	e.create(withClaims(0, "4"))
	e.ended("claims", jobsetv1alpha2.JobSetCompleted)
	if dir := e.volumeOf("keep-claims"); dir != keep {
		t.Errorf("the claim has moved from %s to %s", keep, dir)
	}
	e.holds(keep, "claims-w-0-0 0", "claims-w-0-0 1", "claims-w-0-0 2", "claims-w-0-0 0")
	if dir := e.volumeOf("drop-claims"); dir == drop {
		t.Errorf("the claim that was deleted has its former volume %s", dir)
	}
}

// TestStepsShareClaim runs three steps, each of which succeeds only if the steps before it have written to the claim that they share.
func TestStepsShareClaim(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	shared := claim("shared")
	if _, err := core.CoreV1().PersistentVolumeClaims(e.namespace).Create(t.Context(), &shared, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	mounts := []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	sequence := &batchv1alpha1.SequentialJob{ObjectMeta: metav1.ObjectMeta{Name: "steps"}, Spec: batchv1alpha1.SequentialJobSpec{
		BackoffLimit: ptr.To[int32](0),
		Template: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Hostname: "step",
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "shared"},
			}}},
		}},
	}}
	for i, name := range []string{"extract", "transform", "load"} {
		sequence.Spec.Containers = append(sequence.Spec.Containers, corev1.Container{
			Name: name, Image: localcluster.ProgramImage, Args: []string{"append", "/data/log", fmt.Sprint(i + 1)},
			Env: []corev1.EnvVar{{Name: "LINE", Value: name}}, VolumeMounts: mounts,
		})
	}
	sequences := jobsets.BatchV1alpha1().SequentialJobs(e.namespace)
	if _, err := sequences.Create(t.Context(), sequence, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the sequence has completed", func(ctx context.Context) error {
		got, err := sequences.Get(ctx, "steps", metav1.GetOptions{})
		if err == nil && got.Status.Phase != batchv1alpha1.PhaseCompleted {
			err = fmt.Errorf("status is %+v", got.Status)
		}
		return err
	})
	e.holds(e.volumeOf("shared"), "step extract", "step transform", "step load")
}
