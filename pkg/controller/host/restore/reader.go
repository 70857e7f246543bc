// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restore finds out whether an object was written since the store of jobset-apiserver was restored from a backup. The server
// says so in the record of its witness, a ConfigMap in the main cluster, before it answers anything with what was restored.
package restore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/permission"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// readTimeout is the time for an answer.
const readTimeout = 5 * time.Second

// Client reads ConfigMaps of the namespace of the record.
type Client interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.ConfigMap, error)
}

// Reader reads the record. One request answers all callers that asked before it began, so that many objects cost few requests. No
// answer serves later callers: an earlier one may be from before a restore.
type Reader struct {
	client Client
	clock  clock.PassiveClock
	// asked counts the callers.
	asked atomic.Int64

	// turn holds an element while no request is under way. What follows belongs to the caller who took it.
	turn chan struct{}
	// answered is the last caller whom the last answer serves.
	answered int64
	restored *witness.Restored
	err      error
	// refusals are the refusals of the record. logged is true once they were logged.
	denials permission.Series
	logged  bool
}

// NewReader returns a Reader that has read nothing.
func NewReader(client Client, clock clock.PassiveClock) *Reader {
	r := &Reader{client: client, clock: clock, turn: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	return r
}

// Object is one of the store, as the caller has seen it before it asks.
type Object struct {
	UID             types.UID
	ResourceVersion string
	// Acted is when a user last acted on the object; nil if no user did.
	Acted *metav1.MicroTime
	// Live reads the object.
	Live func(ctx context.Context) (metav1.Object, error)
}

// State is what is known of an object about a restore of the store.
type State struct {
	// Restored means that the store was restored, and that no controller has written the status of the object since. Edits of the spec, by
	// users or a queue, do not say what became of the object.
	Restored bool
	// Edited means that something else of the object was written since, and Acted that a user has acted on it.
	Edited, Acted bool
}

// Known returns what a decision about an object that is in this state depends on. There is nothing unless the store was restored.
func (s State) Known() hostplan.Known[hostplan.Restored] {
	return hostplan.Existing(hostplan.Restored{Edited: s.Edited, Acted: s.Acted}, s.Restored)
}

// StateOf returns the state of an object. It is an error if that is not known, a conflict if the caller has not seen the last version; then
// nothing may be decided that depends on it.
func (r *Reader) StateOf(ctx context.Context, o Object) (State, error) {
	version, err := strconv.ParseInt(o.ResourceVersion, 10, 64)
	if err != nil {
		return State{}, fmt.Errorf("comparing the resource version with that of the last restore: %w", err)
	}
	restored, err := r.last(ctx)
	switch {
	case err != nil:
		return State{}, fmt.Errorf("finding out whether the store was restored: %w", err)
	case restored == nil:
		return State{}, nil
	case version <= restored.Revision:
		return State{Restored: true}, nil
	}
	live, err := o.Live(ctx)
	if apierrors.IsNotFound(err) {
		return State{}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("finding out who has written the object since the store was restored: %w", err)
	}
	if live.GetUID() == o.UID && live.GetResourceVersion() != o.ResourceVersion {
		// A status that this controller wrote, and to which it got no answer, may not be in its cache yet.
		return State{}, apierrors.NewConflict(schema.GroupResource{}, live.GetName(), errors.New("the cache does not show the last write"))
	}
	return State{
		Restored: live.GetUID() == o.UID && statusOlderThan(live.GetManagedFields(), restored.Time.Time),
		Edited:   true, Acted: o.Acted != nil && !o.Acted.Time.Before(restored.Time.Time),
	}, nil
}

// statusOlderThan returns whether the status was written, and not since the time.
func statusOlderThan(entries []metav1.ManagedFieldsEntry, since time.Time) bool {
	written := false
	for _, entry := range entries {
		if entry.Subresource != "status" || entry.Time == nil {
			continue
		}
		if !entry.Time.Time.Before(since) {
			return false
		}
		written = true
	}
	return written
}

// last returns the last restore of the store; nil if there was none.
func (r *Reader) last(ctx context.Context) (*witness.Restored, error) {
	caller := r.asked.Add(1)
	select {
	case <-r.turn:
		defer func() { r.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if r.answered < caller {
		// Callers that come while the request is under way are not served by it.
		serves := r.asked.Load()
		r.restored, r.err = r.read(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err() // no answer for others
		}
		r.answered = serves
	}
	return r.restored, r.err
}

func (r *Reader) read(ctx context.Context) (*witness.Restored, error) {
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	cm, err := r.client.Get(limited, witness.Name, metav1.GetOptions{})
	r.denials.Note(err, r.clock.Now())
	if apierrors.IsForbidden(err) {
		return nil, r.forbidden(ctx, err)
	}
	if err == nil || apierrors.IsNotFound(err) {
		r.logged = false
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil // installations from before the witness, and those that do without
	case err != nil:
		return nil, err
	}
	record, err := witness.Read(cm)
	if err != nil || record == nil {
		return nil, err
	}
	return record.Restored, nil
}

// forbidden returns an error until the record has been refused for some time. Then this is an installation without the right to read it.
func (r *Reader) forbidden(ctx context.Context, err error) error {
	if !r.denials.Last(r.clock.Now()) {
		return err
	}
	if !r.logged {
		r.logged = true
		klog.FromContext(ctx).Info("No right to read the record of the store: sets that finished before the store was restored from a backup "+
			"would run again; apply the manifests of this version", "configMap", klog.KRef(witness.Namespace, witness.Name), "reason", err.Error())
	}
	return nil
}
