// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

const (
	sequenceKind = "SequentialJob"
	// maxName is the longest name of a Workload, since pods carry it.
	maxName = 63
	// hashDigits is how many digits of the hash end the name.
	hashDigits = 5
)

// WorkloadName returns the name of the Workload that holds quota for a sequence. It follows Kueue's names for objects of other kinds.
func WorkloadName(sj *batchv1alpha1.SequentialJob) string {
	sum := sha1.Sum([]byte(strings.Join([]string{sequenceKind, batchv1alpha1.GroupName, sj.Name, string(sj.UID)}, "\n")))
	name := "sequentialjob-" + sj.Name
	if longest := maxName - hashDigits - 1; len(name) > longest {
		name = strings.TrimRight(name[:longest], "-.")
	}
	return name + "-" + hex.EncodeToString(sum[:])[:hashDigits]
}

// NewWorkload returns the Workload that holds quota for a sequence.
func NewWorkload(sj *batchv1alpha1.SequentialJob, priority int32) *Workload {
	w := &Workload{
		TypeMeta: metav1.TypeMeta{APIVersion: Group + "/" + Version, Kind: "Workload"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: sj.Namespace, Name: WorkloadName(sj), Finalizers: []string{InUseFinalizer},
			Labels:          map[string]string{JobUIDKey: string(sj.UID)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(sj, batchv1alpha1.SchemeGroupVersion.WithKind(sequenceKind))},
		},
		Spec: WorkloadSpec{PodSets: Shape(sj), QueueName: sj.Labels[QueueKey], Priority: &priority},
	}
	if class := sj.Labels[PriorityClassKey]; class != "" {
		w.Spec.PriorityClassRef = &PriorityClassRef{Group: Group, Kind: "WorkloadPriorityClass", Name: class}
	}
	if seconds, err := strconv.ParseInt(sj.Labels[MaxExecTimeKey], 10, 32); err == nil && seconds > 0 {
		w.Spec.MaximumExecutionTimeSeconds = ptr.To(int32(seconds))
	}
	return w
}
