// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestRestoredSetIsHeld deletes the Jobs of a set while no controller runs, and records that the store was restored then. To the next
// controller, the set is one that has finished and expired since the backup. It runs again when a user resumes it.
func TestRestoredSetIsHeld(t *testing.T) {
	tier.OnRequest(t, "restores a store of three members")
	l := newLife(t, newDice(t))
	first := newControllers(t, shared.Kubeconfig(), "--leader-elect=false").must()
	sets := shared.JobSets.JobsetV1alpha2().JobSets(l.namespace)
	l.poll("creating a set", func() error {
		set := builders.JobSet("train", builders.WithJobs("w", 1, 1))
		set.Namespace = l.namespace
		_, err := sets.Create(l.ctx, set, metav1.CreateOptions{})
		return err
	})
	l.poll("waiting until the set has started", func() error {
		js, err := sets.Get(l.ctx, "train", metav1.GetOptions{})
		if err == nil && (len(js.Status.Attempts) == 0 || js.Status.Attempts[0].CreateTime == nil) {
			return errors.New("its Jobs were not seen")
		}
		return err
	})
	first.Kill()
	l.poll("deleting its Job", func() error {
		err := shared.Kube.BatchV1().Jobs(l.namespace).Delete(l.ctx, "train-w-0", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is not gone: %w", err)
	})
	l.poll("recording a restore", l.recordRestore)

	newControllers(t, shared.Kubeconfig(), "--leader-elect=false").must()
	l.poll("waiting until the set is held", func() error {
		js, err := sets.Get(l.ctx, "train", metav1.GetOptions{})
		if err == nil && !meta.IsStatusConditionTrue(js.Status.Conditions, jobsetv1alpha2.Held) {
			return fmt.Errorf("conditions %+v", js.Status.Conditions)
		}
		return err
	})
	jobs, err := shared.Kube.BatchV1().Jobs(l.namespace).List(l.ctx, metav1.ListOptions{})
	if err != nil || len(jobs.Items) > 0 {
		t.Errorf("%d Jobs of a held set, %v", len(jobs.Items), err)
	}
	l.poll("resuming the set", func() error {
		_, err := sets.Resume(l.ctx, "train", &batchv1alpha1.JobSetResume{ObjectMeta: metav1.ObjectMeta{Name: "train"}}, metav1.CreateOptions{})
		return err
	})
	l.poll("waiting for its Job", func() error {
		_, err := shared.Kube.BatchV1().Jobs(l.namespace).Get(l.ctx, "train-w-0", metav1.GetOptions{})
		return err
	})
}

// recordRestore records that the store was restored with the set as it is now, as a server does after an acceptance.
func (l *life) recordRestore() error {
	js, err := shared.JobSets.JobsetV1alpha2().JobSets(l.namespace).Get(l.ctx, "train", metav1.GetOptions{})
	if err != nil {
		return err
	}
	revision, err := strconv.ParseInt(js.ResourceVersion, 10, 64)
	if err != nil {
		return err
	}
	configMaps := shared.Kube.CoreV1().ConfigMaps(witness.Namespace)
	cm, err := configMaps.Get(l.ctx, witness.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	record, err := witness.Read(cm)
	if err != nil {
		return err
	}
	record.Restored = &witness.Restored{Revision: revision, Time: metav1.Now()}
	if err := record.Write(cm); err != nil {
		return err
	}
	_, err = configMaps.Update(l.ctx, cm, metav1.UpdateOptions{})
	return err
}
