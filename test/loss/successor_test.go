// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// successor has what follows: after an empty store was accepted, the garbage collector deletes a Job that was not released, and the
// released Jobs keep their names until a user deletes them. A client that watched the lost store sees what happens in the new one.
func (c *cluster) successor(t *testing.T) {
	namespace := c.namespace(t, "successor")
	const count = 2
	c.create(t, namespace, 0, count)
	before := c.running(t, namespace, count)

	begin, empty := time.Now(), c.store(t, "successor")
	c.start(t, on(empty))
	refusal := c.refused(t, witness.ReasonEmptyStore, begin)
	c.must(t, "store", "release-orphans", "--kubeconfig="+c.Kubeconfig())
	abandoned := c.abandoned(t, namespace, before)
	accept := []string{"store", "accept", "--kubeconfig=" + c.Kubeconfig(), "--uuid=" + refusal.NewUUID, fmt.Sprintf("--revision=%d", refusal.Revision)}
	if out, err := c.run(t, "jobset-apiserver", accept...); err == nil || !strings.Contains(out, "delete 1 Job ("+namespace+"/"+abandoned+")") {
		t.Errorf("accepted while a Job is at stake: %v: %s", err, out)
	}
	c.must(t, append(accept, "--abandon-jobs")...)
	c.reached(t)
	c.right = empty

	framework.Eventually(t, "the garbage collector deletes the Job that was not released", func(ctx context.Context) error {
		_, err := c.Kube.BatchV1().Jobs(namespace).Get(ctx, abandoned, metav1.GetOptions{})
		if err == nil || !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Job exists: %w", err)
		}
		return nil
	})
	if lost := c.watch(t, namespace, before, time.Second, never); len(lost) > 0 {
		t.Fatalf("lost: %.300v", lost)
	}
	c.successorWaits(t, namespace)
}

// abandoned creates a Job of a lost owner after the others were released, and returns its name.
func (c *cluster) abandoned(t *testing.T, namespace string, before *children) string {
	t.Helper()
	owners := before.jobs[setName(0)+"-workers-0"].OwnerReferences
	if len(owners) != 1 {
		t.Fatalf("owners of the Job: %v", owners)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "abandoned", OwnerReferences: owners}, Spec: batchv1.JobSpec{
		Suspend: ptr.To(true),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "example.com/train:1"}},
		}},
	}}
	if _, err := c.Kube.BatchV1().Jobs(namespace).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return job.Name
}

// successorWaits creates a set of the name of a lost one. It waits for the name of the Job, runs once a person has
// deleted the Job, and never touches it itself.
func (c *cluster) successorWaits(t *testing.T, namespace string) {
	t.Helper()
	jobs, name := c.Kube.BatchV1().Jobs(namespace), setName(0)+"-workers-0"
	released, err := jobs.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.create(t, namespace, 0, 1)
	framework.Eventually(t, "the set says that the name is taken", func(ctx context.Context) error {
		set, err := c.JobSets.JobsetV1alpha2().JobSets(namespace).Get(ctx, setName(0), metav1.GetOptions{})
		if err == nil && !meta.IsStatusConditionTrue(set.Status.Conditions, jobsetv1alpha2.ChildNameConflict) {
			err = fmt.Errorf("its status is %+v", set.Status)
		}
		return err
	})
	if now, err := jobs.Get(t.Context(), name, metav1.GetOptions{}); err != nil || now.UID != released.UID || now.DeletionTimestamp != nil || len(now.OwnerReferences) > 0 {
		t.Errorf("the released Job is %+v, %v", now, err)
	}
	if err := jobs.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the set has a Job of its own", func(ctx context.Context) error {
		now, err := jobs.Get(ctx, name, metav1.GetOptions{})
		if err == nil && now.UID == released.UID {
			err = fmt.Errorf("the Job is still the released one")
		}
		return err
	})
}
