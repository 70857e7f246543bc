// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

var now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func before(minutes int) *metav1.MicroTime {
	return ptr.To(metav1.NewMicroTime(now.Add(-time.Duration(minutes) * time.Minute)))
}

// newSet returns a set of Jobs with pods that are ready, on nodes in turn.
func newSet(nodes int, change ...func(*jobsetv1alpha2.JobSet)) *snapshot.Set {
	js := builders.JobSet("train", change...)
	js.CreationTimestamp = metav1.NewTime(now.Add(-100 * time.Minute))
	s := &snapshot.Set{JobSet: js, Now: now}
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		if len(js.Status.ReplicatedJobsStatus) == i {
			js.Status.ReplicatedJobsStatus = append(js.Status.ReplicatedJobsStatus, jobsetv1alpha2.ReplicatedJobStatus{Name: rj.Name, Active: *rj.Replicas, Ready: *rj.Replicas})
		}
		for index := range int(*rj.Replicas) {
			name := helper.JobName(js.Name, rj.Name, index)
			size := *rj.Template.Spec.Parallelism
			s.Jobs = append(s.Jobs, &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{
					jobsetv1alpha2.ReplicatedJobNameKey: rj.Name, jobsetv1alpha2.JobIndexKey: fmt.Sprint(index), jobsetv1alpha2.RestartsKey: fmt.Sprint(js.Status.Restarts)}},
				Spec:   batchv1.JobSpec{Parallelism: &size, Completions: &size},
				Status: batchv1.JobStatus{Active: size, Ready: &size},
			})
			for range size {
				s.Pods = append(s.Pods, &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{
						Labels:          map[string]string{jobsetv1alpha2.ReplicatedJobNameKey: rj.Name},
						OwnerReferences: []metav1.OwnerReference{{UID: types.UID(name), Controller: ptr.To(true)}},
					},
					Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%02d", len(s.Pods)%nodes), Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("2560Mi"), "nvidia.com/gpu": resource.MustParse("8")}}}}},
					Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
				})
			}
		}
	}
	return s
}

func text(top *Top, all bool) string {
	var out []string
	for _, line := range top.Lines(cli.Terminal{}, all) {
		out = append(out, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(out, "\n")
}

func TestTop(t *testing.T) {
	s := newSet(2, builders.WithJobs("leader", 1, 1), builders.WithJobs("workers", 2, 2), func(js *jobsetv1alpha2.JobSet) {
		js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 4}
		js.Status.Restarts, js.Status.RestartsCountTowardsMax = 2, 1
		js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "leader", Ready: 1}, {Name: "workers", Ready: 1, Active: 1, JobRestarts: []int32{0, 3}}}
		js.Status.ReadyMilliseconds = 10 * 60 * 1000
		js.Status.Attempts = []jobsetv1alpha2.Attempt{
			{Number: 1, Trigger: jobsetv1alpha2.TriggerStart, EndTime: before(60)}, {Number: 2, Trigger: jobsetv1alpha2.TriggerFailurePolicy, EndTime: before(50)},
			{Number: 3, Trigger: jobsetv1alpha2.TriggerFailurePolicy, ReadyTime: before(40)}}
	})
	s.Pods[1].Status.Phase = corev1.PodSucceeded // requests nothing any more
	s.Pods[2].Status.Conditions = nil
	s.Pods[3].Status.Conditions, s.Pods[3].Spec.NodeName = nil, ""
	s.Jobs[2].Status.Ready = ptr.To(int32(0))
	s.Jobs[2].Labels[jobsetv1alpha2.JobRestartAttemptKey] = "3"
	want := `Set jobset/train, Starting (JobsNotReady)
Jobs 2 of 3 ready
Pods 2 of 5 ready, 1 succeeded, 2 not ready
Requests 6 cpu, 10Gi memory, 32 nvidia.com/gpu
Restarts 2 of the whole set, 1 of 4 counted
Attempts 3: 1 Start, 2 FailurePolicy
Ready share 50.0%: all Jobs ready for 50m of 100m

REPLICATEDJOB JOBS READY PODS READY RESTARTS CPU MEMORY nvidia.com/gpu
leader 1/1 1/1 0 1.5 2.5Gi 8
workers 1/2 2/4 3 4.5 7.5Gi 24

DOMAIN NODES PODS READY CPU MEMORY nvidia.com/gpu
(without zone) 1 2/3 4.5 7.5Gi 24

NODE DOMAIN PODS READY CPU MEMORY nvidia.com/gpu
node-00 2/3 4.5 7.5Gi 24
(no node yet) 0/1 1.5 2.5Gi 8`
	// The pods 1 and 3 would be on node-01: one has ended, the other was not scheduled.
	top := New(s, "zone", map[string]string{})
	if diff := cmp.Diff(want, text(top, false)); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

// TestSharesAreThoseOfTheMetrics compares with the functions from which the controller computes its metrics.
func TestSharesAreThoseOfTheMetrics(t *testing.T) {
	s := newSet(1, builders.WithJobs("w", 1, 1), func(js *jobsetv1alpha2.JobSet) {
		js.Annotations = map[string]string{jobsetv1alpha2.CheckpointStepKey: "12000"}
		js.Status.ReadyMilliseconds, js.Status.GoodMilliseconds = 10*60*1000, 25*60*1000
		js.Status.Attempts = []jobsetv1alpha2.Attempt{{Number: 1, Trigger: jobsetv1alpha2.TriggerStart, ReadyTime: before(40),
			Checkpoint: &jobsetv1alpha2.Checkpoint{Step: 12000, Time: before(4), GoodMilliseconds: 25 * 60 * 1000}}}
	})
	top := New(s, "zone", nil)
	goodput, _ := helper.GoodputOf(s.JobSet)
	want := []float64{0.5, helper.ReadyShareOf(s.JobSet).Ratio(s.Now), 0.25, goodput.Ratio(s.Now)}
	if diff := cmp.Diff(want, []float64{top.ReadyShare.Share, top.ReadyShare.Share, top.Goodput.Share, top.Goodput.Share}); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	got := text(top, false)
	for _, line := range []string{"Ready share 50.0%: all Jobs ready for 50m of 100m", "Goodput 25.0%: 25m of work kept by checkpoints, the last at step 12,000 4m ago"} {
		if !strings.Contains(got, line) {
			t.Errorf("%q is missing in:\n%s", line, got)
		}
	}
}

func TestTopOfASetThatIsRestarted(t *testing.T) {
	s := newSet(1, builders.WithJobs("w", 2, 1))
	s.JobSet.Status.Restarts = 1 // after the Jobs were created
	got := New(s, "zone", nil).Pods
	if diff := cmp.Diff(Pods{Wanted: 2, Leaving: 2}, got); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

func TestTopOfAServerWithoutAttempts(t *testing.T) {
	s := newSet(1, builders.WithJobs("w", 1, 1), func(js *jobsetv1alpha2.JobSet) {
		js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", Ready: 1}}
	})
	top := New(s, "zone", nil)
	if top.ReadyShare != nil || top.Attempts != nil {
		t.Errorf("ready share %v and attempts %v were made up", top.ReadyShare, top.Attempts)
	}
	if got := text(top, false); !strings.Contains(got, "note: this server keeps no history of attempts") {
		t.Errorf("the missing history is not mentioned:\n%s", got)
	}
	if got := text(top, false); strings.Contains(got, "DOMAIN NODES") {
		t.Errorf("domains are shown although they are not known:\n%s", got)
	}
}

func TestManyNodesAreSummarized(t *testing.T) {
	s := newSet(40, builders.WithJobs("w", 20, 10))
	for _, pod := range s.Pods {
		if pod.Spec.NodeName == "node-07" || pod.Spec.NodeName == "node-08" {
			pod.Status.Conditions = nil
		}
	}
	domains := map[string]string{}
	for i := range 40 {
		domains[fmt.Sprintf("node-%02d", i)] = fmt.Sprintf("zone-%02d", i%25)
	}
	got := text(New(s, "zone", domains), false)
	for _, want := range []string{
		"\nnode-07 zone-07 0/5 7.5 12.5Gi 40\nnode-08 zone-08 0/5 7.5 12.5Gi 40\nnode-00 zone-00 5/5", // those that are not ready come first
		"\nand 30 more nodes with 150 pods, 0 of them not ready", "\nand 5 more domains", "\nzone-00 2 10/10 15 25Gi 80",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	if got := text(New(s, "zone", domains), true); !strings.Contains(got, "node-39 zone-14 5/5") || strings.Contains(got, "more nodes") {
		t.Errorf("not all nodes are shown:\n%s", got)
	}
}

func TestFieldsForScripts(t *testing.T) {
	s := newSet(1, builders.WithJobs("w", 1, 1), func(js *jobsetv1alpha2.JobSet) {
		js.Status.Attempts = []jobsetv1alpha2.Attempt{{Number: 1, Trigger: jobsetv1alpha2.TriggerStart, ReadyTime: before(25)}}
	})
	content, err := json.Marshal(New(s, "zone", map[string]string{"node-00": "a"}))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"train","namespace":"default","state":"Running","jobsReady":1,"jobsWanted":1,"attempt":1,` +
		`"pods":{"wanted":1,"existing":1,"ready":1,"succeeded":0,"failed":0,"leaving":0},` +
		`"requests":{"cpu":"1500m","memory":"2560Mi","nvidia.com/gpu":"8"},"restarts":0,"countedRestarts":0,"restartLimit":0,` +
		`"attempts":{"number":1,"byTrigger":{"Start":1}},"readyShare":{"readySeconds":1500,"lifeSeconds":6000,"share":0.25},` +
		`"replicatedJobs":[{"name":"w","jobs":1,"jobsReady":1,"pods":{"wanted":1,"existing":1,"ready":1,"succeeded":0,"failed":0,"leaving":0},"restarts":0,` +
		`"requests":{"cpu":"1500m","memory":"2560Mi","nvidia.com/gpu":"8"}}],"domainLabel":"zone",` +
		`"domains":[{"name":"a","nodes":1,"pods":1,"ready":1,"requests":{"cpu":"1500m","memory":"2560Mi","nvidia.com/gpu":"8"}}],` +
		`"nodes":[{"name":"node-00","domain":"a","pods":1,"ready":1,"requests":{"cpu":"1500m","memory":"2560Mi","nvidia.com/gpu":"8"}}]}`
	if diff := cmp.Diff(want, string(content)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

func TestFormatted(t *testing.T) {
	for name, tc := range map[string]struct {
		of             corev1.ResourceName
		quantity, want string
	}{
		"whole CPUs":            {of: "cpu", quantity: "4000", want: "4000"},
		"parts of a CPU":        {of: "cpu", quantity: "12100m", want: "12.1"},
		"bytes":                 {of: "memory", quantity: "100", want: "100"},
		"decimal bytes":         {of: "memory", quantity: "2G", want: "1.9Gi"},
		"bytes of huge pages":   {of: "hugepages-2Mi", quantity: "4Mi", want: "4Mi"},
		"numbers of a resource": {of: "example.com/gpu", quantity: "12000", want: "12,000"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, formatted(tc.of, resource.MustParse(tc.quantity))); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWidths shows the figures of a set on terminals of several widths.
func TestWidths(t *testing.T) {
	s := newSet(3, builders.WithJobs("leader", 1, 1), builders.WithJobs("workers", 2, 4), func(js *jobsetv1alpha2.JobSet) {
		js.Status.ReadyMilliseconds = 10 * 60 * 1000
		js.Status.Attempts = []jobsetv1alpha2.Attempt{{Number: 12, Trigger: jobsetv1alpha2.TriggerStart, EndTime: before(60)}, {Number: 13, Trigger: jobsetv1alpha2.TriggerFailurePolicy, ReadyTime: before(40)}}
	})
	s.Pods[2].Status.Conditions = nil
	domains := map[string]string{"node-00": "zone-a", "node-01": "zone-b", "node-02": "zone-b"}
	for _, width := range []int{60, 100, 200} {
		terminal := cli.Terminal{Width: width}
		golden.Compare(t, fmt.Sprintf("top-%d.txt", width), strings.Join(New(s, "zone", domains).Lines(terminal, false), "\n")+"\n")
	}
}
