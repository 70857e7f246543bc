// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// What prevents the creation of StatefulSets, Services and pods of a LeaderWorkerSet.

const (
	// refusalLasts is how long after its event a refusal counts: the controller tries again, and reports it again, more often than that.
	refusalLasts = 30 * time.Minute
	// podWebhook is the webhook of our server, which completes the pods of LeaderWorkerSets. The one of Kueue has the same
	// name, and a Service whose name begins with kueueService.
	podWebhook, kueueService = "mpod.kb.io", "//kueue-"
	// immutableFields is how a StatefulSet refuses a change.
	immutableFields = "updates to statefulset spec for fields other than"
)

// setNameTaken finds a StatefulSet of the name that the set does not control.
func setNameTaken(d *diagnosis) []Finding {
	taken := d.TakenSet
	if taken == nil {
		return nil
	}
	belongs := "has no owner"
	if owner := metav1.GetControllerOf(taken); owner != nil {
		belongs = fmt.Sprintf("belongs to %s %s", owner.Kind, owner.Name)
		if owner.Kind == d.kind().Title && owner.Name == d.Name {
			belongs = fmt.Sprintf("belongs to an earlier %s of this name, UID %s", owner.Kind, owner.UID)
		}
	}
	return []Finding{{
		Cause: StatefulSetNameTaken,
		Summary: fmt.Sprintf("the set needs the name of the StatefulSet %s, which exists and %s; the set waits until that StatefulSet is "+
			"deleted", taken.Name, belongs),
		Evidence: []Fact{{Object: object("statefulset", taken.Name), Text: "exists and " + belongs, Time: at(taken.CreationTimestamp.Time)}},
		Commands: []string{d.kubectl("describe statefulset %s", taken.Name), d.kubectl("delete statefulset %s  # if it is not needed",
			taken.Name)},
	}}
}

// setsRefused looks for a StatefulSet, a Service or another write that the API does not take.
func setsRefused(d *diagnosis) []Finding {
	if d.TakenSet != nil {
		return nil
	}
	for _, e := range d.about(d.Set.UID, helper.ReasonFailedCreate, helper.ReasonFailedUpdate, helper.ReasonFailedDelete) {
		if f, over := d.otherWriteRefused(&e); over || f != nil && f.Cause == RequestFailed && d.allReady() {
			continue
		} else if f != nil {
			return []Finding{*f}
		}
		what, open := d.refusedChild(e.Message)
		if !open || d.Now.Sub(seen(&e)) > refusalLasts {
			continue
		}
		return []Finding{d.setRefusal(&e, what)}
	}
	return nil
}

// refusedChild names what an event of the controller is about, and returns whether that is still missing or out of date.
func (d *diagnosis) refusedChild(message string) (what string, open bool) {
	if _, rest, found := strings.Cut(message, "worker statefulset for leader pod "); found {
		pod, _, _ := strings.Cut(rest, ":")
		what = "StatefulSet of the workers of " + pod
		return what, !slices.ContainsFunc(d.sets(), func(s *appsv1.StatefulSet) bool { return s.Name == pod && s != d.Replicas.Leader })
	}
	if strings.Contains(message, "headless service") {
		return "Service " + d.Name, !d.allReady() || d.Services[d.Name] == nil
	}
	return "StatefulSet " + d.Name, d.Replicas.Leader == nil || d.outdated()
}

// outdated returns whether the leader StatefulSet is not what the set asks for.
func (d *diagnosis) outdated() bool {
	leader := d.Replicas.Leader
	if leader.Annotations[leaderworkersetv1.ReplicasAnnotationKey] != fmt.Sprint(d.Replicas.Wanted()) ||
		d.Set.Status.ObservedGeneration < d.Set.Generation {
		return true
	}
	payload, err := helper.RevisionPayload(d.Set)
	return err == nil && helper.RevisionKey(payload) != d.Replicas.Revision()
}

// setRefusal says why the API does not take a child.
func (d *diagnosis) setRefusal(e *corev1.Event, what string) Finding {
	_, message, _ := strings.Cut(e.Message, ": ")
	r := readRefusal(message)
	f := Finding{
		Cause: StatefulSetRefused, Evidence: []Fact{eventFact(e)},
		Commands: []string{d.kubectl("events --for leaderworkerset/%s --types=Warning", d.Name)},
	}
	switch {
	case strings.Contains(message, immutableFields):
		f.Summary = fmt.Sprintf("the %s cannot be changed as the set asks: its volumeClaimTemplates are immutable, and nothing else of the "+
			"change is carried out", what)
		f.Commands = append(f.Commands, d.kubectl("edit leaderworkerset %s  # restore spec.leaderWorkerTemplate.volumeClaimTemplates, or "+
			"create another set", d.Name))
	case r.kind == refusedInvalid:
		f.Summary = fmt.Sprintf("the API refuses the %s: %s", what, r.detail)
		f.Commands = append(f.Commands, d.kubectl("edit leaderworkerset %s  # correct the template: it is tried again", d.Name))
	case r.kind == refusedQuota:
		f.Summary = fmt.Sprintf("a quota refuses the %s: %s", what, r.detail)
		f.Evidence = append(f.Evidence, d.quotaFacts(message)...)
		f.Commands = append(f.Commands, d.kubectl("describe resourcequota"))
	case r.kind == refusedWebhook:
		f.Summary = fmt.Sprintf("a webhook refuses the %s: %s", what, r.detail)
		f.Commands = append(f.Commands, "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations")
	case r.kind == refusedPolicy:
		f.Summary = fmt.Sprintf("an admission policy refuses the %s: %s", what, r.detail)
		f.Commands = append(f.Commands, "kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings")
	case r.kind == refusedRights:
		f.Summary = fmt.Sprintf("the controller has no permission to create or update the %s: %s", what, r.detail)
	case r.kind == undone:
		f.Cause, f.Summary = ChildUndoneByOther, r.detail
	case r.kind == unanswered:
		f.Cause, f.Summary = RequestFailed, requestFailed("write", what, r.detail)
	default:
		f.Summary = fmt.Sprintf("the %s cannot be created or updated: %s", what, r.detail)
	}
	return f
}

// podsOfSetsRefused looks for StatefulSets that have too few pods because the API refuses them.
func podsOfSetsRefused(d *diagnosis) []Finding {
	var names []string
	var first *corev1.Event
	have := Fact{}
	for _, set := range d.sets() {
		existing, wanted := len(alive(d.podsOf[set.UID])), int(ptr.Deref(set.Spec.Replicas, 1))
		events := d.about(set.UID, helper.ReasonFailedCreate)
		if len(events) == 0 || existing >= wanted || d.Now.Sub(seen(&events[0])) > refusalLasts {
			continue
		}
		if names = append(names, set.Name); first == nil {
			first = &events[0]
			have = Fact{Object: object("statefulset", set.Name), Text: fmt.Sprintf("has %d of %s", existing, count(wanted, "pod"))}
		}
	}
	if first == nil {
		return nil
	}
	if len(names) > 1 {
		have.Text += fmt.Sprintf("; %s have too few: %s", count(len(names), "StatefulSet"), some(names, maxFacts))
	}
	f := d.podRefusal(first, have, d.kubectl("describe statefulset %s", names[0]))
	if strings.HasPrefix(first.Message, "create Claim ") || strings.Contains(first.Message, "failed to create PVC ") {
		f.Summary = strings.Replace(f.Summary, "the pods", "the volume claims of the pods", 1)
	}
	d.podWebhookAway(&f, first)
	return []Finding{f}
}

// podWebhookAway says whose webhook for pods does not answer, if the event is about one.
func (d *diagnosis) podWebhookAway(f *Finding, e *corev1.Event) {
	m := webhookFailure.FindStringSubmatch(oneLine(e.Message))
	switch {
	case m == nil || m[1] != podWebhook:
	case strings.Contains(m[2], kueueService):
		f.Summary = "Kueue does not answer, and without its webhook no pod that it may manage is admitted: " + m[2]
		f.Commands = append(f.Commands, "kubectl get pods -A -l app.kubernetes.io/name=kueue")
	default:
		f.Summary = "the server of LeaderWorkerSets does not answer, and without it no pod of a set is admitted; the pods follow within a " +
			"minute of its return: " + m[2]
		f.Commands = append(f.Commands, "kubectl get apiservice "+d.kind().apiService()+" -o yaml", "kubectl jobset doctor")
	}
}

// leaderWorkerSetUnreadable reports that the cause is not known because the user may not read what shows it.
func leaderWorkerSetUnreadable(d *diagnosis) []Finding {
	if d.allReady() && len(d.Pods) > 0 {
		return nil
	}
	return cannotRead(d)
}

// serviceOfLeaderWorkerSet checks the Service that gives the pods their names.
func serviceOfLeaderWorkerSet(d *diagnosis) []Finding {
	service, read := d.Services[d.Name]
	if !read || d.Replicas.Leader == nil {
		return nil
	}
	example := fmt.Sprintf("%s.%s.%s", helper.LeaderPodName(d.Name, 0), d.Name, d.Namespace)
	if service == nil {
		return []Finding{{
			Cause: ServiceMissing, Summary: fmt.Sprintf("the Service %s is gone, so the pods cannot find each other by name", d.Name),
			Evidence: []Fact{{Object: object("service", d.Name), Text: "does not exist; " + example + " has no address"}},
			Commands: []string{d.kubectl("events --for leaderworkerset/%s --types=Warning", d.Name)},
		}}
	}
	wrong := d.wrongWith(service)
	if metav1.IsControlledBy(service, d.Set) || len(wrong) == 0 {
		return nil
	}
	return []Finding{{
		Cause: ServiceForeign,
		Summary: fmt.Sprintf("a Service %s exists that does not belong to the set, so the pods cannot find each other: %s", d.Name,
			strings.Join(wrong, ", and ")),
		Evidence: []Fact{{Object: object("service", d.Name), Text: strings.Join(wrong, ", and ") + "; the pods expect names like " + example,
			Time: at(service.CreationTimestamp.Time)}},
		Commands: []string{d.kubectl("describe service %s", d.Name),
			d.kubectl("delete service %s  # if it is not needed: the set then makes its own", d.Name)},
	}}
}

// leaderWorkerSetDeletion says what a set that is deleted waits for.
func leaderWorkerSetDeletion(d *diagnosis) []Finding {
	set, since := d.Set, d.Set.DeletionTimestamp.Time
	if held := foreignFinalizers(set); len(held) > 0 {
		return []Finding{d.keptBy(set, held)}
	}
	return []Finding{{
		Cause:   Deleting,
		Summary: fmt.Sprintf("the set was deleted %s and waits until its StatefulSets and pods are gone", ago(d.Now, since)),
		Evidence: []Fact{{Object: d.set(), Text: fmt.Sprintf("deleted; %s and %s are left", count(len(d.sets()), "StatefulSet"),
			count(len(d.Pods), "pod")), Time: at(since)}},
		Commands: []string{d.kubectl("wait --for=delete leaderworkerset/%s", set.Name)},
	}}
}
