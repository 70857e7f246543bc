// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// What a user decided about the set: to delete it, to suspend it, to give it to another controller.

// usualFinalizers are the finalizers that Kubernetes itself puts and removes.
var usualFinalizers = []string{metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents, batchv1.JobTrackingFinalizer}

func foreignFinalizers(o metav1.Object) []string {
	return slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return slices.Contains(usualFinalizers, f) })
}

const (
	// deletionGrace is how long an object may stay after the time of its deletion before that is reported.
	deletionGrace = 5 * time.Second
	// maxFacts bounds how many alike objects are named as evidence.
	maxFacts = 3
)

func deletion(d *diagnosis) []Finding {
	js := d.JobSet
	since := js.DeletionTimestamp.Time
	if held := foreignFinalizers(js); len(held) > 0 {
		return []Finding{d.keptBy(js, held, d.kubectl("get jobset %s -o jsonpath={.metadata.finalizers}", js.Name))}
	}
	f := Finding{
		Cause:   Deleting,
		Summary: fmt.Sprintf("the set was deleted %s and waits until its jobs and pods are gone", ago(d.Now, since)),
		Evidence: []Fact{{Object: d.set(), Text: fmt.Sprintf("deleted; %s and %s are left", count(len(d.Jobs), "job"), count(len(d.Pods), "pod")),
			Time: at(since)}},
		Commands: []string{d.kubectl("wait --for=delete jobset/%s", js.Name)},
	}
	return []Finding{f}
}

// keptBy says which finalizers of other controllers keep a deleted object. The last command removes the first of them.
func (d *diagnosis) keptBy(o metav1.Object, held []string, commands ...string) Finding {
	return Finding{
		Cause: FinalizerBlocksDeletion,
		Summary: fmt.Sprintf("the %s is being deleted, but the finalizer %s keeps it; the controller that added the finalizer must remove it",
			d.noun(), strings.Join(held, ", ")),
		Evidence: []Fact{{Object: d.set(), Text: "deleted, with the finalizers " + strings.Join(o.GetFinalizers(), ", "),
			Time: at(o.GetDeletionTimestamp().Time)}},
		Commands: append(commands, d.removeFinalizer(d.kind().Names[0], o.GetName(), o, held[0])),
	}
}

// removeFinalizer is the command that removes a finalizer, for when no controller is left to do it.
func (d *diagnosis) removeFinalizer(kind, name string, o metav1.Object, finalizer string) string {
	index := slices.Index(o.GetFinalizers(), finalizer)
	return d.kubectl(`patch %s %s --type=json -p '[{"op":"remove","path":"/metadata/finalizers/%d"}]'  # only if its controller is gone`, kind,
		name, index)
}

// eachChild calls a function with the kind and the object of each Job, pod and LeaderWorkerSet.
func (d *diagnosis) eachChild(do func(kind string, o metav1.Object)) {
	for _, job := range d.Jobs {
		do("job", job)
	}
	for _, pod := range d.Pods {
		do("pod", pod)
	}
	if d.Roles != nil {
		for _, s := range d.Roles.Sets {
			do("leaderworkerset", s)
		}
	}
}

// childrenBlocked looks for Jobs, pods and LeaderWorkerSets that were deleted, and that a finalizer keeps.
func childrenBlocked(d *diagnosis) []Finding {
	var facts []Fact
	var names, commands []string
	var finalizer string
	look := func(kind string, o metav1.Object) {
		held := foreignFinalizers(o)
		if o.GetDeletionTimestamp() == nil || len(held) == 0 || d.Now.Sub(o.GetDeletionTimestamp().Time) < deletionGrace {
			return
		}
		if names = append(names, object(kind, o.GetName())); len(names) > maxFacts {
			return
		}
		finalizer = held[0]
		facts = append(facts, Fact{Object: object(kind, o.GetName()), Text: "deleted, with the finalizers " + strings.Join(o.GetFinalizers(),
			", "), Time: at(o.GetDeletionTimestamp().Time)})
		if len(commands) == 0 {
			commands = []string{d.kubectl("get %s %s -o jsonpath={.metadata.finalizers}", kind, o.GetName()),
				d.removeFinalizer(kind, o.GetName(), o, finalizer)}
		}
	}
	d.eachChild(look)
	if len(names) == 0 {
		return nil
	}
	waits := fmt.Sprintf("the %s cannot continue", d.noun())
	if s := d.subject(); s == nil || s.GetDeletionTimestamp() != nil {
		waits = fmt.Sprintf("the %s cannot be deleted", d.noun())
	} else if d.restarts() {
		waits = "the restart cannot continue"
	}
	return []Finding{{
		Cause: FinalizerBlocksDeletion,
		Summary: fmt.Sprintf("%s: the finalizer %s keeps %s, deleted %s; the controller that added it must remove it", waits, finalizer,
			some(names, maxFacts), ago(d.Now, facts[0].Time.Time)),
		Evidence: facts, Commands: commands,
	}}
}

func managedByOther(d *diagnosis) []Finding {
	who := d.subject().manager()
	switch who {
	case "":
		return nil
	case jobsetv1alpha2.MultiKueueControllerName:
		return inWorkerCluster(d)
	}
	f := Finding{
		Cause: ManagedByOther,
		Summary: fmt.Sprintf("the controller %s manages the %s (spec.managedBy); the %s controller of this cluster ignores it", who, d.noun(),
			d.kind().Title),
		Evidence: []Fact{{Object: d.set(), Text: fmt.Sprintf("spec.managedBy is %s; %s exist here", who, count(len(d.Jobs), "job"))}},
		Commands: []string{d.kubectl("describe %s %s", d.kind().Names[0], d.Name)},
	}
	return []Finding{f}
}

// suspendedBy says who suspended a set that no queue decides about.
func suspendedBy(d *diagnosis) []Finding {
	js := d.JobSet
	if js.Labels[jobsetv1alpha2.QueueNameKey] != "" {
		return nil
	}
	if owner := metav1.GetControllerOf(js); owner != nil {
		return []Finding{{
			Cause:    SuspendedByOwner,
			Summary:  fmt.Sprintf("suspended by its owner, %s %s, which decides when the set runs", owner.Kind, owner.Name),
			Evidence: []Fact{{Object: d.set(), Text: fmt.Sprintf("spec.suspend is true; the controller owner is %s %s", owner.Kind, owner.Name)}},
			Commands: []string{d.kubectl("describe %s %s", strings.ToLower(owner.Kind), owner.Name)},
		}}
	}
	if w := d.Kueue.Workload; w != nil && !deactivated(w) {
		return []Finding{{
			Cause:   QueueMissing,
			Summary: "suspended by Kueue, which runs with manageJobsWithoutQueueName and starts nothing that names no queue",
			Evidence: []Fact{
				{Object: d.set(), Text: "spec.suspend is true, and the label " + jobsetv1alpha2.QueueNameKey + " is missing"},
				{Object: object("workload", w.GetName()), Text: "belongs to the set and names no queue"},
			},
			Commands: []string{d.kubectl("label jobset %s %s=QUEUE", js.Name, jobsetv1alpha2.QueueNameKey),
				d.kubectl("get localqueues.%s", kueueGroup)},
		}}
	}
	manager, since := suspendedInFields(js)
	f := Finding{Cause: SuspendedByUser, Summary: d.whoSuspended(manager, since), Commands: []string{d.plugin("resume %s", js.Name)}}
	if a := helper.CurrentAttempt(&js.Status); a != nil && a.Outcome == jobsetv1alpha2.OutcomeSuspended && a.EndTime != nil {
		f.Evidence = append(f.Evidence, Fact{Object: d.set(), Text: fmt.Sprintf("attempt %d ended with the outcome %s", a.Number, a.Outcome),
			Time: at(a.EndTime.Time)})
	}
	written := Fact{Object: d.set(), Text: "spec.suspend is true"}
	if manager != "" {
		written = Fact{Object: d.set(), Text: "spec.suspend is true, last written with " + manager, Time: at(since)}
	}
	f.Evidence = append(f.Evidence, written)
	if c := isTrue(js, jobsetv1alpha2.JobSetSuspended); c != nil {
		f.Evidence = append(f.Evidence, conditionFact(d.set(), c))
	}
	return []Finding{f}
}

// whoSuspended names the user if the set was suspended by the action, and else the program that wrote the field.
func (d *diagnosis) whoSuspended(manager string, since time.Time) string {
	a := helper.CurrentAttempt(&d.JobSet.Status)
	switch {
	case a != nil && a.Outcome == jobsetv1alpha2.OutcomeSuspended && a.EndUser != "" && a.EndTime != nil:
		return fmt.Sprintf("suspended by %s %s%s", a.EndUser, ago(d.Now, a.EndTime.Time), quoted(a.EndReason))
	case manager != "" && a == nil && since.Sub(d.JobSet.CreationTimestamp.Time) <= time.Second:
		return fmt.Sprintf("created suspended, with %s %s", manager, ago(d.Now, since))
	case manager != "":
		return fmt.Sprintf("suspended with %s %s", manager, ago(d.Now, since))
	}
	return "suspended (spec.suspend is true)"
}

// suspendedInFields returns the field manager that wrote spec.suspend, and when.
func suspendedInFields(o metav1.Object) (manager string, when time.Time) {
	for _, entry := range o.GetManagedFields() {
		var fields struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, owns := fields.Spec["f:suspend"]; owns && entry.Time != nil && !entry.Time.Time.Before(when) {
			manager, when = entry.Manager, entry.Time.Time
		}
	}
	return manager, when
}
