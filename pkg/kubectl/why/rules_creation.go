// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// What prevents the creation of Jobs and pods. The API rejects them, and only an event shows why.

// creationRefused looks for what keeps the set from having all its Jobs: the refusal of a Job, or of the Service or a volume
// claim that have to be there first.
func creationRefused(d *diagnosis) []Finding {
	if len(d.missing) == 0 {
		return nil
	}
	events := d.about(d.JobSet.UID, helper.ReasonJobCreationFailed, helper.ReasonHeadlessServiceCreationFailed, helper.ReasonPVCCreationFailed)
	// A refusal that was overcome has a Job that is younger.
	for _, job := range d.current {
		events = slices.DeleteFunc(events, func(e corev1.Event) bool {
			return seen(&e).Before(job.CreationTimestamp.Time) && !strings.Contains(e.Message, `"`+d.missing[0]+`"`)
		})
	}
	if len(events) == 0 {
		return nil
	}
	e := &events[0]
	what := map[string]string{
		helper.ReasonJobCreationFailed: "job", helper.ReasonHeadlessServiceCreationFailed: "service",
		helper.ReasonPVCCreationFailed: "volume claim",
	}[e.Reason]
	f := Finding{
		Evidence: []Fact{eventFact(e), {Object: d.set(), Text: fmt.Sprintf("%s not created: %s", count(len(d.missing), "job"),
			some(d.missing, maxFacts))}},
		Commands: []string{d.kubectl("events --for jobset/%s --types=Warning", d.Name)},
	}
	if d.refused(&f, what, e.Message) == refusedInvalid {
		f.Summary = fmt.Sprintf("the API refuses the %s: %s", what, d.inTemplate(e.Message, readRefusal(e.Message).detail))
		f.Commands = append(f.Commands, d.kubectl("get jobset %s -o yaml > %s.yaml  # correct the template, delete the set and recreate it",
			d.Name, d.Name))
	}
	return []Finding{f}
}

// refused completes a finding with why an API refused a child.
func (d *diagnosis) refused(f *Finding, what, message string) refusalKind {
	r := readRefusal(message)
	switch r.kind {
	case refusedInvalid:
		f.Cause, f.Summary = JobTemplateRefused, fmt.Sprintf("the API refuses the %s: %s", what, r.detail)
	case refusedQuota:
		f.Cause, f.Summary = JobRefusedByQuota, fmt.Sprintf("a quota refuses the %s: %s", what, r.detail)
		f.Evidence = append(f.Evidence, d.quotaFacts(message)...)
		f.Commands = append(f.Commands, d.kubectl("describe resourcequota"))
	case refusedWebhook:
		f.Cause, f.Summary = JobRefusedByWebhook, fmt.Sprintf("a webhook refuses the %s: %s", what, r.detail)
		f.Commands = append(f.Commands, "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations")
	case refusedPolicy:
		f.Cause, f.Summary = JobRefusedByPolicy, fmt.Sprintf("an admission policy refuses the %s: %s", what, r.detail)
		f.Commands = append(f.Commands, "kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings")
	case refusedRights:
		f.Cause, f.Summary = JobCreationFailed, fmt.Sprintf("the controller has no permission to create the %s: %s", what, r.detail)
	case undone:
		f.Cause, f.Summary = ChildUndoneByOther, r.detail
	case unanswered:
		f.Cause, f.Summary = RequestFailed, requestFailed("create", what, r.detail)
	default:
		f.Cause, f.Summary = JobCreationFailed, fmt.Sprintf("the %s cannot be created: %s", what, r.detail)
	}
	return r.kind
}

// requestFailed says that the API gave no answer to a write.
func requestFailed(verb, what, detail string) string {
	return fmt.Sprintf("the controller could not %s the %s, and tries again: %s", verb, what, detail)
}

// inTemplate names the field of the set that is behind a field of a Job.
func (d *diagnosis) inTemplate(message, detail string) string {
	for i := range d.JobSet.Spec.ReplicatedJobs {
		rj := &d.JobSet.Spec.ReplicatedJobs[i]
		if strings.HasPrefix(detail, "spec.") && strings.Contains(message, fmt.Sprintf(`"%s-%s-`, d.Name, rj.Name)) {
			return fmt.Sprintf("spec.replicatedJobs[%d].template.%s (replicatedJob %s)", i, detail, rj.Name)
		}
	}
	return detail
}

// quotaFacts shows the quota that the message names, as it is now.
func (d *diagnosis) quotaFacts(message string) []Fact {
	m := quotaMessage.FindStringSubmatch(oneLine(message))
	var facts []Fact
	for i := range d.Quotas {
		q := &d.Quotas[i]
		if m == nil || q.Name != m[1] {
			continue
		}
		var used []string
		for _, name := range sortedKeys(resources(q.Status.Hard)) {
			hard, now := q.Status.Hard[corev1.ResourceName(name)], q.Status.Used[corev1.ResourceName(name)]
			used = append(used, fmt.Sprintf("%s %s of %s", name, now.String(), hard.String()))
		}
		facts = append(facts, Fact{Object: object("resourcequota", q.Name), Text: "in use now: " + strings.Join(used, ", ")})
	}
	return facts
}

func resources(list corev1.ResourceList) map[string]bool {
	out := map[string]bool{}
	for name := range list {
		out[string(name)] = true
	}
	return out
}

func nameTaken(d *diagnosis) []Finding {
	c := isTrue(d.JobSet, jobsetv1alpha2.ChildNameConflict)
	if c == nil {
		return nil
	}
	return []Finding{d.taken(c)}
}

// taken names the Jobs that have the names of children, with their owners.
func (d *diagnosis) taken(c *metav1.Condition) Finding {
	f := Finding{Cause: JobNameTaken, Summary: oneLine(c.Message), Evidence: []Fact{conditionFact(d.set(), c)}}
	d.leftBehind(&f)
	for _, name := range sortedKeys(d.TakenJobs) {
		job := d.TakenJobs[name]
		if job == nil {
			f.Evidence = append(f.Evidence, Fact{Object: object("job", name), Text: "no longer exists"})
			continue
		}
		belongs, left := "has no owner", d.isLeftBehind(job)
		if left {
			belongs = "was left behind by a former set of this name"
		} else if refs := job.OwnerReferences; len(refs) > 0 {
			belongs = fmt.Sprintf("belongs to %s %s", refs[0].Kind, refs[0].Name)
			if refs[0].Kind == d.kind().Title && refs[0].Name == d.Name {
				belongs = fmt.Sprintf("belongs to an earlier %s of this name, UID %s", refs[0].Kind, refs[0].UID)
			}
		}
		f.Summary = fmt.Sprintf("the %s needs the name of the job %s, which exists and %s; the %[1]s waits until that job is deleted", d.noun(),
			name, belongs)
		f.Evidence = append(f.Evidence, Fact{Object: object("job", name), Text: "exists and " + belongs, Time: at(job.CreationTimestamp.Time)})
		f.Commands = append(f.Commands, d.kubectl("describe job %s", name))
		if !left {
			f.Commands = append(f.Commands, d.kubectl("delete job %s  # if it is not needed", name))
		}
	}
	if len(f.Commands) == 0 {
		f.Commands = []string{d.kubectl("get jobs")}
	}
	return f
}

// jobSuspended looks for Jobs that the set lets run, but a user or another controller suspended.
func jobSuspended(d *diagnosis) []Finding {
	var names []string
	for _, job := range d.current {
		if ptr.Deref(job.Spec.Suspend, false) && job.Annotations[jobsetv1alpha2.ReleasedKey] == fmt.Sprint(d.JobSet.Generation) &&
			!jobEnded(job) {
			names = append(names, job.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []Finding{{
		Cause:    JobSuspendedByOther,
		Summary:  fmt.Sprintf("%s suspended by another party: %s", count(len(names), "job"), some(names, maxFacts)),
		Evidence: []Fact{{Object: object("job", names[0]), Text: "spec.suspend is true, though the set let the job run"}},
		Commands: []string{d.kubectl("get job %s --show-managed-fields -o yaml", names[0])},
	}}
}

// podsRefused looks for unfinished Jobs that have too few pods because the API refuses them.
func podsRefused(d *diagnosis) []Finding {
	var names []string
	var first *corev1.Event
	have := Fact{}
	for _, job := range d.current {
		existing, wanted := len(alive(d.podsOf[job.UID])), int(podsWanted(job))
		events := d.about(job.UID, jobsetv1alpha2.ReasonFailedCreate)
		if len(events) == 0 || existing >= wanted || !mayHavePods(job) {
			continue
		}
		if names = append(names, job.Name); first == nil {
			first = &events[0]
			have = Fact{Object: object("job", job.Name), Text: fmt.Sprintf("has %d of %s", existing, count(wanted, "pod"))}
		}
	}
	if first == nil {
		return nil
	}
	if len(names) > 1 {
		have.Text += fmt.Sprintf("; %s have too few: %s", count(len(names), "job"), some(names, maxFacts))
	}
	return []Finding{d.podRefusal(first, have, d.kubectl("describe job %s", names[0]))}
}

// podRefusal says why the API refuses pods, by the event.
func (d *diagnosis) podRefusal(first *corev1.Event, have Fact, describe string) Finding {
	r := readRefusal(first.Message)
	form, known := podRefusals[r.kind]
	if !known {
		form = podRefusals[refusedOther]
	}
	f := Finding{
		Cause: form.cause, Summary: fmt.Sprintf(form.words, r.detail),
		Evidence: []Fact{eventFact(first), have}, Commands: []string{describe},
	}
	switch form.cause {
	case PodsRefusedBySecurity:
		f.Commands = append(f.Commands, fmt.Sprintf("kubectl get namespace %s --show-labels", d.Namespace))
	case PodsRefusedByQuota:
		f.Evidence = append(f.Evidence, d.quotaFacts(first.Message)...)
		f.Commands = append(f.Commands, d.kubectl("describe resourcequota"))
	}
	return f
}

var podRefusals = map[refusalKind]struct {
	cause Cause
	words string
}{
	refusedSecurity: {PodsRefusedBySecurity, "the pod security of the namespace refuses the pods: %s"},
	refusedQuota:    {PodsRefusedByQuota, "a quota refuses the pods: %s"},
	refusedWebhook:  {PodsRefusedByWebhook, "a webhook refuses the pods: %s"},
	unanswered:      {RequestFailed, "the pods could not be created, which is tried again: %s"},
	refusedOther:    {PodCreationFailed, "the pods cannot be created: %s"},
}

// mayHavePods reports whether the Job controller makes pods for the Job.
func mayHavePods(job *batchv1.Job) bool {
	return !jobEnded(job) && !ptr.Deref(job.Spec.Suspend, false) && job.DeletionTimestamp == nil
}

func alive(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return snapshot.PodEnded(p) || p.DeletionTimestamp != nil })
}
