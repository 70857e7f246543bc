// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

func claimTemplate(name string) corev1.PersistentVolumeClaim {
	claim := corev1.PersistentVolumeClaim{}
	claim.Name = name
	claim.Labels = map[string]string{"tier": "fast", jobsetv1alpha2.JobSetNameKey: "forged"}
	claim.Annotations = map[string]string{"note": "n"}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return claim
}

func withClaims(retention *jobsetv1alpha2.RetentionPolicyType, names ...string) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		policy := jobsetv1alpha2.VolumeClaimPolicy{}
		if retention != nil {
			policy.RetentionPolicy = &jobsetv1alpha2.VolumeRetentionPolicy{WhenDeleted: retention}
		}
		for _, name := range names {
			policy.Templates = append(policy.Templates, claimTemplate(name))
		}
		js.Spec.VolumeClaimPolicies = append(js.Spec.VolumeClaimPolicies, policy)
	}
}

func TestVolumeClaims(t *testing.T) {
	js := newSet(with("w", 1), isSuspended,
		withClaims(ptr.To(jobsetv1alpha2.RetentionPolicyDelete), "gone"),
		withClaims(ptr.To(jobsetv1alpha2.RetentionPolicyRetain), "kept", "there"),
		withClaims(nil, "plain"))
	o := observe(js)
	o.Claims = sets.New("there-js")
	want := func(name string, owners []metav1.OwnerReference) *corev1.PersistentVolumeClaim {
		template := claimTemplate(name)
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Name: name + "-js", Namespace: "ns", OwnerReferences: owners,
				Labels:      map[string]string{"tier": "fast", "jobset.sigs.k8s.io/jobset-name": "js"},
				Annotations: map[string]string{"note": "n"},
			},
			Spec: template.Spec,
		}
	}
	p := Decide(o)
	diff(t, "claims", []*corev1.PersistentVolumeClaim{want("gone", ownedByJS), want("kept", nil), want("plain", nil)}, p.CreateClaims)
	diff(t, "names", []string{"gone-js", "kept-js", "there-js", "plain-js"}, helper.ClaimNames(js))
}

func TestPodsMountTheClaimsThatTheyName(t *testing.T) {
	mounting := func(names ...string) func(*jobsetv1alpha2.ReplicatedJob) {
		return func(rj *jobsetv1alpha2.ReplicatedJob) {
			pod := &rj.Template.Spec.Template.Spec
			pod.Volumes = []corev1.Volume{{Name: "own"}}
			pod.InitContainers = []corev1.Container{{Name: "init", VolumeMounts: []corev1.VolumeMount{{Name: names[0]}}}}
			for _, name := range names[1:] {
				pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name})
			}
		}
	}
	js := newSet(withClaims(nil, "one", "two"), withClaims(nil, "three"), with("a", 1, mounting("two", "own")), with("b", 1, mounting("three", "one")), with("c", 1))
	volume := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name + "-js"},
		}}
	}
	want := map[string][]corev1.Volume{
		"js-a-0": {{Name: "own"}, volume("two")},
		"js-b-0": {{Name: "own"}, volume("one"), volume("three")},
		"js-c-0": nil,
	}
	for _, job := range Decide(observe(js)).CreateJobs {
		diff(t, "volumes of "+job.Name, want[job.Name], job.Spec.Template.Spec.Volumes)
	}
}
