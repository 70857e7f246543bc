// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package orphans raises an alarm about Jobs whose owner the API does not know. The garbage collector deletes such Jobs; if there are many
// of them, or they stay, the store of jobset-apiserver has lost their owners, or the main cluster is older than the store.
//
// It looks into caches only. A Job is suspect if its owner is not in the cache; most of these are being deleted with their owner, and are
// gone at the next look. Of suspects that were there at the last look, too, some owners are read from the API before anything is said.
package orphans

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

const (
	// lookEvery is the time between two looks, and lookAgain that after one with suspects.
	lookEvery, lookAgain = 3 * time.Minute, time.Minute
	// maxOwners is the number of suspects that are remembered, and maxReads that of owners that one look reads from the API.
	maxOwners, maxReads = 10_000, 20
	// readTimeout is the time for the answer about one owner.
	readTimeout = 5 * time.Second
)

// ReasonOwnerUnknown is the reason of the event about a Job whose owner the API does not know.
const ReasonOwnerUnknown = "OwnerUnknown"

// Owner is the owner of a Job, as the Job names it.
type Owner struct {
	Namespace, Name string
	UID             types.UID
}

// Job is a Job that has an owner and is not being deleted.
type Job struct {
	Name  string
	UID   types.UID
	Owner Owner
}

// Config is what a Watcher needs.
type Config struct {
	// Kind is the kind of the owners.
	Kind string
	// Jobs are the cached Jobs with an owner of the kind that are not being deleted.
	Jobs func() iter.Seq[Job]
	// Cached returns whether the owner is in the cache.
	Cached func(Owner) bool
	// Read reads the owner of the name from the API.
	Read func(ctx context.Context, namespace, name string) (metav1.Object, error)
	// Recorder sends events.
	Recorder events.EventRecorder
}

// Watcher looks for Jobs whose owner the API does not know.
type Watcher struct {
	Config
	// suspects are the owners of the last look that were not in the cache.
	suspects map[types.UID]bool
	// alarmed is the number of Jobs that the last alarm was about; 0 if it is over.
	alarmed int
}

// suspect is an owner that is not in the cache.
type suspect struct {
	Owner
	// job is the first of its Jobs by name, and jobs is their number.
	job  Job
	jobs int
}

// CachedIn returns Config.Cached for the owners that get reads from a cache. An owner that the server cannot read any more counts as
// cached: it exists, and the cache may not hold its UID.
func CachedIn[O interface {
	comparable
	metav1.Object
}](get func(cache.ObjectName) (O, error)) func(Owner) bool {
	var none O
	return func(owner Owner) bool {
		cached, err := get(cache.NewObjectName(owner.Namespace, owner.Name))
		return err != nil || cached != none && (cached.GetUID() == owner.UID || unreadable.Is(cached))
	}
}

// NewWatcher returns a Watcher that has seen nothing.
func NewWatcher(config Config) *Watcher {
	registerMetrics()
	return &Watcher{Config: config}
}

// Run looks every few minutes until the context ends. The caches are filled.
func (w *Watcher) Run(ctx context.Context) {
	defer jobsWithoutOwner.DeleteLabelValues(w.Kind)
	for {
		w.look(ctx)
		pause := lookEvery
		if len(w.suspects) > 0 {
			pause = lookAgain
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// look compares the suspects with those of the last look, and says what it has found.
func (w *Watcher) look(ctx context.Context) {
	found := w.find()
	again := make([]*suspect, 0, len(found))
	next := make(map[types.UID]bool, len(found))
	for uid, s := range found {
		if next[uid] = true; w.suspects[uid] {
			again = append(again, s)
		}
	}
	w.suspects = next
	slices.SortFunc(again, func(a, b *suspect) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	unknown, err := w.unknown(ctx, again)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Could not find out whether the owners of Jobs exist", "reason", err.Error())
		return // a server that does not answer says nothing about owners
	}
	w.say(ctx, unknown)
}

// find returns the owners that Jobs name and that are not in the cache. It remembers no more of them than there is room for.
func (w *Watcher) find() map[types.UID]*suspect {
	found := map[types.UID]*suspect{}
	for job := range w.Jobs() {
		s := found[job.Owner.UID]
		switch {
		case s != nil:
			s.jobs++
			if job.Name < s.job.Name {
				s.job = job
			}
		case len(found) < maxOwners && !w.Cached(job.Owner):
			found[job.Owner.UID] = &suspect{Owner: job.Owner, job: job, jobs: 1}
		}
	}
	return found
}

// unknown returns those of the suspects that the API does not know, as far as it was asked. It asks for the first ones; if it knows none
// of these, it is not asked for the others either, which count as unknown too.
func (w *Watcher) unknown(ctx context.Context, suspects []*suspect) ([]*suspect, error) {
	var unknown []*suspect
	for i, s := range suspects {
		if i == maxReads {
			if len(unknown) == i {
				unknown = append(unknown, suspects[i:]...)
			}
			break
		}
		exists, err := w.exists(ctx, s.Owner)
		if err != nil {
			return nil, err
		}
		if !exists {
			unknown = append(unknown, s)
		}
	}
	return unknown, nil
}

func (w *Watcher) exists(ctx context.Context, owner Owner) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	live, err := w.Read(ctx, owner.Namespace, owner.Name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s %s/%s: %w", w.Kind, owner.Namespace, owner.Name, err)
	}
	return live.GetUID() == owner.UID, nil
}

// say raises the alarm if there are more Jobs than at the last alarm, and ends it if there are none.
func (w *Watcher) say(ctx context.Context, unknown []*suspect) {
	jobs := 0
	for _, s := range unknown {
		jobs += s.jobs
	}
	jobsWithoutOwner.WithLabelValues(w.Kind).Set(float64(jobs))
	was := w.alarmed
	w.alarmed = jobs
	switch {
	case jobs == 0 && was > 0:
		klog.FromContext(ctx).Info("Every Job's owner exists", "kind", w.Kind)
	case jobs > was:
		first := unknown[0]
		klog.FromContext(ctx).Error(nil, "Jobs have owners that the API does not know; "+advice, "kind", w.Kind, "jobs", jobs, "owners",
			len(unknown),
			"job", klog.KRef(first.Namespace, first.job.Name), "owner", first.Name, "ownerUID", first.UID)
		children.SendEvent(w.Recorder, &corev1.ObjectReference{
			APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Namespace: first.Namespace, Name: first.job.Name, UID: first.job.UID,
		}, nil, plan.Event{Type: corev1.EventTypeWarning, Reason: ReasonOwnerUnknown, Note: fmt.Sprintf(
			"the API does not know %s %q with the UID %s, which owns this Job and %d others; %s",
			w.Kind, first.Name, first.UID, first.jobs-1, advice)})
	}
}

const advice = "the garbage collector deletes such Jobs; if the store of jobset-apiserver was replaced or has lost data, see " +
	"`jobset-apiserver store status`; `jobset-apiserver store release-orphans` lets the Jobs run to their end"
