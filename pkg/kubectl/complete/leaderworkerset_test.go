// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

func TestValuesOfLeaderWorkerSets(t *testing.T) {
	set := builders.LeaderWorkerSet("vllm", 2, 3, func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Spec.LeaderWorkerTemplate.LeaderTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "fetch"}}, Containers: []corev1.Container{{Name: "serve"}, {Name: "main"}}}}
	})
	kube := kubefake.NewClientset()
	for _, number := range []int64{4, 12, 7, 9} {
		r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("vllm-%d", number), Namespace: builders.Namespace, Labels: map[string]string{leaderworkersetv1.SetNameLabelKey: "vllm"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, leaderworkersetv1.SchemeGroupVersion.WithKind("LeaderWorkerSet"))},
		}, Revision: number}
		if number == 9 {
			r.OwnerReferences[0].UID = "another"
		}
		if err := kube.Tracker().Add(r); err != nil {
			t.Fatal(err)
		}
	}
	c := &cli.Clients{Namespace: builders.Namespace, Kube: kube, JobSets: fake.NewClientset(set)}
	for flag, want := range map[string][]string{
		"group": {"0", "1"}, "worker": {"0", "1", "2"}, "container": {"fetch", "serve", "main"},
		"to-revision": {"7", "4"}, // without the current one
	} {
		got, err := LeaderWorkerSet[flag](t.Context(), c, "vllm", nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("--%s (-want +got):\n%s", flag, diff)
		}
	}
}
