// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	jobsetfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

func owned(name string, uid, owner types.UID, labels map[string]string) metav1.ObjectMeta {
	labels[jobsetv1alpha2.JobSetNameKey] = "train"
	return metav1.ObjectMeta{
		Name: name, Namespace: builders.Namespace, UID: uid, Labels: labels,
		OwnerReferences: []metav1.OwnerReference{{UID: owner, Controller: ptr.To(true)}},
	}
}

func jobOf(owner types.UID, replicatedJob string, index int) *batchv1.Job {
	name := fmt.Sprintf("train-%s-%d", replicatedJob, index)
	return &batchv1.Job{ObjectMeta: owned(name+"-"+string(owner), types.UID(name+"-"+string(owner)), owner, map[string]string{
		jobsetv1alpha2.ReplicatedJobNameKey: replicatedJob, jobsetv1alpha2.JobIndexKey: fmt.Sprint(index)})}
}

func podOf(job *batchv1.Job, index int) *corev1.Pod {
	meta := owned(fmt.Sprintf("%s-%d", job.Name, index), "", job.UID, map[string]string{})
	meta.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: fmt.Sprint(index)}
	return &corev1.Pod{ObjectMeta: meta}
}

func TestLoadKeepsAndSortsTheChildrenOfThisSet(t *testing.T) {
	js := builders.JobSet("train", builders.WithJobs("z", 11, 1), builders.WithJobs("a", 1, 2), func(js *jobsetv1alpha2.JobSet) { js.UID = "mine" })
	z10, z2, a0 := jobOf("mine", "z", 10), jobOf("mine", "z", 2), jobOf("mine", "a", 0)
	// A set of the same name was deleted, and its Job is still there.
	foreign := jobOf("other", "z", 2)
	objects := []runtime.Object{z10, z2, a0, foreign, podOf(a0, 1), podOf(a0, 0), podOf(z2, 0), podOf(foreign, 0)}
	c := &cli.Clients{Namespace: builders.Namespace, Kube: fake.NewClientset(objects...), JobSets: jobsetfake.NewClientset(js)}

	s, err := snapshot.Load(t.Context(), c, "train", true)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, job := range s.Jobs {
		got = append(got, job.Name)
		for _, pod := range s.Pods {
			if metav1.IsControlledBy(pod, job) {
				got = append(got, pod.Name)
			}
		}
	}
	want := []string{"train-z-2-mine", "train-z-2-mine-0", "train-z-10-mine", "train-a-0-mine", "train-a-0-mine-0", "train-a-0-mine-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Jobs with their pods (-want +got):\n%s", diff)
	}
	if without, err := snapshot.Load(t.Context(), c, "train", false); err != nil || len(without.Pods) > 0 {
		t.Errorf("pods were left out on request: got %d pods, error %v", len(without.Pods), err)
	}
}
