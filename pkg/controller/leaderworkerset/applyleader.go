// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// errNotTried means that the time of the pass was over.
var errNotTried = errors.New("interrupted")

// Kinds of changes of StatefulSets.
const (
	changeApply = "apply"
	changeOwn   = "own"
	changeTouch = "touch"
)

// applyLeader creates the revision of the leader StatefulSet, and applies the StatefulSet. That others have their names is a result, and no
// error.
func (a *applier) applyLeader(ctx context.Context, p plan.Plan) error {
	err := a.createAndApply(ctx, p)
	if errors.Is(err, errTaken) {
		a.results.NameTaken, err = true, nil
	}
	return err
}

func (a *applier) createAndApply(ctx context.Context, p plan.Plan) error {
	if err := a.createRevision(ctx, p.CreateRevision); err != nil {
		if !apierrors.IsConflict(err) && ctx.Err() == nil {
			a.results.RevisionError = err.Error()
		}
		return err
	}
	if p.ApplyLeader == nil || children.Ended(ctx) {
		return nil
	}
	return a.sendAndNote(ctx, p)
}

// sendAndNote sends the leader StatefulSet, and notes what became of it.
func (a *applier) sendAndNote(ctx context.Context, p plan.Plan) error {
	ctx, end := children.Finishing(ctx)
	defer end()
	stored, sent, err := a.sendLeader(ctx, p.ApplyLeader)
	countApply(err)
	switch {
	case err == nil:
		a.deps.Consistency.Wrote(a.key, resourceStatefulSets, stored.ResourceVersion)
		a.applied.Note(a.key, application{plan.ApplyHash(sent), stored.Generation})
		a.results.LeaderApplied = true
		a.accepted(1)
		return nil
	case !apierrors.IsConflict(err) && !children.TerminatingNamespace(err):
		a.results.LeaderError = err.Error()
		a.blocked(ctx, "StatefulSet "+a.set.Name, err)
	}
	return fmt.Errorf("applying statefulset %s: %w", a.key, err)
}

// applyBody returns what is sent, valid only for the version of the live object.
func applyBody(wanted, live *appsv1.StatefulSet) ([]byte, error) {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wanted)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: body}
	object.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	unstructured.RemoveNestedField(body, "status")
	unstructured.RemoveNestedField(body, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(body, "spec", "template", "metadata", "creationTimestamp")
	object.SetUID(live.UID)
	object.SetResourceVersion(live.ResourceVersion)
	return json.Marshal(body)
}

// deleteLeaders deletes leader pods in the foreground, so that their groups are gone before the next ones come.
func (a *applier) deleteLeaders(ctx context.Context, deletions []plan.Deletion) error {
	asked := make([]bool, len(deletions))
	err := a.pods.Each(ctx, a.set, len(deletions), func(ctx context.Context, i int) error {
		asked[i] = true
		return a.deleteLeader(ctx, i, &deletions[i])
	})
	for i := range deletions {
		if !asked[i] {
			a.results.KeptLeaders = append(a.results.KeptLeaders, i)
		}
	}
	return err
}

func (a *applier) deleteLeader(ctx context.Context, i int, leader *plan.Deletion) error {
	err := a.pods.Deleting(a.set, leader.Ref, func() error {
		return a.deps.Pods(a.set.Namespace).Delete(ctx, leader.Name, children.Foreground(leader.UID, ""))
	})
	if err != nil && !apierrors.IsNotFound(err) {
		// A conflict means that another pod has the name now: the next pass will see.
		a.leaderStays(ctx, i, leader.Name, err)
		return fmt.Errorf("deleting pod %s/%s: %w", a.set.Namespace, leader.Name, err)
	}
	a.deps.Consistency.Deleted(a.key, leader.UID)
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.results.DeletedLeaders = append(a.results.DeletedLeaders, i)
		a.results.Accepted++
		countRestart(a.set, leader.UID)
	}
	return nil
}

// leaderStays notes that a leader pod was not deleted. Without an answer it is not known whether it was.
func (a *applier) leaderStays(ctx context.Context, i int, name string, err error) {
	a.failed(ctx, plan.ActionDelete, "leader pod", name, err)
	if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.results.KeptLeaders = append(a.results.KeptLeaders, i)
	}
}

func (a *applier) deleteRevisions(ctx context.Context, revisions []plan.Ref) error {
	client := a.deps.Revisions(a.set.Namespace)
	return a.revisions.Each(ctx, a.set, len(revisions), func(ctx context.Context, i int) error {
		err := a.revisions.Removing(a.set, revisions[i], func() error {
			return client.Delete(ctx, revisions[i].Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &revisions[i].UID}})
		})
		if err != nil && !apierrors.IsNotFound(err) {
			a.failed(ctx, plan.ActionDelete, "revision", revisions[i].Name, err)
			return fmt.Errorf("deleting controllerrevision %s/%s: %w", a.set.Namespace, revisions[i].Name, err)
		}
		a.deps.Consistency.Deleted(a.key, revisions[i].UID)
		a.accepted(1)
		return nil
	})
}

// theTouch is what others may change after a StatefulSet was touched.
const theTouch = "the annotation " + plan.TouchedKey

// touch changes an annotation of StatefulSets, so that their controller looks at them again.
func (a *applier) touch(ctx context.Context, p plan.Plan) error {
	touches := p.TouchWorkers
	if leader := a.obs.Leader; p.TouchLeader && leader != nil {
		touches = append(touches[:len(touches):len(touches)], plan.Touch{Ref: plan.Ref{Name: leader.Name, UID: leader.UID},
			ResourceVersion: leader.ResourceVersion})
	}
	client, outage := a.deps.StatefulSets(a.set.Namespace), a.obs.ServedSince.UTC().Format(time.RFC3339)
	return a.statefulSets.Each(ctx, a.set, len(touches), func(ctx context.Context, i int) error {
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": touches[i].UID, "resourceVersion": touches[i].ResourceVersion,
			"annotations": map[string]string{plan.TouchedKey: a.obs.Now.UTC().Format(time.RFC3339)},
		}})
		if err != nil {
			return err
		}
		guard, touched := a.statefulSets.Guard(), &metav1.ObjectMeta{Name: touches[i].Name, UID: touches[i].UID}
		if err := guard.ChangingTo(a.set, touched, theTouch, outage); err != nil {
			a.failed(ctx, plan.ActionUpdate, "statefulset", touches[i].Name, err)
			return err
		}
		var stored *appsv1.StatefulSet
		err = a.statefulSets.Changing(a.set, touches[i].Ref, changeTouch, func() error {
			stored, err = client.Patch(ctx, touches[i].Name, types.MergePatchType, body, metav1.PatchOptions{})
			return err
		})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			a.failed(ctx, plan.ActionUpdate, "statefulset", touches[i].Name, err)
			return fmt.Errorf("asking for another look at statefulset %s/%s: %w", a.set.Namespace, touches[i].Name, err)
		}
		guard.ChangedTo(a.set, touched, theTouch, outage)
		a.deps.Consistency.Wrote(a.key, resourceStatefulSets, stored.ResourceVersion)
		a.accepted(1)
		return nil
	})
}
