// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/outage"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

const (
	// page is the number of objects in one answer.
	page = 500
	// maxNamed is how many objects a message names.
	maxNamed = 5
)

// lostOwners checks whether a refused store lacks owners of Jobs.
func lostOwners(ctx context.Context, p *inspection) (Status, string) {
	const location = "ConfigMap " + witness.Namespace + "/" + witness.LostOwnersName
	cm, err := p.Kube.CoreV1().ConfigMaps(witness.Namespace).Get(ctx, witness.LostOwnersName, metav1.GetOptions{})
	var lost *witness.LostOwners
	if err == nil {
		lost, err = witness.ReadLostOwners(cm)
	}
	switch {
	case apierrors.IsNotFound(err), err == nil && lost == nil:
		return OK, "no owners of Jobs are lost"
	case err != nil:
		return unread(location, err)
	case p.recordErr != nil:
		return unread(outage.Location, p.recordErr)
	case p.record == nil || !lost.Matches(p.record):
		return OK, "no owners of Jobs are lost; " + location + " is about an earlier store"
	case len(lost.Owners) == 0:
		return OK, "no owners of Jobs are lost"
	}
	count := cli.Count(len(lost.Owners), "owner")
	if lost.More {
		count = "more than " + count
	}
	if p.record.Refusal == nil {
		return Warn, fmt.Sprintf("the store was accepted without %s of Jobs, StatefulSets and other objects; `jobset-apiserver store "+
			"release-orphans` keeps what still exists", count)
	}
	return Warn, fmt.Sprintf("the refused store lacks %s of Jobs, StatefulSets and other objects; if the right store is lost for good, "+
		"`jobset-apiserver store release-orphans` keeps them", count)
}

// heldKind is a kind whose objects the controller may leave alone.
type heldKind struct {
	// noun is how a message calls an object of it, and plural how it calls all.
	noun, plural string
	// held is the condition after a restore; empty for kinds without one.
	held string
	// list returns a page of the objects.
	list func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
}

func (p *inspection) heldKinds() []heldKind {
	return []heldKind{
		{"jobset", "JobSets", jobsetv1alpha2.Held, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return p.JobSets.JobsetV1alpha2().JobSets("").List(ctx, options)
		}},
		{"sequentialjob", "SequentialJobs", batchv1alpha1.ConditionHeld,
			func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return p.JobSets.BatchV1alpha1().SequentialJobs("").List(ctx, options)
			}},
		{"leaderworkerset", "LeaderWorkerSets", "", func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return p.JobSets.LeaderworkersetV1().LeaderWorkerSets("").List(ctx, options)
		}},
		{"disaggregatedset", "DisaggregatedSets", "", func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return p.JobSets.DisaggregatedsetV1().DisaggregatedSets("").List(ctx, options)
		}},
	}
}

// conditionsOf returns the conditions of an object of one of these kinds.
func conditionsOf(obj runtime.Object) []metav1.Condition {
	switch o := obj.(type) {
	case *jobsetv1alpha2.JobSet:
		return o.Status.Conditions
	case *batchv1alpha1.SequentialJob:
		return o.Status.Conditions
	case *leaderworkersetv1.LeaderWorkerSet:
		return o.Status.Conditions
	case *disaggregatedsetv1.DisaggregatedSet:
		return o.Status.Conditions
	}
	return nil
}

// page calls a function with the objects of a page, and returns where the next one begins.
func (k heldKind) page(
	ctx context.Context, options metav1.ListOptions, each func(metav1.Object, []metav1.Condition),
) (next string, err error) {
	list, err := k.list(ctx, options)
	if err != nil {
		return "", err
	}
	err = meta.EachListItem(list, func(obj runtime.Object) error {
		each(obj.(metav1.Object), conditionsOf(obj))
		return nil
	})
	return list.(metav1.ListInterface).GetContinue(), err
}

// held checks whether objects wait for a user to decide what becomes of them: after a restore, or because their namespace is another one.
func held(ctx context.Context, p *inspection) (Status, string) {
	var restored, outdated []string
	for _, kind := range p.heldKinds() {
		err := p.pages(ctx, func(ctx context.Context, options metav1.ListOptions) (string, error) {
			return kind.page(ctx, options, func(object metav1.Object, conditions []metav1.Condition) {
				name := fmt.Sprintf("%s %s/%s", kind.noun, object.GetNamespace(), object.GetName())
				if kind.held != "" && meta.IsStatusConditionTrue(conditions, kind.held) {
					restored = append(restored, name)
				}
				if meta.IsStatusConditionTrue(conditions, namespaceuid.Condition) {
					outdated = append(outdated, name)
				}
			})
		})
		if err != nil && (kind.noun == "jobset" || !apierrors.IsNotFound(err)) { // other groups may be switched off
			return unlisted(kind.plural, err)
		}
	}
	var found []string
	if len(restored) > 0 {
		found = append(found, "held after a restore, until a user resumes or deletes them: "+shorten(restored))
	}
	if len(outdated) > 0 {
		found = append(found, "held because they are older than their namespace, until a user deletes them or confirms them as their "+
			"condition "+namespaceuid.Condition+" says: "+shorten(outdated))
	}
	if len(found) == 0 {
		return OK, "nothing is held after a restore or a new namespace"
	}
	return Warn, strings.Join(found, "; ")
}

// pages lists page by page, so that a cluster of any size is read in bounded memory.
func (p *inspection) pages(ctx context.Context, list func(context.Context, metav1.ListOptions) (next string, err error)) error {
	for options := (metav1.ListOptions{Limit: page}); ; {
		next, err := list(ctx, options)
		if err != nil || next == "" {
			return err
		}
		options.Continue = next
	}
}

// lister lists the objects of a kind.
type lister[L metav1.ListInterface] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
}

// eachPage calls f with each page of the objects of a kind.
func eachPage[L metav1.ListInterface](ctx context.Context, p *inspection, all lister[L], f func(L)) error {
	return p.pages(ctx, func(ctx context.Context, options metav1.ListOptions) (string, error) {
		list, err := all.List(ctx, options)
		if err != nil {
			return "", err
		}
		f(list)
		return list.GetContinue(), nil
	})
}

// unlisted is the result of a check whose objects could not be listed. While the API does not answer, the checks above say why.
func unlisted(what string, err error) (Status, string) {
	if outage.Concerns(err) {
		return Warn, what + " cannot be listed while their API does not answer"
	}
	return unread(what, err)
}
