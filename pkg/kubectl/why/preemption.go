// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kueueplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// Kueue names the Workload that had to have room by its UID, and by that of the object behind it. Users know neither.

// maxWorkloads bounds a list of Workloads in which one is looked for by its UID alone.
const maxWorkloads = 500

var preemptionMessage = regexp.MustCompile(`\(UID: ([^,)]+)(?:, JobUID: ([^,)]+))?\)(?: due to ([^;]+))?`)

// preemptor is what a message of Kueue says of a preemption; fields that it lacks are empty.
type preemptor struct{ uid, jobUID, because string }

func preemptorOf(message string) preemptor {
	found := preemptionMessage.FindStringSubmatch(message)
	if found == nil {
		return preemptor{}
	}
	known := func(uid string) string {
		if uid == "UNKNOWN" {
			return ""
		}
		return uid
	}
	return preemptor{uid: known(found[1]), jobUID: known(found[2]), because: oneLine(found[3])}
}

// preemptionOf returns the condition of a Workload that lost its quota to another one and has not got it back.
func preemptionOf(workload *unstructured.Unstructured) *metav1.Condition {
	if c := conditionOf(workload, kueueplan.ConditionPreempted); conditionTrue(c) {
		return c
	}
	if c := conditionOf(workload, kueueplan.ConditionEvicted); conditionTrue(c) && c.Reason == kueueplan.ReasonPreempted {
		return c
	}
	return nil
}

// preemptor looks for the Workload in the whole cluster, and for users who may not do so in the namespace of the set.
func (l *loader) preemptor(ctx context.Context, version string, p preemptor) *unstructured.Unstructured {
	if p.uid == "" && p.jobUID == "" {
		return nil
	}
	options := metav1.ListOptions{Limit: maxWorkloads}
	if p.jobUID != "" {
		options.LabelSelector = jobUIDLabel + "=" + p.jobUID
	}
	workloads := l.Dynamic.Resource(kueue(version, "workloads"))
	list, err := workloads.List(ctx, options)
	if apierrors.IsForbidden(err) {
		l.gap("workloads."+kueueGroup+" of other namespaces", err)
		list, err = workloads.Namespace(l.Namespace).List(ctx, options)
	}
	if err != nil {
		l.gap("workloads."+kueueGroup, err)
		return nil
	}
	var ofJob *unstructured.Unstructured
	for i := range list.Items {
		item := &list.Items[i]
		if p.uid != "" && string(item.GetUID()) == p.uid {
			return item
		}
		if p.jobUID != "" && item.GetLabels()[jobUIDLabel] == p.jobUID {
			ofJob = item // it was recreated since
		}
	}
	return ofJob
}

// preempted says for whom the set had to make room; waits is what it waits for now.
func (d *diagnosis) preempted(f *Finding, c *metav1.Condition, waits string) {
	by := "another workload, which is gone or may not be read"
	if w := d.Kueue.Preemptor; w != nil {
		by = d.nameOf(w)
		f.Commands = append(f.Commands, fmt.Sprintf("kubectl -n %s describe workload %s", w.GetNamespace(), w.GetName()))
	}
	if because := preemptorOf(c.Message).because; because != "" {
		by += " (" + because + ")"
	}
	f.Cause, f.Summary = WorkloadPreempted, fmt.Sprintf("preempted %s by %s; %s", ago(d.Now, c.LastTransitionTime.Time), by, waits)
	f.Evidence = append(f.Evidence, conditionFact(object("workload", d.Kueue.Workload.GetName()), c))
}

// nameOf names a Workload by the object behind it, as users know that.
func (d *diagnosis) nameOf(workload *unstructured.Unstructured) string {
	name := "the Workload " + workload.GetName()
	if owner := metav1.GetControllerOf(workload); owner != nil {
		name = fmt.Sprintf("the %s %s", owner.Kind, owner.Name)
	}
	if ns := workload.GetNamespace(); ns != d.Namespace {
		name += " of the namespace " + ns
	}
	return name
}
