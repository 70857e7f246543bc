// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	kueue "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// heldSequence is one in its second step, with quota for all of them or without.
func heldSequence(admitted bool, owned ...Child) Observed {
	sj := &batchv1alpha1.SequentialJob{ObjectMeta: metav1.ObjectMeta{Name: "etl", UID: "u", Labels: map[string]string{kueue.QueueKey: "team", kueue.PriorityClassKey: "high"}}}
	sj.Spec.Containers = []corev1.Container{{Name: "a"}, {Name: "b"}}
	sj.Status.Progress = batchv1alpha1.SequentialJobProgress{CurrentIndex: ptr.To[int32](1), CompletedIndices: []int32{0}}
	sj.Status.Steps = []batchv1alpha1.SequentialJobStepStatus{
		{Name: "a", Kind: batchv1alpha1.StepKindJob, ChildName: "etl-0", State: batchv1alpha1.StepSucceeded, Attempts: 1},
		{Name: "b", Kind: batchv1alpha1.StepKindJob, ChildName: "etl-1", State: batchv1alpha1.StepStarting, Attempts: 1},
	}
	hold := &Hold{Admission: hostplan.None[Admission](), Message: "no room"}
	if admitted {
		hold = &Hold{Admission: hostplan.Of(Admission{
			Key: "linux", Workload: &kueue.Workload{},
			Directives: map[string]kueue.Directives{kueue.MainPodSet: {NodeSelector: map[string]string{"os": "linux"}}},
		})}
	}
	return Observed{SequentialJob: sj, Children: owned, Queue: known(Queue{Served: true, Hold: hold}), Earlier: hostplan.None[string](), Contest: hostplan.None[Contest](), Restored: hostplan.None[Restored]()}
}

func known(q Queue) hostplan.Known[Queue] { return hostplan.Of(q) }

func heldChild(change ...func(*Child)) Child {
	c := Child{ChildRef: ChildRef{Kind: batchv1alpha1.StepKindJob, Name: "etl-1", UID: "child"}, Attempt: 1, Admission: "linux", Busy: true}
	for _, f := range change {
		f(&c)
	}
	return c
}

func stopped(c *Child) { c.Suspended, c.Busy = true, false }

func TestStepsRunWithTheQuotaOfTheSequence(t *testing.T) {
	p := Decide(heldSequence(false))
	if p.creates() || p.Status == nil || p.Status.Steps[1].State != batchv1alpha1.StepWaiting {
		t.Errorf("without quota: %+v", p)
	}
	if c := p.Status.Conditions; !strings.Contains(progressingOf(c).Message, "Job 1 waits for quota in queue team: no room") {
		t.Errorf("conditions %+v", c)
	}
	job := Decide(heldSequence(true)).CreateJob
	if job == nil || job.Spec.Suspend != nil || job.Labels[kueue.QueueKey] != "" || job.Labels[kueue.PriorityClassKey] != "" ||
		job.Spec.Template.Spec.NodeSelector["os"] != "linux" || job.Annotations[batchv1alpha1.AdmissionKey] != "linux" {
		t.Errorf("with quota: %+v", job)
	}
	contradicts := heldSequence(true)
	contradicts.SequentialJob.Spec.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeSelector: map[string]string{"os": "windows"}}}
	if p := Decide(contradicts); p.creates() || !strings.Contains(progressingOf(p.Status.Conditions).Message, `the node selector os must be "linux", but is "windows" already`) {
		t.Errorf("a step that cannot run there: %+v", p)
	}
}

// TestUnknownQuotaChangesNothing: a controller that has just started knows no Workload, and neither does one while Kueue is away.
func TestUnknownQuotaChangesNothing(t *testing.T) {
	for name, served := range map[string]bool{"the Workloads are being read": true, "Kueue is away": false} {
		t.Run(name, func(t *testing.T) {
			unknown := func(owned ...Child) Observed {
				o := heldSequence(false, owned...)
				o.Queue = known(Queue{Served: served, Hold: &Hold{}})
				return o
			}
			p := Decide(unknown(heldChild()))
			if len(p.Suspend) != 0 || len(p.Delete) != 0 || p.creates() || p.Status.Steps[1].State != batchv1alpha1.StepRunning {
				t.Errorf("a step that runs: %+v", p)
			}
			p = Decide(unknown(heldChild(stopped)))
			if len(p.Suspend) != 0 || len(p.Delete) != 0 || p.creates() || p.Status.Steps[1].State != batchv1alpha1.StepWaiting {
				t.Errorf("a step that waits: %+v", p)
			}
			p = Decide(unknown())
			if p.creates() || p.Status.Steps[1].State != batchv1alpha1.StepWaiting {
				t.Errorf("a step that has not begun: %+v", p)
			}
			if message := progressingOf(p.Status.Conditions).Message; served && !strings.Contains(message, "the Workloads are not known yet") {
				t.Errorf("the message is %q", message)
			}
		})
	}
}

// TestUnknownQuotaReplacesNoReason keeps what a controller that knows the Workloads has said. Another one that has just started would write
// against it without end.
func TestUnknownQuotaReplacesNoReason(t *testing.T) {
	o := heldSequence(false)
	o.Queue.Value().Hold.Message = "the ClusterQueue is full"
	knows := Decide(o)
	o.SequentialJob.Status = *knows.Status
	o.Queue = known(Queue{Served: true, Hold: &Hold{}})
	if p := Decide(o); p.Status != nil {
		t.Errorf("Workloads that are not known change the message %q to %q", progressingOf(knows.Status.Conditions).Message, progressingOf(p.Status.Conditions).Message)
	}
	o.SequentialJob.Labels["kueue.x-k8s.io/queue-name"] = "another"
	if p := Decide(o); p.Status == nil || !strings.HasSuffix(progressingOf(p.Status.Conditions).Message, "in queue another: "+unknownWorkloads) {
		t.Errorf("the message is about another queue: %+v", p.Status)
	}
}

// TestUnknownQuotaTakesNoStartBack keeps a step that is about to start, because another controller knows that there is quota.
func TestUnknownQuotaTakesNoStartBack(t *testing.T) {
	o := heldSequence(true)
	starts := Decide(o)
	if starts.Status == nil || starts.Status.Steps[1].State != batchv1alpha1.StepStarting {
		t.Fatalf("with quota: %+v", starts.Status)
	}
	o.SequentialJob.Status = *starts.Status
	o.Queue = known(Queue{Served: true, Hold: &Hold{}})
	if p := Decide(o); p.Status != nil || p.creates() {
		t.Errorf("Workloads that are not known change the step: %+v", p)
	}
	o.Queue = known(Queue{Served: true, Hold: &Hold{Admission: hostplan.None[Admission]()}})
	if p := Decide(o); p.Status == nil || p.Status.Steps[1].State != batchv1alpha1.StepWaiting {
		t.Errorf("without quota: %+v", p.Status)
	}
}

// TestStoppedStepsWaitForKueue says that Kueue is away also if the step has a child, whose pods lack nothing.
func TestStoppedStepsWaitForKueue(t *testing.T) {
	o := heldSequence(false, heldChild(stopped))
	o.Queue = known(Queue{Hold: &Hold{}})
	p := Decide(o)
	c := meta.FindStatusCondition(p.Status.Conditions, batchv1alpha1.ConditionResourcesUnavailable)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != batchv1alpha1.ReasonQueueUnavailable {
		t.Errorf("the condition is %+v", c)
	}
	o.SequentialJob.Status = *p.Status
	o.Now = metav1.NewTime(o.Now.Add(time.Minute))
	if p := Decide(o); p.Status != nil || len(p.Events) > 0 {
		t.Errorf("a later look changes %+v", p)
	}
}

func TestEvictedStepsStop(t *testing.T) {
	p := Decide(heldSequence(false, heldChild()))
	if len(p.Suspend) != 1 || !p.Suspend[0].Suspend || len(p.Delete) != 0 || p.Status.Steps[1].State != batchv1alpha1.StepWaiting {
		t.Errorf("evicted: %+v", p)
	}
	if p := Decide(heldSequence(false, heldChild(stopped))); len(p.Suspend) != 0 || len(p.Events) != 0 {
		t.Errorf("evicted and stopped: %+v", p)
	}
	p = Decide(heldSequence(true, heldChild(stopped)))
	if len(p.Suspend) != 1 || p.Suspend[0].Suspend || p.Status.Steps[1].Attempts != 1 || p.Status.Steps[1].State != batchv1alpha1.StepStarting {
		t.Errorf("admitted to the same nodes: %+v", p)
	}
	if p = Decide(heldSequence(true, heldChild())); len(p.Suspend) != 0 || p.Status.Steps[1].State != batchv1alpha1.StepRunning {
		t.Errorf("resumed: %+v", p)
	}
	p = Decide(heldSequence(true, heldChild(stopped, func(c *Child) { c.Admission = "windows" })))
	if len(p.Suspend) != 0 || p.Status.Steps[1].Attempts != 2 || p.Events[0].Reason != reasonAdmittedElsewhere {
		t.Errorf("admitted to others: %+v", p)
	}
}

func TestBusyAndReady(t *testing.T) {
	for name, test := range map[string]struct {
		owned       []Child
		busy, ready bool
	}{
		"between two steps":         {nil, false, true},
		"pods run":                  {[]Child{heldChild()}, true, false},
		"pods are ready":            {[]Child{heldChild(func(c *Child) { c.Ready = true })}, true, true},
		"pods may come":             {[]Child{heldChild(func(c *Child) { c.Busy = false })}, true, false},
		"suspended":                 {[]Child{heldChild(stopped)}, false, false},
		"suspended while pods stop": {[]Child{heldChild(func(c *Child) { c.Suspended = true })}, true, false},
		"ended":                     {[]Child{heldChild(func(c *Child) { c.End, c.Busy = Succeeded, false })}, false, true},
	} {
		o := heldSequence(true, test.owned...)
		if busy, ready := Busy(o), PodsReady(o); busy != test.busy || ready != test.ready {
			t.Errorf("%s: busy %t, ready %t", name, busy, ready)
		}
	}
}

func progressingOf(conditions []metav1.Condition) metav1.Condition {
	for _, c := range conditions {
		if c.Type == batchv1alpha1.ConditionProgressing {
			return c
		}
	}
	return metav1.Condition{}
}
