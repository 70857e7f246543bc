// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	batchhelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/disruption"
)

// maxBudgets is how many budgets that cannot be computed are compared with the sets of their namespaces.
const maxBudgets = 50

// suspect is a budget that allows no disruption because it cannot be computed.
type suspect struct {
	namespace, name string
	selector        labels.Selector
	// owner is an object whose pods it selects; empty while none is known.
	owner string
}

// budgets checks whether PodDisruptionBudgets block drains of nodes because Jobs have no scale. Pods of
// LeaderWorkerSets are of no interest: StatefulSets own them, which have one.
func budgets(ctx context.Context, p *inspection) finding {
	suspects, more, err := p.suspects(ctx)
	if err != nil {
		return unseen("PodDisruptionBudgets", err)
	}
	namespaces := slices.Sorted(maps.Keys(suspects))
	for _, namespace := range namespaces {
		if what, err := p.match(ctx, namespace, suspects[namespace]); err != nil {
			status, message := unlisted(what, err)
			return finding{status: status, message: message, certain: true}
		}
	}
	var blocking []*suspect
	var names []string
	for _, namespace := range namespaces {
		for _, s := range suspects[namespace] {
			if s.owner != "" {
				blocking, names = append(blocking, s), append(names, fmt.Sprintf("%s/%s (%s)", s.namespace, s.name, s.owner))
			}
		}
	}
	switch {
	case len(blocking) == 0 && more > 0:
		return unknown("%d PodDisruptionBudgets of the cluster cannot be computed, which are too many to find out whether they concern Jobs "+
			"of JobSets", more+maxBudgets)
	case len(blocking) == 0:
		return good("no PodDisruptionBudget over pods of JobSets or SequentialJobs blocks drains")
	}
	f := finding{status: Warn, message: "PodDisruptionBudgets allow no disruption and block drains, because maxUnavailable and percentages " +
		"need the scale of the owners of pods, and Jobs have none: " +
		shorten(names) + "; docs/operations/nodes.md says what to use instead"}
	f.fix = fmt.Sprintf("kubectl -n %s edit poddisruptionbudget %s   # minAvailable with a number in place of maxUnavailable or a percentage",
		blocking[0].namespace, blocking[0].name)
	return f
}

// suspects returns the budgets that cannot be computed by namespace, up to a bound, and how many more there are.
func (p *inspection) suspects(ctx context.Context) (found map[string][]*suspect, more int, err error) {
	found, kept := map[string][]*suspect{}, 0
	err = eachPage(ctx, p, p.Kube.PolicyV1().PodDisruptionBudgets(""), func(list *policyv1.PodDisruptionBudgetList) {
		for i := range list.Items {
			b := &list.Items[i]
			switch {
			case disruption.Uncomputable(b) == "" || !disruption.NeedsScale(b):
			case kept == maxBudgets:
				more++
			default:
				kept++
				found[b.Namespace] = append(found[b.Namespace], newSuspect(b))
			}
		}
	})
	return found, more, err
}

func newSuspect(b *policyv1.PodDisruptionBudget) *suspect {
	return &suspect{namespace: b.Namespace, name: b.Name, selector: disruption.Selector(b)}
}

// match finds owners of pods that the budgets of a namespace select, and returns what could not be listed. It looks at
// templates, since a holder of the role jobset-doctor may not read pods of all namespaces.
func (p *inspection) match(ctx context.Context, namespace string, of []*suspect) (what string, err error) {
	err = eachPage(ctx, p, p.JobSets.JobsetV1alpha2().JobSets(namespace), func(list *jobsetv1alpha2.JobSetList) {
		for i := range list.Items {
			compare(of, "jobset "+list.Items[i].Name, podsOfSet(&list.Items[i]))
		}
	})
	if err != nil {
		return "JobSets", err
	}
	err = eachPage(ctx, p, p.JobSets.BatchV1alpha1().SequentialJobs(namespace), func(list *batchv1alpha1.SequentialJobList) {
		for i := range list.Items {
			compare(of, "sequentialjob "+list.Items[i].Name, podsOfSequence(&list.Items[i]))
		}
	})
	if apierrors.IsNotFound(err) { // the group may be switched off
		err = nil
	}
	return "SequentialJobs", err
}

// compare notes the owner at the budgets that select one of its pods.
func compare(of []*suspect, owner string, pods []labels.Set) {
	for _, s := range of {
		for _, pod := range pods {
			if s.owner == "" && selects(s.selector, pod) {
				s.owner = owner
			}
		}
	}
}

// podsOfSet returns the labels that the pods of a set have, those of each replicatedJob once: what is different for
// each Job or pod is left out. A set that has ended, or is suspended, has no pods.
func podsOfSet(js *jobsetv1alpha2.JobSet) (pods []labels.Set) {
	if phase, _ := helper.Finished(js); phase != "" || helper.Suspended(js) {
		return nil
	}
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		pod := labels.Set{}
		maps.Copy(pod, rj.Template.Spec.Template.Labels)
		maps.Copy(pod, labels.Set{
			jobsetv1alpha2.JobSetNameKey: js.Name, jobsetv1alpha2.JobSetUIDKey: string(js.UID), jobsetv1alpha2.ReplicatedJobNameKey: rj.Name,
			jobsetv1alpha2.GroupNameKey: helper.GroupName(rj),
		})
		pods = append(pods, pod)
	}
	return pods
}

// podsOfSequence does the same for the step of a sequence that runs. The JobSet of a step is an object of its own.
func podsOfSequence(sj *batchv1alpha1.SequentialJob) []labels.Set {
	steps, at := batchhelper.Steps(&sj.Spec), batchhelper.CurrentIndex(&sj.Status)
	if batchhelper.Finished(sj) != nil || batchhelper.Suspended(sj) || at >= len(steps) || steps[at].JobSet != nil {
		return nil
	}
	pod := labels.Set{}
	switch step := steps[at]; {
	case step.Job != nil:
		maps.Copy(pod, step.Job.Spec.Template.Labels)
	case sj.Spec.Template != nil:
		maps.Copy(pod, sj.Spec.Template.Labels)
	}
	maps.Copy(pod, labels.Set{
		batchv1alpha1.SequentialJobNameKey: sj.Name, batchv1alpha1.SequentialJobUIDKey: string(sj.UID), batchv1alpha1.StepNameKey: steps[at].Name,
		batchv1alpha1.PartOfKey: sj.Name,
	})
	return []labels.Set{pod}
}

// ofEach are the prefixes of the other labels of pods of Jobs, whose values are different for each Job or pod.
var ofEach = []string{"jobset.sigs.k8s.io/", batchv1alpha1.GroupName + "/", "batch.kubernetes.io/", "job-name", "controller-uid"}

// selects returns whether a selector may match pods with the labels.
func selects(selector labels.Selector, pod labels.Set) bool {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return false
	}
	for i := range requirements {
		if requirements[i].Matches(pod) {
			continue
		}
		_, known := pod[requirements[i].Key()]
		if known || !slices.ContainsFunc(ofEach, func(prefix string) bool { return strings.HasPrefix(requirements[i].Key(), prefix) }) {
			return false
		}
	}
	return true
}
