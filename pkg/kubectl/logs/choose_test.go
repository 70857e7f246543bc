// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestChoose(t *testing.T) {
	several := with(corev1.PodRunning, running("proxy", 0), running("main", 1))
	withInit := func(pod *corev1.Pod) {
		pod.Spec.InitContainers = []corev1.Container{{Name: "fetch"}}
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{exited("fetch", 0, 5)}
	}
	for name, tc := range map[string]struct {
		pods      []*corev1.Pod
		options   options
		want      []string
		wantNotes []string
		wantErr   string
	}{
		"all pods in their order": {
			pods: []*corev1.Pod{newPod("leader", 0, 0, "a"), newPod("workers", 0, 0, "b"), newPod("workers", 1, 1, "c")},
			want: []string{"[leader-0-0] train-leader-0-0-a/main", "[workers-0-0] train-workers-0-0-b/main", "[workers-1-1] train-workers-1-1-c/main"},
		},
		"pods of one place are distinguished": {
			pods: []*corev1.Pod{newPod("workers", 0, 0, "a"), newPod("workers", 0, 0, "b"), newPod("workers", 0, 1, "c")},
			want: []string{"[workers-0-0 a] train-workers-0-0-a/main", "[workers-0-0 b] train-workers-0-0-b/main", "[workers-0-1] train-workers-0-1-c/main"},
		},
		"pods without an index have the end of their names": {
			pods: []*corev1.Pod{newPod("workers", 0, 0, "x7k2p", func(pod *corev1.Pod) { pod.Annotations = nil })},
			want: []string{"[workers-0-x7k2p] train-workers-0-0-x7k2p/main"},
		},
		"pods that have not started": {
			pods:      []*corev1.Pod{newPod("workers", 0, 0, "a"), newPod("workers", 0, 1, "b", with(corev1.PodPending, waiting("main"))), newPod("workers", 1, 0, "c", with(corev1.PodPending))},
			options:   options{selection: selection{container: "main"}},
			want:      []string{"[workers-0-0] train-workers-0-0-a/main"},
			wantNotes: []string{"not started yet (1 of 3 pods): train-workers-0-1-b"},
		},
		"the first of several containers": {
			pods: []*corev1.Pod{newPod("leader", 0, 0, "a", several)}, want: []string{"[leader-0-0] train-leader-0-0-a/proxy"},
			wantNotes: []string{"showing container proxy of proxy, main; choose another with -c, or all with --all-containers"},
		},
		"the container that the pod names": {
			pods:      []*corev1.Pod{newPod("leader", 0, 0, "a", several, func(pod *corev1.Pod) { pod.Annotations[defaultContainerKey] = "main" })},
			want:      []string{"[leader-0-0] train-leader-0-0-a/main"},
			wantNotes: []string{"showing container main of proxy, main; choose another with -c, or all with --all-containers"},
		},
		"all containers, those of the beginning first": {
			pods: []*corev1.Pod{newPod("leader", 0, 0, "a", several, withInit)}, options: options{selection: selection{allContainers: true}},
			want: []string{"[leader-0-0 fetch] train-leader-0-0-a/fetch", "[leader-0-0 proxy] train-leader-0-0-a/proxy", "[leader-0-0 main] train-leader-0-0-a/main"},
		},
		"the earlier run": {
			pods: []*corev1.Pod{newPod("leader", 0, 0, "a", several)}, options: options{selection: selection{container: "main", previous: true}},
			want: []string{"[leader-0-0] train-leader-0-0-a/main"},
		},
		"a container that no pod has": {
			pods: []*corev1.Pod{newPod("leader", 0, 0, "a", several)}, options: options{selection: selection{container: "other"}},
			wantErr: `--container: must be one of proxy, main, not "other"`,
		},
		"no pods": {wantNotes: []string{"no such pod of jobset train exists (the set is running); run `kubectl jobset why train` for the cause"}},
		"no pods yet": {
			options: options{follow: true}, wantNotes: []string{"no such pod of jobset train exists yet; waiting for them"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.options.replicatedJob == "" {
				tc.options.jobIndex = -1
			}
			got, err := tc.options.choose(sourceOf(setOf(train(), tc.pods...)))
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("want error %q, got %v", tc.wantErr, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, shown(got.streams)); diff != "" {
				t.Errorf("streams (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantNotes, got.notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFirstFailed(t *testing.T) {
	cause := func(pod string) func(*jobsetv1alpha2.JobSet) {
		return func(js *jobsetv1alpha2.JobSet) {
			js.Status.Attempts = []jobsetv1alpha2.Attempt{
				{Number: 1, Scope: jobsetv1alpha2.ScopeJobSet, Outcome: jobsetv1alpha2.OutcomeRestarted, RequestTime: at(0), EndTime: at(100), FirstCause: &jobsetv1alpha2.FailureCause{
					Job: "train-workers-1", Pod: pod, Node: "node-007", Container: "main", ExitCode: ptr.To[int32](137), Signal: ptr.To[int32](9), Reason: "OOMKilled", Message: "out of\nmemory",
				}},
				{Number: 2, Trigger: jobsetv1alpha2.TriggerFailurePolicy, Scope: jobsetv1alpha2.ScopeJobSet, RequestTime: at(100)},
			}
			js.Status.Restarts = 1
		}
	}
	early := newPod("workers", 0, 0, "a", with(corev1.PodFailed, exited("helper", 1, 40), exited("main", 0, 50)))
	late := newPod("workers", 1, 0, "b", with(corev1.PodFailed, exited("main", 137, 60)))
	well := newPod("leader", 0, 0, "c")
	for name, tc := range map[string]struct {
		js        *jobsetv1alpha2.JobSet
		attempt   int
		pods      []*corev1.Pod
		want      []string
		wantNotes []string
	}{
		"the pod on record": {
			js: train(cause(late.Name)), pods: []*corev1.Pod{well, early, late}, want: []string{"[workers-1-0] train-workers-1-0-b/main"},
			wantNotes: []string{"first cause of the end of attempt 1: container main, node node-007, OOMKilled, exit code 137, signal 9"},
		},
		"the pod on record of an attempt": {
			js: train(cause(late.Name)), attempt: 1, pods: []*corev1.Pod{well, early, late}, want: []string{"[workers-1-0] train-workers-1-0-b/main"},
			wantNotes: []string{"first cause of the end of attempt 1: container main, node node-007, OOMKilled, exit code 137, signal 9"},
		},
		"a pod that is gone": {
			js: train(cause("train-workers-1-0-z")), pods: []*corev1.Pod{well},
			wantNotes: []string{
				"pod train-workers-1-0-z, which ended attempt 1, is gone with its log; the recorded cause is container main, node node-007, OOMKilled, exit code 137, signal 9",
				"out of", "memory", "no failed pod of jobset train exists",
			},
		},
		"without a record the earliest failure": {
			js: train(), pods: []*corev1.Pod{well, late, early}, want: []string{"[workers-0-0] train-workers-0-0-a/helper"},
			wantNotes: []string{"the first failed pod that exists is train-workers-0-0-a on node node-001"},
		},
		"a pod that failed without a container, as evicted ones do": {
			js: train(), pods: []*corev1.Pod{well, newPod("workers", 0, 1, "d", func(pod *corev1.Pod) { pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodFailed, nil })},
			want: []string{"[workers-0-1] train-workers-0-1-d/main"}, wantNotes: []string{"the first failed pod that exists is train-workers-0-1-d on node node-001"},
		},
		"nothing failed": {js: train(), pods: []*corev1.Pod{well}, wantNotes: []string{"no failed pod of jobset train exists"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := options{selection: selection{jobIndex: -1}, firstFailed: true, attempt: tc.attempt}
			got, err := o.choose(sourceOf(setOf(tc.js, tc.pods...)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, shown(got.streams)); diff != "" {
				t.Errorf("streams (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantNotes, got.notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateSelection(t *testing.T) {
	for name, tc := range map[string]struct {
		selection selection
		want      string
	}{
		"everything":              {selection: selection{jobIndex: -1}},
		"a Job":                   {selection: selection{replicatedJob: "workers", jobIndex: 1}},
		"no such replicatedJob":   {selection: selection{replicatedJob: "w", jobIndex: -1}, want: `--replicated-job: must be one of leader, workers, not "w"`},
		"an index of two of them": {selection: selection{jobIndex: 0}, want: "--job-index: needs --replicated-job, which is one of leader, workers"},
		"an index too high":       {selection: selection{replicatedJob: "workers", jobIndex: 2}, want: "--job-index: must be from 0 to 1, not 2"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tc.selection.validate(train()); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
