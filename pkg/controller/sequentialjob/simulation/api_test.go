// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds the clients through which the controller writes. The API servers decide what they answer. What happens on
// the way is drawn.

// childClient is a client of Jobs or JobSets.
type childClient[T metav1.Object] struct {
	p    *process
	in   *simulation.Store[T]
	copy func(T) T
}

func (c childClient[T]) Create(_ context.Context, wanted T, _ metav1.CreateOptions) (T, error) {
	at := c.p.observed
	return simulation.Send(c.p.sender, wanted, func(known bool) (T, error) {
		if _, taken := c.in.Get(wanted.GetName()); taken {
			return wanted, simulation.ErrExists
		}
		if c.p.denial != nil {
			c.p.refused("create child")
			c.p.sender.Denied(simulation.Request("create", "child", wanted), c.p.denial)
			return wanted, c.p.denial
		}
		c.p.checkBlind(wanted)
		child := c.copy(wanted)
		child.SetUID(types.UID(fmt.Sprintf("%T-%d", wanted, c.in.Versions.Last)))
		child.SetCreationTimestamp(c.p.storedBy(child))
		c.p.Note("  creates child %s, attempt %s", child.GetName(), child.GetLabels()[batchv1alpha1.StepAttemptKey])
		c.p.rules.created(at, child, known && !c.p.rivals)
		c.in.Put(child)
		return child, nil
	})
}

func (c childClient[T]) Get(_ context.Context, name string, _ metav1.GetOptions) (T, error) {
	return simulation.Read(c.p.sender, func() (T, error) {
		child, found := c.in.Get(name)
		switch {
		case !found || c.p.unasking:
			return child, simulation.ErrNotFound
		case unreadable.Is(child):
			return child, simulation.ErrServer
		}
		return child, nil
	})
}

func (c childClient[T]) Delete(_ context.Context, name string, options metav1.DeleteOptions) error {
	var none T
	_, err := simulation.Send(c.p.sender, none, func(known bool) (T, error) {
		child, found := c.in.Get(name)
		switch {
		case !found:
			return none, simulation.ErrNotFound
		case child.GetUID() != *options.Preconditions.UID:
			return none, simulation.ErrConflict
		case c.p.refusals["delete child"] != nil:
			return none, c.p.refusedChild("delete", child)
		}
		if c.p.checkBlind(child); unreadable.Is(child) {
			return none, simulation.ErrServer
		}
		c.p.Note("  deletes child %s", name)
		c.p.rules.deleted(child, known && !c.p.rivals)
		c.p.deleteChild(child)
		return none, nil
	})
	return err
}

func (c childClient[T]) Patch(_ context.Context, name string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string) (T, error) {
	child, found := c.in.Get(name)
	if !found {
		return child, simulation.ErrNotFound
	}
	at := c.p.observed
	return simulation.Send(c.p.sender, child, func(bool) (T, error) {
		child, found := c.in.Get(name)
		switch {
		case !found:
			return child, simulation.ErrNotFound
		case c.p.refusals["patch child"] != nil:
			return child, c.p.refusedChild("patch", child)
		}
		if c.p.checkBlind(child); unreadable.Is(child) {
			return child, simulation.ErrServer
		}
		next, err := patched(child, patch)
		switch {
		case err != nil:
			return child, err
		case next.GetResourceVersion() != child.GetResourceVersion():
			return child, simulation.ErrConflict
		}
		c.p.Note("  patches child %s: %s", name, patch)
		c.p.rules.patched(c.p, at, child, next)
		c.in.Put(next)
		return next, nil
	})
}

// patched returns an object with a JSON patch. The API refuses one that does not apply, as that of a label of an object that has none.
func patched[T metav1.Object](object T, patch []byte) (T, error) {
	before, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	steps, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		panic(err)
	}
	after, err := steps.Apply(before)
	if err != nil {
		return object, apierrors.NewInvalid(batchv1.SchemeGroupVersion.WithKind("Job").GroupKind(), object.GetName(),
			field.ErrorList{field.Invalid(field.NewPath("patch"), string(patch), err.Error())})
	}
	next := reflect.New(reflect.TypeOf(object).Elem()).Interface().(T)
	if err := json.Unmarshal(after, next); err != nil {
		panic(fmt.Sprintf("the patch %s: %v", patch, err))
	}
	return next, nil
}

// sequenceClient is a client of SequentialJobs.
type sequenceClient struct{ p *process }

func (c sequenceClient) Get(context.Context, string, metav1.GetOptions) (*batchv1alpha1.SequentialJob, error) {
	return simulation.Read(c.p.sender, func() (*batchv1alpha1.SequentialJob, error) {
		if sj := c.p.sequence(); sj != nil {
			return sj, nil
		}
		return nil, simulation.ErrNotFound
	})
}

func (c sequenceClient) UpdateStatus(_ context.Context, wanted *batchv1alpha1.SequentialJob, _ metav1.UpdateOptions) (*batchv1alpha1.SequentialJob, error) {
	busy := c.p.busy
	return simulation.Send(c.p.sender, wanted, func(known bool) (*batchv1alpha1.SequentialJob, error) {
		current := c.p.sequence()
		switch {
		case current == nil:
			return nil, simulation.ErrNotFound
		case c.p.refusals["update status"] != nil:
			return nil, c.p.refusedSelf("update status")
		case current.ResourceVersion != wanted.ResourceVersion && !c.p.overwriting:
			c.p.Seen["conflicts"]++
			return nil, simulation.ErrConflict
		}
		next := c.p.prepareStatus(wanted, current)
		c.p.rules.statusStored(busy, current, next, known && !c.p.rivals)
		c.p.env.sequences.Put(next)
		c.p.noteUnknown(known)
		c.p.Note("  stores the status %s", describeStatus(&next.Status))
		return next, nil
	})
}

func (c sequenceClient) Patch(_ context.Context, _ string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string) (*batchv1alpha1.SequentialJob, error) {
	return simulation.Send(c.p.sender, &batchv1alpha1.SequentialJob{}, func(known bool) (*batchv1alpha1.SequentialJob, error) {
		current := c.p.sequence()
		if current == nil {
			c.p.sender.Refute() // without the finalizer, nothing is created
			return nil, simulation.ErrNotFound
		}
		if c.p.refusals["patch sequence"] != nil {
			return nil, c.p.refusedSelf("patch sequence")
		}
		next, err := patched(current, patch)
		if err != nil {
			return current, err
		}
		if next.ResourceVersion != current.ResourceVersion {
			c.p.sender.Refute()
			return nil, simulation.ErrConflict
		}
		c.p.Note("  sets the finalizers to %q", next.Finalizers)
		c.p.rules.finalizersStored(c.p, current, next)
		stored := c.p.storeFinalizers(next)
		c.p.noteUnknown(known)
		return stored, nil
	})
}

func (c sequenceClient) Delete(_ context.Context, _ string, options metav1.DeleteOptions) error {
	_, err := simulation.Send(c.p.sender, nil, func(bool) (*batchv1alpha1.SequentialJob, error) {
		current := c.p.sequence()
		switch {
		case current == nil:
			return nil, simulation.ErrNotFound
		case current.UID != *options.Preconditions.UID || current.ResourceVersion != *options.Preconditions.ResourceVersion:
			return nil, simulation.ErrConflict
		}
		c.p.Note("  deletes the sequence after its time to live")
		c.p.rules.sequenceDeleted(current)
		c.p.deleteSequence(metav1.FinalizerDeleteDependents)
		return nil, nil
	})
	return err
}

// storeFinalizers stores a sequence with other finalizers. One that is being deleted goes with the last of them.
func (e *env) storeFinalizers(next *batchv1alpha1.SequentialJob) *batchv1alpha1.SequentialJob {
	if next.DeletionTimestamp != nil && len(next.Finalizers) == 0 {
		e.Note("the sequence is gone")
		next.ResourceVersion = strconv.Itoa(e.sequences.Versions.Last + 1)
		e.sequences.Remove(name)
		return next
	}
	e.sequences.Put(next)
	return next
}

func (e *env) dropFinalizer(finalizer string) {
	next := e.sequence().DeepCopy()
	next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == finalizer })
	e.storeFinalizers(next)
}

// deleteSequence is what the API server does when a sequence is deleted.
func (e *env) deleteSequence(finalizer string) {
	next := e.sequence().DeepCopy()
	if next.DeletionTimestamp == nil {
		next.DeletionTimestamp = ptr.To(e.stored())
		next.Generation++
	}
	if finalizer != "" && !contains(next.Finalizers, finalizer) {
		next.Finalizers = append(next.Finalizers, finalizer)
	}
	e.storeFinalizers(next)
}

func contains(all []string, one string) bool { return slices.Contains(all, one) }

var (
	_ metav1.Object = &batchv1.Job{}
	_ metav1.Object = &jobsetv1alpha2.JobSet{}
)
