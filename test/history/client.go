// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	typedv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

const (
	// annotation holds the value of an object, and a condition of the type its status.
	annotation    = "history.jobset-apiserver.io/value"
	conditionType = "History"
	// manager keeps controllers away from the objects.
	manager = "history.jobset-apiserver.io/none"
)

// client sends one request at a time.
type client struct {
	*Run
	number  int
	jobSets typedv1alpha2.JobSetInterface
	dice    *rand.Rand
	// known is what the client believes of objects.
	known      map[string]State
	operations []Operation
	answered   atomic.Int64
}

// weights are the shares of the kinds of operations.
var weights = []struct {
	kind   Kind
	withID bool
	share  int
}{
	{Create, false, 15}, {Update, false, 27}, {UpdateStatus, false, 18}, {Delete, false, 4}, {Delete, true, 6}, {Get, false, 20}, {List, false, 10},
}

func (c *client) work(ctx context.Context) {
	for ctx.Err() == nil {
		o := c.choose()
		// A stale version is worth a try too, but mostly a client reads before it writes.
		if (o.Kind == Update || o.Kind == UpdateStatus) && c.dice.IntN(4) > 0 {
			c.do(ctx, Operation{Kind: Get, Object: o.Object})
			o.Version = c.known[o.Object].Version
		}
		if o.Kind == Get || o.Kind == List || o.Kind == Create || o.Kind == Delete || o.Version > 0 {
			c.do(ctx, o)
		}
		pause := time.Duration(c.dice.Int64N(int64(c.Pause) + 1))
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// choose returns the next operation.
func (c *client) choose() Operation {
	o := Operation{Object: fmt.Sprintf("set-%d", c.dice.IntN(c.Objects))}
	state := c.known[o.Object]
	roll := c.dice.IntN(100)
	for _, w := range weights {
		if roll -= w.share; roll >= 0 {
			continue
		}
		o.Kind = w.kind
		switch {
		case w.kind == List:
			o.Object = ""
		case w.withID:
			o.UID = state.UID
		case w.kind == Update, w.kind == UpdateStatus:
			o.Version = state.Version
		}
		return o
	}
	o.Kind = Get
	return o
}

// until repeats an operation until it is done.
func (c *client) until(ctx context.Context, next func(attempt int) Operation) (Operation, error) {
	for attempt := 0; ; attempt++ {
		o := c.do(ctx, next(attempt))
		if o.Outcome == Done {
			return o, nil
		}
		select {
		case <-ctx.Done():
			return o, fmt.Errorf("the server does not answer at the end: %s: %s", o.Kind, o.Reason)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// do sends a request and records it. Requests that began are not cancelled at the end: their answers would be unknown.
func (c *client) do(ctx context.Context, o Operation) Operation {
	o.Client = c.number
	if o.Kind.writes() && o.Kind != Delete {
		o.Value = fmt.Sprintf("%d-%d", c.number, len(c.operations))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Timeout)
	defer cancel()
	o.Start = c.now()
	err := c.send(ctx, &o)
	o.End = c.now()
	o.Outcome = outcome(err)
	if err != nil {
		o.Reason = reason(err)
	}
	c.learn(&o)
	c.operations = append(c.operations, o)
	if o.Outcome != Unknown {
		c.answered.Add(1)
	}
	return o
}

func (c *client) send(ctx context.Context, o *Operation) error {
	var got *jobsetv1alpha2.JobSet
	var err error
	switch o.Kind {
	case Create:
		got, err = c.jobSets.Create(ctx, object(o), metav1.CreateOptions{})
	case Update:
		got, err = c.jobSets.Update(ctx, object(o), metav1.UpdateOptions{})
	case UpdateStatus:
		got, err = c.jobSets.UpdateStatus(ctx, object(o), metav1.UpdateOptions{})
	case Delete:
		return c.jobSets.Delete(ctx, o.Object, deleteOptions(o.UID))
	case Get:
		got, err = c.jobSets.Get(ctx, o.Object, metav1.GetOptions{})
	case List:
		return c.list(ctx, o)
	}
	if err == nil {
		o.State = stateOf(got)
	}
	return err
}

func (c *client) list(ctx context.Context, o *Operation) error {
	list, err := c.jobSets.List(ctx, metav1.ListOptions{})
	if err == nil {
		o.Version, o.Items = versionOf(list.ResourceVersion), itemsOf(list)
	}
	return err
}

// learn keeps what an answer says about objects.
func (c *client) learn(o *Operation) {
	switch {
	case o.Outcome == Done && o.Kind == List:
		c.known = map[string]State{}
		for name, state := range o.Items {
			c.known[name] = state
		}
	case o.Outcome == Done && o.Kind != Delete:
		c.known[o.Object] = o.State
	case o.Outcome == NotFound:
		delete(c.known, o.Object)
	}
}

// object returns what a write sends. Only what it changes and the precondition differ.
func object(o *Operation) *jobsetv1alpha2.JobSet {
	js := builders.JobSet(o.Object, builders.WithJobs("workers", 1, 1))
	js.Namespace = ""
	js.Spec.ManagedBy = ptr.To(manager)
	js.Spec.SuccessPolicy = &jobsetv1alpha2.SuccessPolicy{Operator: jobsetv1alpha2.OperatorAll}
	if o.Version > 0 {
		js.ResourceVersion = strconv.FormatInt(o.Version, 10)
	}
	if o.Kind == UpdateStatus {
		js.Status.Conditions = []metav1.Condition{{
			Type: conditionType, Status: metav1.ConditionTrue, Reason: "Written", Message: o.Value, LastTransitionTime: metav1.Unix(1, 0),
		}}
		return js
	}
	js.Annotations = map[string]string{annotation: o.Value}
	return js
}

func deleteOptions(uid types.UID) metav1.DeleteOptions {
	if uid == "" {
		return metav1.DeleteOptions{}
	}
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
}

func stateOf(js *jobsetv1alpha2.JobSet) State {
	s := State{UID: js.UID, Version: versionOf(js.ResourceVersion), Value: js.Annotations[annotation]}
	if condition := meta.FindStatusCondition(js.Status.Conditions, conditionType); condition != nil {
		s.Status = condition.Message
	}
	return s
}

func itemsOf(list *jobsetv1alpha2.JobSetList) map[string]State {
	items := make(map[string]State, len(list.Items))
	for i := range list.Items {
		items[list.Items[i].Name] = stateOf(&list.Items[i])
	}
	return items
}

// versionOf returns a resourceVersion as a number, and -1, which breaks every rule, if it is none.
func versionOf(resourceVersion string) int64 {
	version, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		return -1
	}
	return version
}

// outcome sorts answers. Errors that are no answer to the question leave it open whether a write happened. An answer of 404 counts
// whoever gives it, because clients take it for the truth.
func outcome(err error) Outcome {
	switch {
	case err == nil:
		return Done
	case apierrors.IsNotFound(err):
		return NotFound
	case apierrors.IsAlreadyExists(err):
		return Exists
	case apierrors.IsConflict(err):
		return Conflict
	default:
		return Unknown
	}
}

// reason describes an error so that equal ones can be counted.
func reason(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	text := err.Error()
	return text[max(0, len(text)-60):]
}
