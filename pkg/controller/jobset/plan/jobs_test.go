// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// ownedByJS is the owner reference of every child of the set in tests.
var ownedByJS = []metav1.OwnerReference{{
	APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "js", UID: "uid-js",
	Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
}}

func TestNewJobIsComplete(t *testing.T) {
	js := newSet(restarted(4, 1), with("driver", 1), with("w", 3, func(rj *jobsetv1alpha2.ReplicatedJob) {
		rj.GroupName = ptr.To("workers")
		rj.Template.ObjectMeta = metav1.ObjectMeta{
			Name: "unused", Namespace: "unused", Finalizers: []string{"example.com/unused"},
			Labels:      map[string]string{"team": "a", jobsetv1alpha2.JobIndexKey: "forged"},
			Annotations: map[string]string{"note": "n"},
		}
		rj.Template.Spec.BackoffLimit = ptr.To[int32](3)
		rj.Template.Spec.Suspend = ptr.To(true)
		rj.Template.Spec.Template.ObjectMeta = metav1.ObjectMeta{Labels: map[string]string{"app": "x"}, Annotations: map[string]string{"scrape": "y"}}
		rj.Template.Spec.Template.Spec.Subdomain = "overwritten"
	}))
	js.Generation = 6
	js.Spec.Coordinator = &jobsetv1alpha2.Coordinator{ReplicatedJob: "driver", PodIndex: 2}
	identity := map[string]string{
		"jobset.sigs.k8s.io/jobset-name":            "js",
		"jobset.sigs.k8s.io/jobset-uid":             "uid-js",
		"jobset.sigs.k8s.io/replicatedjob-name":     "w",
		"jobset.sigs.k8s.io/replicatedjob-replicas": "3",
		"jobset.sigs.k8s.io/global-replicas":        "4",
		"jobset.sigs.k8s.io/restart-attempt":        "4",
		"jobset.sigs.k8s.io/job-index":              "2",
		"jobset.sigs.k8s.io/job-global-index":       "3",
		// printf ns/js-w-2 | sha1sum
		"jobset.sigs.k8s.io/job-key":         "bd0fe5a73aba252886bc5d5e21507af265158a21",
		"jobset.sigs.k8s.io/group-name":      "workers",
		"jobset.sigs.k8s.io/group-replicas":  "3",
		"jobset.sigs.k8s.io/job-group-index": "2",
		"jobset.sigs.k8s.io/coordinator":     "js-driver-0-2.js",
	}
	want := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: "js-w-2", Namespace: "ns", OwnerReferences: ownedByJS,
			Labels:      hostplan.Merged(identity, map[string]string{"team": "a"}),
			Annotations: hostplan.Merged(identity, map[string]string{"note": "n", "jobset-apiserver.io/released-at-generation": "6"}),
		},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To[int32](3),
			Suspend:      ptr.To(false),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      hostplan.Merged(identity, map[string]string{"app": "x"}),
					Annotations: hostplan.Merged(identity, map[string]string{"scrape": "y"}),
				},
				Spec: corev1.PodSpec{Subdomain: "js", Containers: []corev1.Container{{Name: "main", Image: "image"}}},
			},
		},
	}
	template := js.Spec.ReplicatedJobs[1].Template.DeepCopy()
	jobs := Decide(observe(js)).CreateJobs
	diff(t, "names", []string{"js-driver-0", "js-w-0", "js-w-1", "js-w-2"}, names(jobs))
	diff(t, "job", want, jobs[3])
	diff(t, "template of the set", template, &js.Spec.ReplicatedJobs[1].Template)
}

func TestIndexesOfJobs(t *testing.T) {
	group := func(name string) func(*jobsetv1alpha2.ReplicatedJob) {
		return func(rj *jobsetv1alpha2.ReplicatedJob) { rj.GroupName = ptr.To(name) }
	}
	js := newSet(with("a", 2, group("g")), with("b", 1, group("h")), with("none", 0, group("g")), with("c", 2, group("g")))
	type place struct{ Global, InGroup, GroupReplicas string }
	want := map[string]place{
		"js-a-0": {"0", "0", "4"}, "js-a-1": {"1", "1", "4"}, "js-b-0": {"2", "0", "1"}, "js-c-0": {"3", "2", "4"}, "js-c-1": {"4", "3", "4"},
	}
	got := map[string]place{}
	for _, job := range Decide(observe(js)).CreateJobs {
		got[job.Name] = place{
			job.Labels[jobsetv1alpha2.JobGlobalIndexKey], job.Labels[jobsetv1alpha2.JobGroupIndexKey], job.Labels[jobsetv1alpha2.GroupReplicasKey],
		}
		diff(t, "replicas of the set", "5", job.Labels[jobsetv1alpha2.GlobalReplicasKey])
	}
	diff(t, "places", want, got)
}

func TestNetworkOfJobs(t *testing.T) {
	coordinator := func(js *jobsetv1alpha2.JobSet) {
		js.Spec.Coordinator = &jobsetv1alpha2.Coordinator{ReplicatedJob: "w"}
	}
	for name, tc := range map[string]struct {
		network                        *jobsetv1alpha2.Network
		wantSubdomain, wantCoordinator string
	}{
		"the subdomain defaults to the name of the set": {&jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(true)}, "js", "js-w-0-0.js"},
		"the subdomain of the set wins":                 {&jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(true), Subdomain: "sub"}, "sub", "js-w-0-0.sub"},
		"without host names the pod template decides":   {&jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(false)}, "template", "js-w-0-0.js"},
		"without a network the pod template decides":    {nil, "template", "js-w-0-0.js"},
	} {
		t.Run(name, func(t *testing.T) {
			js := newSet(coordinator, with("w", 1, func(rj *jobsetv1alpha2.ReplicatedJob) { rj.Template.Spec.Template.Spec.Subdomain = "template" }))
			js.Spec.Network = tc.network
			job := Decide(observe(js)).CreateJobs[0]
			diff(t, "subdomain", tc.wantSubdomain, job.Spec.Template.Spec.Subdomain)
			diff(t, "coordinator", tc.wantCoordinator, job.Labels[jobsetv1alpha2.CoordinatorKey])
		})
	}
}

func TestExclusivePlacementOfJobs(t *testing.T) {
	const (
		topology = "alpha.jobset.sigs.k8s.io/exclusive-topology"
		strategy = "alpha.jobset.sigs.k8s.io/node-selector"
	)
	selector := map[string]string{"alpha.jobset.sigs.k8s.io/namespaced-job": "ns_js-w-0"}
	toleration := []corev1.Toleration{{Key: "alpha.jobset.sigs.k8s.io/no-schedule", Operator: "Exists", Effect: "NoSchedule"}}
	for name, tc := range map[string]struct {
		set, replicatedJob map[string]string
		want               map[string]string
		wantNodes          bool
	}{
		"nothing is asked":       {},
		"the set asks":           {set: map[string]string{topology: "rack"}, want: map[string]string{topology: "rack"}},
		"the replicatedJob asks": {replicatedJob: map[string]string{topology: "zone"}, want: map[string]string{topology: "zone"}},
		"the topology of the replicatedJob wins over that of the set": {set: map[string]string{topology: "rack"}, replicatedJob: map[string]string{topology: "zone"}, want: map[string]string{topology: "zone"}},
		"a replicatedJob with another topology keeps the strategy of the set": {
			set: map[string]string{topology: "rack", strategy: "true"}, replicatedJob: map[string]string{topology: "zone"},
			want: map[string]string{topology: "zone", strategy: "true"}, wantNodes: true,
		},
		"the strategy of the replicatedJob wins over that of the set": {
			set: map[string]string{topology: "rack", strategy: "set"}, replicatedJob: map[string]string{topology: "zone", strategy: "own"},
			want: map[string]string{topology: "zone", strategy: "own"}, wantNodes: true,
		},
		"a strategy without a topology on the set does nothing for a replicatedJob with one": {
			set: map[string]string{strategy: "true"}, replicatedJob: map[string]string{topology: "zone"}, want: map[string]string{topology: "zone"},
		},
		"the set asks for node selectors":                       {set: map[string]string{topology: "rack", strategy: "true"}, want: map[string]string{topology: "rack", strategy: "true"}, wantNodes: true},
		"the replicatedJob asks for node selectors":             {replicatedJob: map[string]string{topology: "zone", strategy: ""}, want: map[string]string{topology: "zone", strategy: ""}, wantNodes: true},
		"a strategy without a topology on the set does nothing": {set: map[string]string{strategy: "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			js := newSet(with("w", 1, func(rj *jobsetv1alpha2.ReplicatedJob) { rj.Template.Annotations = tc.replicatedJob }))
			js.Annotations = tc.set
			job := Decide(observe(js)).CreateJobs[0]
			for _, meta := range []metav1.ObjectMeta{job.ObjectMeta, job.Spec.Template.ObjectMeta} {
				got := map[string]string{}
				for _, key := range []string{topology, strategy} {
					if value, found := meta.Annotations[key]; found {
						got[key] = value
					}
				}
				diff(t, "annotations", tc.want, got)
			}
			pod := job.Spec.Template.Spec
			if !tc.wantNodes {
				diff(t, "node selector", map[string]string(nil), pod.NodeSelector)
				diff(t, "tolerations", []corev1.Toleration(nil), pod.Tolerations)
				return
			}
			diff(t, "node selector", selector, pod.NodeSelector)
			diff(t, "tolerations", toleration, pod.Tolerations)
		})
	}
}

func TestJobRestartAttemptLabelNeedsTheGate(t *testing.T) {
	o := observe(newSet(with("w", 1)))
	if _, found := Decide(o).CreateJobs[0].Labels[jobsetv1alpha2.JobRestartAttemptKey]; found {
		t.Error("the label is there without the feature")
	}
	o.Gates.RestartJob = true
	diff(t, "label", "0", Decide(o).CreateJobs[0].Labels[jobsetv1alpha2.JobRestartAttemptKey])
}
