// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

var now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// newSet returns a set that is three hours old.
func newSet(change ...func(*jobsetv1alpha2.JobSet)) *snapshot.Set {
	js := builders.JobSet("train", change...)
	js.CreationTimestamp = ago(3 * time.Hour)
	return &snapshot.Set{JobSet: js, Now: now}
}

// addJob adds a Job with so many pods that run and are ready.
func addJob(s *snapshot.Set, replicatedJob string, index, pods int, change ...func(*batchv1.Job)) {
	name := fmt.Sprintf("train-%s-%d", replicatedJob, index)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), CreationTimestamp: ago(2 * time.Hour),
			Labels: map[string]string{jobsetv1alpha2.ReplicatedJobNameKey: replicatedJob, jobsetv1alpha2.JobIndexKey: fmt.Sprint(index), jobsetv1alpha2.RestartsKey: fmt.Sprint(s.JobSet.Status.Restarts)},
		},
		Spec:   batchv1.JobSpec{Parallelism: ptr.To(int32(pods)), Completions: ptr.To(int32(pods))},
		Status: batchv1.JobStatus{Active: int32(pods), Ready: ptr.To(int32(pods))},
	}
	for _, f := range change {
		f(job)
	}
	s.Jobs = append(s.Jobs, job)
	count(s, job)
	for i := range pods {
		s.Pods = append(s.Pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d-x", name, i), CreationTimestamp: ago(time.Hour),
				Annotations:     map[string]string{batchv1.JobCompletionIndexAnnotation: fmt.Sprint(i)},
				OwnerReferences: []metav1.OwnerReference{{UID: job.UID, Controller: ptr.To(true)}},
			},
			Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", i%7), Containers: []corev1.Container{{Name: "main"}}},
			Status: corev1.PodStatus{
				Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
				ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
			},
		})
	}
}

// count notes a Job in the status of the set, as the controller does.
func count(s *snapshot.Set, job *batchv1.Job) {
	counts, name := &s.JobSet.Status.ReplicatedJobsStatus, snapshot.ReplicatedJob(job)
	at := slices.IndexFunc(*counts, func(c jobsetv1alpha2.ReplicatedJobStatus) bool { return c.Name == name })
	if at < 0 {
		at = len(*counts)
		*counts = append(*counts, jobsetv1alpha2.ReplicatedJobStatus{Name: name})
	}
	switch s.JobState(job) {
	case snapshot.JobReady:
		(*counts)[at].Ready++
	case snapshot.JobComplete:
		(*counts)[at].Succeeded++
	}
}

// crashLoop, unschedulable and failedPod make a pod one that is not well.
func crashLoop(pod *corev1.Pod) {
	pod.Status.Conditions = nil
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", RestartCount: 7, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}},
	}}
}

func unschedulable(pod *corev1.Pod) {
	pod.Spec.NodeName = ""
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/7 nodes are available: 7 Insufficient cpu."}}}
}

func failedPod(pod *corev1.Pod) {
	pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", Message: "cuda\nlost"}}}}}
}

func lines(s *snapshot.Set, all bool) []string { return New(s).Lines(cli.Terminal{}, now, all) }

func TestSmallSetIsShownWhole(t *testing.T) {
	s := newSet(builders.WithJobs("leader", 1, 1), builders.WithJobs("workers", 4, 2, func(rj *jobsetv1alpha2.ReplicatedJob) {
		rj.DependsOn = []jobsetv1alpha2.DependsOn{{Name: "leader", Status: jobsetv1alpha2.DependencyReady}}
	}), func(js *jobsetv1alpha2.JobSet) {
		js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 4}
		js.Status.Restarts, js.Status.RestartsCountTowardsMax, js.Status.AddedRestarts = 2, 1, 1
		js.Status.Attempts = []jobsetv1alpha2.Attempt{{Number: 2}, {Number: 3}}
		js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "leader", Active: 1}}
		js.Status.Conditions = []metav1.Condition{{Type: jobsetv1alpha2.JobSetRestarting, Status: metav1.ConditionTrue, Reason: "RestartRequested", Message: "restart requested by alice"}}
	})
	addJob(s, "leader", 0, 1, func(job *batchv1.Job) { job.Status.Ready = nil })
	addJob(s, "workers", 1, 2, func(job *batchv1.Job) {
		job.DeletionTimestamp = ptr.To(ago(time.Minute))
		job.Labels[jobsetv1alpha2.RestartsKey] = "1"
	})
	crashLoop(s.Pods[0])
	s.Pods[1].DeletionTimestamp = ptr.To(ago(time.Minute))
	want := strings.Trim(`
NAME                            STATE                   READY  RESTARTS  AGE   NODE    MESSAGE
jobset/train                    Restarting              0/5    2         3h           RestartRequested: restart requested by alice; attempt 3, 1 of 5 restarts used
├─ replicatedJob/leader         Starting                0/1    0
│  └─ job/train-leader-0        Starting                0/1    0         120m
│     └─ pod/train-leader-0-0-x  CrashLoopBackOff        0/1    7         60m   node-0  main ended with exit code 137
└─ replicatedJob/workers        3 Missing, 1 Terminating  0/4    0
   ├─ job/train-workers-1       Terminating             1/2    0         120m          of an earlier attempt
   │  ├─ pod/train-workers-1-0-x  Terminating             1/1    0         60m   node-0
   │  └─ pod/train-workers-1-1-x  Running                 1/1    0         60m   node-1
   └─ job/train-workers-[0,2-3]  Missing                                              waits until leader is ready, 0 of 1 (dependsOn)
`, "\n")
	same(t, want, lines(s, false))
}

// same compares lines without regard to how far columns are apart.
func same(t *testing.T, want string, got []string) {
	t.Helper()
	squeeze := func(text string) (out []string) {
		for _, line := range strings.Split(text, "\n") {
			out = append(out, strings.Join(strings.Fields(line), " "))
		}
		return out
	}
	if diff := cmp.Diff(squeeze(want), squeeze(strings.Join(got, "\n"))); diff != "" {
		t.Errorf("lines (-want +got):\n%s\n%s", diff, strings.Join(got, "\n"))
	}
}

func TestColumnsStandUnderEachOther(t *testing.T) {
	s := newSet(builders.WithJobs("w", 2, 1))
	addJob(s, "w", 0, 1)
	addJob(s, "w", 1, 1)
	want := []string{
		"NAME                       STATE    READY  RESTARTS  AGE   NODE    MESSAGE",
		"jobset/train               Running  2/2    0         3h            attempt 1",
		"└─ replicatedJob/w         Ready    2/2    0",
		"   ├─ job/train-w-0        Ready    1/1    0         120m",
		"   │  └─ pod/train-w-0-0-x  Running  1/1    0         60m   node-0",
		"   └─ job/train-w-1        Ready    1/1    0         120m",
		"      └─ pod/train-w-1-0-x  Running  1/1    0         60m   node-0",
	}
	got := lines(s, false)
	column := func(line, word string) int { return len([]rune(line[:strings.Index(line, word)])) }
	if column(got[0], "NODE") != column(got[4], "node-0") || column(got[0], "STATE") != column(got[4], "Running") {
		t.Errorf("columns are not under their header:\n%s", strings.Join(got, "\n"))
	}
	same(t, strings.Join(want, "\n"), got)
}

func TestLargeSetIsSummarized(t *testing.T) {
	s := newSet(builders.WithJobs("leader", 1, 1), builders.WithJobs("workers", 24, 100), builders.WithJobs("late", 400, 1))
	addJob(s, "leader", 0, 1)
	for i := range 24 {
		addJob(s, "workers", i, 100)
	}
	crash := s.Pods[1+100*3:]
	for i := range 50 {
		crashLoop(crash[i])
	}
	failedPod(s.Pods[1+100*5+42])
	unschedulable(s.Pods[1+100*7+1])
	s.Pods[1+100*9+99].Status.Conditions = nil // runs, and is not ready
	s.Jobs[8].Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "too many failures"}}
	s.JobSet.Status.ReplicatedJobsStatus[1].Ready--
	want := `NAME STATE READY RESTARTS AGE NODE MESSAGE
jobset/train Starting 24/425 0 3h JobsNotReady; attempt 1
├─ replicatedJob/leader Ready 1/1 0
│ └─ job/train-leader-0 Ready 1/1 0 120m node-0
├─ replicatedJob/workers 23 Ready, 1 Failed 23/24 0
│ ├─ job/train-workers-3 Ready 50/100 0 120m
│ │ ├─ pod/train-workers-3-0-x CrashLoopBackOff 0/1 7 60m node-0 main ended with exit code 137
│ │ ├─ pod/train-workers-3-1-x CrashLoopBackOff 0/1 7 60m node-1 main ended with exit code 137
│ │ ├─ pod/train-workers-3-2-x CrashLoopBackOff 0/1 7 60m node-2 main ended with exit code 137
│ │ ├─ 47 more pods CrashLoopBackOff 7 nodes
│ │ └─ 50 more pods Running 7 nodes
│ ├─ job/train-workers-5 Ready 99/100 0 120m
│ │ ├─ pod/train-workers-5-42-x Error 0/1 0 60m node-0 main ended with exit code 3: cuda lost
│ │ └─ 99 more pods Running 7 nodes
│ ├─ job/train-workers-7 Failed 99/100 0 120m BackoffLimitExceeded: too many failures
│ │ ├─ pod/train-workers-7-1-x Pending 0/1 0 60m 0/7 nodes are available: 7 Insufficient cpu.
│ │ └─ 99 more pods Running 7 nodes
│ ├─ job/train-workers-9 Ready 99/100 0 120m
│ │ ├─ pod/train-workers-9-99-x Running 1/1 0 60m node-1
│ │ └─ 99 more pods Running 7 nodes
│ └─ 20 more Jobs Ready 2000/2000 0 7 nodes
└─ replicatedJob/late Missing 0/400 0
└─ job/train-late-[0-399] Missing not created yet; ask ` + "`kubectl jobset why train`" + ` if this stays`
	same(t, want, lines(s, false))
}

func TestTenThousandPodsFitOnAScreen(t *testing.T) {
	s := newSet(builders.WithJobs("workers", 100, 100))
	for i := range 100 {
		addJob(s, "workers", i, 100)
	}
	for i, pod := range s.Pods {
		switch i % 3 {
		case 0:
			crashLoop(pod)
		case 1:
			unschedulable(pod)
		}
	}
	if got := len(lines(s, false)); got > 60 {
		t.Errorf("%d lines are more than fit on a screen", got)
	}
	if got, want := len(lines(s, true)), 1+1+1+100+10_000; got != want {
		t.Errorf("all: got %d lines, want %d", got, want)
	}
}

func TestStatesAreColored(t *testing.T) {
	s := newSet(builders.WithJobs("w", 2, 1))
	addJob(s, "w", 0, 1)
	failedPod(s.Pods[0])
	terminal := cli.Terminal{Colors: true}
	got := strings.Join(New(s).Lines(terminal, now, false), "\n")
	for _, want := range []string{terminal.Paint(cli.Bad, "Error"), terminal.Paint(cli.Quiet, Missing), terminal.Paint(cli.Busy, "Starting")} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}

func TestWhyJobsAreMissing(t *testing.T) {
	is := func(of string) func(*jobsetv1alpha2.JobSet) {
		return func(js *jobsetv1alpha2.JobSet) {
			js.Status.Conditions = append(js.Status.Conditions, metav1.Condition{Type: of, Status: metav1.ConditionTrue})
		}
	}
	for want, change := range map[string]func(*jobsetv1alpha2.JobSet){
		"the set has finished":                                   is(jobsetv1alpha2.JobSetFailed),
		"the set is being deleted":                               func(js *jobsetv1alpha2.JobSet) { js.DeletionTimestamp = &metav1.Time{} },
		"left to the controller example.com/other":               func(js *jobsetv1alpha2.JobSet) { js.Spec.ManagedBy = ptr.To("example.com/other") },
		"the name is taken, see the condition ChildNameConflict": is(jobsetv1alpha2.ChildNameConflict),
		"not created again yet":                                  is(jobsetv1alpha2.JobSetRestarting),
	} {
		t.Run(want, func(t *testing.T) {
			tree := New(newSet(builders.WithJobs("w", 1, 1), change))
			if diff := cmp.Diff(want, tree.ReplicatedJobs[0].Jobs[0].Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWidths shows the tree of a set in trouble on terminals of several widths.
func TestWidths(t *testing.T) {
	s := newSet(builders.WithJobs("leader", 1, 1), builders.WithJobs("workers", 4, 2, func(rj *jobsetv1alpha2.ReplicatedJob) {
		rj.DependsOn = []jobsetv1alpha2.DependsOn{{Name: "leader", Status: jobsetv1alpha2.DependencyReady}}
	}), func(js *jobsetv1alpha2.JobSet) {
		js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 4}
		js.Status.Attempts = []jobsetv1alpha2.Attempt{{Number: 3}}
		js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "leader", Active: 1}}
	})
	addJob(s, "leader", 0, 1, func(job *batchv1.Job) { job.Status.Ready = nil })
	crashLoop(s.Pods[0])
	addJob(s, "workers", 0, 2)
	for _, width := range []int{60, 100, 200} {
		for _, terminal := range []cli.Terminal{{Width: width}, {Width: width, ASCII: true}} {
			name := fmt.Sprintf("tree-%d.txt", width)
			if terminal.ASCII {
				name = fmt.Sprintf("tree-%d-ascii.txt", width)
			}
			got := New(s).Lines(terminal, now, false)
			golden.Compare(t, name, strings.Join(got, "\n")+"\n")
			for _, line := range got {
				if terminal.ASCII && strings.ContainsFunc(line, func(r rune) bool { return r > unicode.MaxASCII }) {
					t.Errorf("not all of ASCII: %s", line)
				}
			}
		}
	}
}
