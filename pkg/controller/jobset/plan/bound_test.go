// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestCreationsAreBounded(t *testing.T) {
	js := newSet(with("a", 700), with("b", 600))
	o := observe(js)
	for pass, want := range []struct {
		first, last string
		more        bool
	}{
		{"js-a-0", "js-a-499", true},
		{"js-a-500", "js-b-299", true},
		{"js-b-300", "js-b-599", false},
	} {
		p := Decide(o)
		created := names(p.CreateJobs)
		diff(t, fmt.Sprint("first Job of pass ", pass), want.first, created[0])
		diff(t, fmt.Sprint("last Job of pass ", pass), want.last, created[len(created)-1])
		diff(t, fmt.Sprint("more after pass ", pass), want.more, p.More)
		for _, job := range p.CreateJobs {
			job.Status.StartTime = &before
		}
		o.Jobs = append(o.Jobs, p.CreateJobs...)
	}
	diff(t, "names that a last pass creates", []string(nil), names(Decide(o).CreateJobs))
}

// TestBacklogOfJobControllerIsBounded creates Jobs that the Job controller does not take care of at once.
func TestBacklogOfJobControllerIsBounded(t *testing.T) {
	js := newSet(with("w", 5000))
	o := observe(js)
	create := func(o *Observed, want int) {
		t.Helper()
		p := Decide(*o)
		diff(t, "number of Jobs created", want, len(p.CreateJobs))
		diff(t, "whether there are more", true, p.More)
		diff(t, "time to look again", BacklogTimeout, p.RequeueAfter)
		for _, job := range p.CreateJobs {
			job.CreationTimestamp = o.Now
		}
		o.Jobs = append(o.Jobs, p.CreateJobs...)
	}
	create(&o, MaxBacklog)
	create(&o, 0)
	o.Jobs[0].Status.StartTime = &before
	o.Jobs[1].Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse}}
	o.Jobs[2].DeletionTimestamp = &before
	create(&o, 3)
	create(&o, 0)
	o.Now = metav1.NewTime(o.Now.Add(BacklogTimeout)) // the Job controller takes care of none of them
	create(&o, MaxBacklog)

	elsewhere := newSet(with("w", 5000))
	elsewhere.Spec.ReplicatedJobs[0].Template.Spec.ManagedBy = ptr.To("example.com/dispatcher")
	o = observe(elsewhere)
	create(&o, MaxBacklog)
	create(&o, MaxBacklog)
}

// TestBacklogIsSmallerWhileOtherSetsWait shares the bound between sets.
func TestBacklogIsSmallerWhileOtherSetsWait(t *testing.T) {
	o := observe(newSet(with("w", 5000)))
	for limit, want := range map[int]int{10: 10, 0: MaxBacklog, MaxBacklog + 1: MaxBacklog} {
		o.MaxBacklog = limit
		p := Decide(o)
		diff(t, "number of Jobs created", want, len(p.CreateJobs))
		diff(t, "whether there are more", true, p.More)
	}
}

// TestResumptionsWaitForTheJobController resumes a large set, whose Jobs the Job controller does not take care of at once.
func TestResumptionsWaitForTheJobController(t *testing.T) {
	seenByJobController := func(job *batchv1.Job) {
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}}
	}
	observed := func(change ...func(*jobsetv1alpha2.ReplicatedJob)) Observed {
		o := observe(newSet(with("w", 1000, change...)))
		o.MaxBacklog = 100
		for i := range 900 {
			o.Jobs = append(o.Jobs, jobNamed("w", i, jobIsSuspended, releasedAt("3"), seenByJobController))
		}
		return o
	}
	// resume returns the resumed Jobs.
	resume := func(o *Observed) (resumed []*batchv1.Job) {
		for _, name := range patchNames(Decide(*o)) {
			i := slices.IndexFunc(o.Jobs, func(job *batchv1.Job) bool { return job.Name == name })
			o.Jobs[i].Spec.Suspend = nil
			resumed = append(resumed, o.Jobs[i])
		}
		return resumed
	}
	o := observed()
	first := resume(&o)
	diff(t, "number of Jobs resumed", 100, len(first))
	p := Decide(o)
	diff(t, "number of Jobs resumed while these wait", 0, len(p.PatchJobs))
	diff(t, "number of missing Jobs created while these wait", 0, len(p.CreateJobs))
	diff(t, "number of Jobs that wait", 100, p.Backlog)
	diff(t, "whether there are more", true, p.More)
	diff(t, "time to look again", BacklogTimeout, p.RequeueAfter)
	for _, job := range first[:3] {
		job.Status.Conditions[0].Status, job.Status.StartTime = corev1.ConditionFalse, &before
	}
	diff(t, "number of Jobs resumed after three had their turn", 3, len(resume(&o)))
	o.Stalled = true
	diff(t, "number of Jobs resumed although nobody takes care of them", 100, len(resume(&o)))

	for _, job := range o.Jobs {
		job.Spec.Suspend, job.Status.StartTime = nil, &before
	}
	p = Decide(o)
	diff(t, "number of Jobs to patch in the end", 0, len(p.PatchJobs))
	diff(t, "number of missing Jobs created in the end", 100, len(p.CreateJobs))

	o = observed(func(rj *jobsetv1alpha2.ReplicatedJob) { rj.Template.Spec.ManagedBy = ptr.To("example.com/dispatcher") })
	diff(t, "number of Jobs of another controller resumed", 900, len(resume(&o)))
}

func TestBacklogLeavesEarlierDeadline(t *testing.T) {
	js := newSet(with("w", 5000), deadlineOf(30))
	o := observe(js)
	o.Gates.JobSetActiveDeadlineSeconds = true
	js.Status.StartTime = &metav1.Time{Time: o.Now.Add(-10 * time.Second)}
	diff(t, "time to look again", 20*time.Second, Decide(o).RequeueAfter)
}

func TestCreationsBeginWhereTheyAreDue(t *testing.T) {
	js := newSet(with("a", 2), with("b", 3))
	for from, want := range map[int64][]string{
		0: {"js-a-0", "js-a-1", "js-b-0", "js-b-1", "js-b-2"},
		1: {"js-a-1", "js-b-0", "js-b-1", "js-b-2", "js-a-0"},
		4: {"js-b-2", "js-a-0", "js-a-1", "js-b-0", "js-b-1"},
		5: {"js-a-0", "js-a-1", "js-b-0", "js-b-1", "js-b-2"}, // the last one was refused
		9: {"js-a-0", "js-a-1", "js-b-0", "js-b-1", "js-b-2"}, // the set had more Jobs
	} {
		diff(t, fmt.Sprintf("Jobs created from %d on", from), want, names(Decide(Observed{JobSet: js, CreateFrom: from}).CreateJobs))
	}
	jobs := Decide(Observed{JobSet: js}).CreateJobs
	for i, want := range []struct{ after, afterAll int64 }{{1, 2}, {2, 2}, {3, 5}, {4, 5}, {5, 5}} {
		diff(t, "place after "+jobs[i].Name, want.after, placeAfter(js, jobs[i], false))
		diff(t, "place after all Jobs like "+jobs[i].Name, want.afterAll, placeAfter(js, jobs[i], true))
	}
	many := newSet(with("w", 5000))
	p := Decide(Observed{JobSet: many, CreateFrom: 4500})
	diff(t, "first of many", "js-w-4500", p.CreateJobs[0].Name)
	diff(t, "last of many", "js-w-4999", p.CreateJobs[MaxBacklog-1].Name)
	diff(t, "more of many", true, p.More)
}

func TestChangesAndDeletionsAreBounded(t *testing.T) {
	const all = 2*maxChanges + 1
	jobs := func(change ...func(*batchv1.Job)) (jobs []*batchv1.Job) {
		for i := range all {
			jobs = append(jobs, jobNamed("w", i, change...))
		}
		return jobs
	}
	type set = func(*jobsetv1alpha2.JobSet)
	for name, tc := range map[string]struct {
		set  []set
		jobs []*batchv1.Job
		of   func(Plan) []string
		most int
	}{
		"Jobs of an earlier attempt":    {[]set{failurePolicy(1), restarted(1, 1)}, jobs(), func(p Plan) []string { return refNames(p.DeleteJobs) }, maxChanges},
		"active Jobs of a finished set": {[]set{completed}, jobs(), func(p Plan) []string { return refNames(p.DeleteJobs) }, maxChanges},
		"Jobs to suspend":               {[]set{isSuspended}, jobs(), patchNames, maxChanges},
		"Jobs to resume":                {nil, jobs(jobIsSuspended, releasedAt("3")), patchNames, MaxBacklog},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(append(tc.set, with("w", all))...), tc.jobs...)
			seen := sets.New[string]()
			for pass := range 20 * maxChanges / tc.most {
				o.Now = metav1.NewTime(now.Add(time.Duration(pass) * time.Second))
				p := Decide(o)
				diff(t, "number", tc.most, len(tc.of(p)))
				diff(t, "more", true, p.More)
				seen.Insert(tc.of(p)...)
			}
			diff(t, "Jobs that had their turn although all were refused", all, len(seen))
			o.Jobs = o.Jobs[:tc.most]
			diff(t, "number of the rest", tc.most, len(tc.of(Decide(o))))
		})
	}
}

func patchNames(p Plan) (names []string) {
	for _, patch := range p.PatchJobs {
		names = append(names, patch.Name)
	}
	return names
}

func TestSumsOfReplicasDoNotOverflow(t *testing.T) {
	o := observe(newSet(with("a", math.MaxInt32), with("b", math.MaxInt32), with("c", 1, dependsOn("a", jobsetv1alpha2.DependencyReady))))
	o.KeepAttempts = true
	p := Decide(o)
	diff(t, "Jobs", MaxBacklog, len(p.CreateJobs))
	diff(t, "replicas of the set", "4294967295", p.CreateJobs[0].Labels[jobsetv1alpha2.GlobalReplicasKey])
	if a := p.Status.Attempts[0]; a.CreateTime != nil {
		t.Error("all Jobs count as created")
	}
	o.Jobs = []*batchv1.Job{jobNamed("a", 0, succeeded)}
	o.JobSet.Status.Conditions = nil
	if p := Decide(o); p.Status != nil && p.Status.TerminalState != "" {
		t.Error("the set counts as", p.Status.TerminalState)
	}
}

// TestMemoryOfAPlanIsBounded compares bytes that are allocated by decisions about hostile sets with those of a set that has as
// many Jobs as one plan creates.
func TestMemoryOfAPlanIsBounded(t *testing.T) {
	entries := func(n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprint("k", i)] = ""
		}
		return m
	}
	template := func(change func(*jobsetv1alpha2.ReplicatedJob)) Observed {
		return observe(newSet(with("w", 1_000_000, change)))
	}
	suspendedJobs := func() (jobs []*batchv1.Job) {
		annotations := entries(2_000)
		for i := range maxChanges {
			job := jobNamed("w", i, jobIsSuspended)
			job.Spec.Template.Annotations = annotations
			jobs = append(jobs, job)
		}
		return jobs
	}
	usual := allocated(observe(newSet(with("w", MaxBacklog))))
	for name, tc := range map[string]struct {
		o      Observed
		factor uint64
	}{
		"a million replicas":    {observe(newSet(with("w", 1_000_000))), 2},
		"two sets of all int32": {observe(newSet(with("a", math.MaxInt32), with("b", math.MaxInt32))), 2},
		"a template of 50,000 variables": {template(func(rj *jobsetv1alpha2.ReplicatedJob) {
			rj.Template.Spec.Template.Spec.Containers[0].Env = make([]corev1.EnvVar, 50_000)
		}), 3},
		"a template of 20,000 annotations of Jobs": {template(func(rj *jobsetv1alpha2.ReplicatedJob) { rj.Template.Annotations = entries(20_000) }), 10},
		"a template of 20,000 labels of pods":      {template(func(rj *jobsetv1alpha2.ReplicatedJob) { rj.Template.Spec.Template.Labels = entries(20_000) }), 10},
		"resuming Jobs with 2,000 annotations": {observe(newSet(with("w", maxChanges, func(rj *jobsetv1alpha2.ReplicatedJob) {
			rj.Template.Spec.Template.Annotations = entries(2_000)
		}), func(js *jobsetv1alpha2.JobSet) { js.Generation = 2 }), suspendedJobs()...), 20},
	} {
		t.Run(name, func(t *testing.T) {
			got := allocated(tc.o)
			t.Logf("%d KiB; %d KiB for %d usual Jobs", got>>10, usual>>10, MaxBacklog)
			if got > tc.factor*usual {
				t.Errorf("%d KiB are more than %d times those of a usual set", got>>10, tc.factor)
			}
		})
	}
}

// allocated returns the bytes that one decision allocates.
func allocated(o Observed) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := Decide(o)
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(p)
	return after.TotalAlloc - before.TotalAlloc
}
