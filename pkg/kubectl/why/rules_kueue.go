// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	kueueplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// queued says what a queue waits for, of a suspended set that has one.
func queued(d *diagnosis) []Finding {
	return waitsInQueue(d, d.JobSet.Labels[jobsetv1alpha2.QueueNameKey])
}

// waitsInQueue says what the object waits for in the queue.
func waitsInQueue(d *diagnosis, queue string) []Finding {
	if queue == "" {
		return nil
	}
	waits := Fact{Object: d.set(), Text: fmt.Sprintf("suspended, and the label %s names the queue %s", jobsetv1alpha2.QueueNameKey, queue)}
	k := &d.Kueue
	var found []Finding
	for _, find := range []func(*diagnosis, string) *Finding{queueMissing, queueStopped, clusterUnreachable, workloadState} {
		if f := find(d, queue); f != nil {
			f.Evidence = append(f.Evidence, waits)
			found = append(found, *f)
		}
	}
	if len(found) == 0 {
		f := Finding{
			Cause: QuotaNotReserved, Summary: fmt.Sprintf("suspended by Kueue: the %s waits in the queue %s", d.noun(), queue),
			Evidence: []Fact{waits}, Commands: []string{d.kubectl("get workloads.%s", kueueGroup)},
		}
		if !k.WorkloadRead {
			f.Summary += "; its Workload could not be read"
		}
		found = append(found, f)
	}
	return found
}

func queueMissing(d *diagnosis, queue string) *Finding {
	k := &d.Kueue
	f := &Finding{Cause: QueueMissing, Commands: []string{d.kubectl("get localqueues.%s", kueueGroup)}}
	switch {
	case !k.Served:
		f.Summary = fmt.Sprintf("the %s waits for the queue %s, but the cluster does not serve %s: Kueue is not installed", d.noun(), queue,
			kueueGroup)
		f.Commands = d.kind().unqueue(d)
	case k.LocalQueueRead && k.LocalQueue == nil:
		f.Summary = fmt.Sprintf("suspended by Kueue: there is no queue (LocalQueue) %s in the namespace %s", queue, d.Namespace)
		f.Evidence = []Fact{{Object: object("localqueue", queue), Text: "does not exist"}}
	case k.ClusterQueueRead && k.ClusterQueue == nil:
		name := text(k.LocalQueue, "spec", "clusterQueue")
		f.Summary = fmt.Sprintf("suspended by Kueue: the queue %s leads to the ClusterQueue %s, which does not exist", queue, name)
		f.Evidence = []Fact{{Object: object("clusterqueue", name), Text: "does not exist"}}
		f.Commands = []string{d.kubectl("describe localqueue %s", queue), "kubectl get clusterqueues." + kueueGroup}
	default:
		return nil
	}
	return f
}

// queueStopped finds a queue that admits nothing, because it was stopped or is not set up.
func queueStopped(d *diagnosis, _ string) *Finding {
	for _, q := range []*unstructured.Unstructured{d.Kueue.ClusterQueue, d.Kueue.LocalQueue} {
		if q == nil {
			continue
		}
		name := object(q.GetKind(), q.GetName())
		describe := fmt.Sprintf("kubectl describe %s.%s %s", strings.ToLower(q.GetKind()), kueueGroup, q.GetName())
		if q == d.Kueue.LocalQueue {
			describe = d.kubectl("describe localqueue.%s %s", kueueGroup, q.GetName())
		}
		active := conditionOf(q, "Active")
		policy := text(q, "spec", "stopPolicy")
		if policy != "" && policy != "None" {
			f := &Finding{
				Cause: QueueStopped, Summary: fmt.Sprintf("suspended by Kueue: %s %s is stopped (stopPolicy %s) and admits nothing", q.GetKind(),
					q.GetName(), policy),
				Evidence: []Fact{{Object: name, Text: "spec.stopPolicy is " + policy}}, Commands: []string{describe},
			}
			if active != nil {
				f.Evidence = append(f.Evidence, conditionFact(name, active))
			}
			return f
		}
		if active != nil && active.Status != metav1.ConditionTrue {
			return &Finding{
				Cause: QueueStopped, Summary: fmt.Sprintf("suspended by Kueue: %s %s is not active: %s", q.GetKind(), q.GetName(),
					oneLine(active.Message)),
				Evidence: []Fact{conditionFact(name, active)}, Commands: []string{describe},
			}
		}
	}
	return nil
}

func workloadState(d *diagnosis, queue string) *Finding {
	k := &d.Kueue
	if !k.WorkloadRead || k.LocalQueueRead && k.LocalQueue == nil {
		return nil
	}
	if k.Workload == nil {
		return &Finding{
			Cause: WorkloadMissing,
			Summary: fmt.Sprintf("suspended by Kueue, which has made no Workload for the %s: Kueue does not run, does not manage %s, or could "+
				"not make one", d.noun(), d.kind().queued),
			Evidence: []Fact{{Object: "workloads." + kueueGroup, Text: fmt.Sprintf("none has the label %s of the %s", jobUIDLabel, d.noun())}},
			Commands: []string{"kubectl -n kueue-system get pods", "kubectl -n kueue-system logs deployment/kueue-controller-manager --tail=50"},
		}
	}
	w := k.Workload
	name := object("workload", w.GetName())
	f := &Finding{Commands: []string{d.kubectl("describe workload %s", w.GetName())}}
	reserved, evicted := conditionOf(w, kueueplan.ConditionQuotaReserved), conditionOf(w, kueueplan.ConditionEvicted)
	switch {
	case deactivated(w):
		f.Cause, f.Summary = WorkloadDeactivated, fmt.Sprintf("suspended by Kueue: its Workload %s was deactivated (spec.active is false)",
			w.GetName())
		f.Evidence = append(f.Evidence, Fact{Object: name, Text: "spec.active is false"})
		f.Commands = append(f.Commands, d.kubectl(`patch workload %s --type=merge -p '{"spec":{"active":true}}'`, w.GetName()))
	case !conditionTrue(reserved):
		noQuota(d, queue, reserved, f)
	default:
		admissionChecks(d, w, f)
	}
	if conditionTrue(evicted) && f.Cause != WorkloadPreempted {
		f.Evidence = append(f.Evidence, conditionFact(name, evicted))
	}
	return f
}

// podsReadyTimeout is the reason of the eviction of a Workload whose pods were not ready within the time that Kueue's
// configuration gives them.
const podsReadyTimeout = "PodsReadyTimeout"

// noQuota says what a Workload without quota waits for, and for whom it had to give its quota back, if it had any.
func noQuota(d *diagnosis, queue string, reserved *metav1.Condition, f *Finding) {
	w := d.Kueue.Workload
	preemption, evicted := preemptionOf(w), conditionOf(w, kueueplan.ConditionEvicted)
	taken := preemption
	if taken == nil && conditionTrue(evicted) {
		taken = evicted
	}
	waits := fmt.Sprintf("the queue %s has no quota for the %s yet", queue, d.noun())
	if reserved != nil {
		f.Evidence = append(f.Evidence, conditionFact(object("workload", w.GetName()), reserved))
		// Until the queue has tried again, the message comes from the eviction.
		if message := oneLine(reserved.Message); taken == nil || message != oneLine(taken.Message) {
			waits = fmt.Sprintf("the queue %s has no quota for the %s: %s", queue, d.noun(), message)
		}
	}
	f.Cause, f.Summary = QuotaNotReserved, "suspended by Kueue: "+waits
	switch {
	case preemption != nil:
		d.preempted(f, preemption, waits)
	case conditionTrue(evicted) && evicted.Reason == podsReadyTimeout:
		f.Cause, f.Summary = PodsNotReadyInTime, fmt.Sprintf("Kueue took the quota back %s, because the pods were not ready in time "+
			"(waitForPodsReady): %s; %s",
			ago(d.Now, evicted.LastTransitionTime.Time), oneLine(evicted.Message), waits)
		f.Commands = append(f.Commands, d.plugin("timeline %s", d.ref()))
	}
	d.placed(f, queue)
	if d.Kueue.ClusterQueue != nil {
		f.Commands = append(f.Commands, "kubectl describe clusterqueue "+d.Kueue.ClusterQueue.GetName())
	}
}

func deactivated(w *unstructured.Unstructured) bool {
	active, given, _ := unstructured.NestedBool(w.Object, "spec", "active")
	return given && !active
}

func conditionTrue(c *metav1.Condition) bool { return c != nil && c.Status == metav1.ConditionTrue }

// admissionChecks says what keeps a Workload that has its quota.
func admissionChecks(d *diagnosis, w *unstructured.Unstructured, f *Finding) {
	name := object("workload", w.GetName())
	f.Cause = AdmissionCheckPending
	checks, _, _ := unstructured.NestedSlice(w.Object, "status", "admissionChecks")
	var open []string
	for _, c := range checks {
		fields, ok := c.(map[string]any)
		if !ok || fields["state"] == "Ready" {
			continue
		}
		open = append(open, fmt.Sprint(fields["name"]))
		state := fmt.Sprintf("admission check %v is %v", fields["name"], fields["state"])
		if message, _ := fields["message"].(string); message != "" {
			state += ": " + oneLine(message)
		}
		f.Evidence = append(f.Evidence, Fact{Object: name, Text: state})
	}
	f.Summary = fmt.Sprintf("Kueue has admitted the %s and will resume it", d.noun())
	if !conditionTrue(conditionOf(w, kueueplan.ConditionAdmitted)) {
		f.Summary = fmt.Sprintf("suspended by Kueue: the quota is reserved, but the %s is not admitted yet", d.noun())
	}
	if len(open) > 0 {
		f.Summary = fmt.Sprintf("suspended by Kueue: the quota is reserved, but the admission check %s is not ready", strings.Join(open, ", "))
	}
	d.waitsForCluster(w, f)
}

func text(o *unstructured.Unstructured, path ...string) string {
	if o == nil {
		return ""
	}
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}
