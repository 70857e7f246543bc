// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inplace counts how far the pods of Jobs have come with restarting where they are.
//
// Each change of a pod costs the same, whatever the number of pods, and so does each look at a Job. A restart of N pods, each of which
// changes once, costs O(N) in all. Only pods that say something are counted, so that pods of other sets cost nothing.
package inplace

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	planinplace "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/inplace"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

const (
	// maxShown is the length in bytes up to which an attempt that is no number is kept and shown.
	maxShown = 64
	// maxProblems is the number of pods of a Job whose problems are named.
	maxProblems = 10
)

// Pod is what counts of a pod.
type Pod struct {
	Namespace unique.Handle[string]
	Name      string
	// Job is the UID of the Job that controls the pod. It is asked for only if the pod says something.
	Job func() types.UID
	// Attempt is what the pod says it has reached.
	Attempt Attempt
	// Failed and Succeeded are the phases of a pod that has ended, so that the attempt that it has reached does not count.
	Failed, Succeeded bool
	// ContainerRestarts is the largest number of restarts of a container.
	ContainerRestarts int32
}

// Attempt is the value of the annotation of a pod in a form that takes little memory. The zero value means that the pod
// has no such annotation.
type Attempt struct{ value unique.Handle[string] }

// NewAttempt returns the attempt in the value of an annotation. Of what is no number of 0 or more, the beginning is kept.
func NewAttempt(value string) Attempt {
	if n, ok := parse(value); ok {
		return Attempt{unique.Make(strconv.Itoa(int(n)))}
	}
	return Attempt{unique.Make(text.TruncateWithEllipsis(value, maxShown))}
}

// given returns whether the pod has the annotation.
func (a Attempt) given() bool { return a != Attempt{} }

func parse(value string) (int32, bool) {
	n, err := strconv.ParseInt(value, 10, 32)
	return int32(n), err == nil && n >= 0
}

// Tally counts the pods of all Jobs. It does not depend on the order or the completeness of what it is shown: what counts of a pod is
// what was shown last.
type Tally struct {
	mu   sync.Mutex
	pods map[podName]counted
	jobs map[types.UID]*job
	// reached is the number of times that a pod was the first of its Job to reach an attempt.
	reached uint64
}

type podName struct {
	namespace unique.Handle[string]
	name      string
}

// counted is what a pod has been counted as.
type counted struct {
	job       *job
	restarts  int32
	attempt   int32
	says      bool
	malformed bool
	succeeded bool
}

// job holds the numbers of pods of one Job.
type job struct {
	uid types.UID
	// pods is the number of pods that are counted in any way.
	pods int64
	// attempts are the attempts that pods have reached, and restarts is the number of pods by their largest number of restarts of a container.
	attempts map[int32]*attempt
	restarts map[int32]int64
	// malformed are the values that are no numbers, by the name of the pod.
	malformed map[string]string
	// succeeded is the number of pods that had said something and have succeeded.
	succeeded int64
}

// attempt is one that pods of a Job have reached.
type attempt struct {
	pods int64
	// first is the name of the pod that came first, and order is its place among the first ones of all.
	first string
	order uint64
}

// New returns a Tally of no pods.
func New() *Tally { return &Tally{pods: map[podName]counted{}, jobs: map[types.UID]*job{}} }

// Show counts a pod as it is now. It returns whether a decision about its set may depend on what has changed: an
// attempt, or a number of restarts, that no other pod of the Job has, a malformed value, or one more pod of a Job all
// of whose pods have reached the same attempt or have succeeded.
func (t *Tally) Show(pod Pod) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := podName{pod.Namespace, pod.Name}
	was, known := t.pods[name]
	if !pod.Attempt.given() && pod.ContainerRestarts == 0 {
		return known && t.drop(name, was)
	}
	is := counted{restarts: pod.ContainerRestarts}
	switch {
	case !pod.Attempt.given() || pod.Failed:
	case pod.Succeeded:
		is.succeeded = true
	default:
		is.attempt, is.says = parse(pod.Attempt.value.Value())
		is.malformed = !is.says
	}
	uid := pod.Job()
	is.job = t.jobs[uid]
	if known && was == is && !is.malformed {
		return false
	}
	changed := known && t.drop(name, was)
	is.job = t.jobOf(uid)
	t.pods[name] = is
	return t.add(name.name, is, pod.Attempt) || changed
}

// Remove counts a pod no longer. It returns whether a decision about its set may depend on that.
func (t *Tally) Remove(namespace unique.Handle[string], name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := podName{namespace, name}
	was, known := t.pods[key]
	return known && t.drop(key, was)
}

func (t *Tally) jobOf(uid types.UID) *job {
	j := t.jobs[uid]
	if j == nil {
		j = &job{uid: uid, attempts: map[int32]*attempt{}, restarts: map[int32]int64{}}
		t.jobs[uid] = j
	}
	return j
}

func (t *Tally) add(name string, is counted, value Attempt) (changed bool) {
	j := is.job
	j.pods++
	if is.malformed {
		if j.malformed == nil {
			j.malformed = map[string]string{}
		}
		j.malformed[name] = value.value.Value()
		changed = true
	}
	if is.succeeded {
		j.succeeded++
		changed = len(j.attempts) == 1
	}
	if is.says {
		a := j.attempts[is.attempt]
		if a == nil {
			t.reached++
			a = &attempt{first: name, order: t.reached}
			j.attempts[is.attempt] = a
			changed = true
		}
		a.pods++
		changed = changed || len(j.attempts) == 1
	}
	if is.restarts > 0 {
		j.restarts[is.restarts]++
		changed = changed || j.restarts[is.restarts] == 1
	}
	return changed
}

func (t *Tally) drop(name podName, was counted) (changed bool) {
	j := was.job
	delete(t.pods, name)
	if was.malformed {
		delete(j.malformed, name.name)
		changed = true
	}
	if was.succeeded {
		j.succeeded--
		changed = changed || len(j.attempts) == 1
	}
	if was.says {
		a := j.attempts[was.attempt]
		if a.pods--; a.pods == 0 {
			delete(j.attempts, was.attempt)
		}
		changed = changed || a.pods == 0 || len(j.attempts) == 1
	}
	if was.restarts > 0 {
		if j.restarts[was.restarts]--; j.restarts[was.restarts] == 0 {
			delete(j.restarts, was.restarts)
			changed = true
		}
	}
	if j.pods--; j.pods == 0 {
		delete(t.jobs, j.uid)
	}
	return changed
}

// Of returns how far the pods of a Job have come. It costs as much as the Job has different attempts, of which there
// are two while it restarts.
func (t *Tally) Of(uid types.UID) (planinplace.State, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j := t.jobs[uid]
	if j == nil {
		return planinplace.State{}, false
	}
	var out planinplace.State
	for n, a := range j.attempts {
		if out.Pods == 0 || n < out.Lowest {
			out.Lowest = n
		}
		if out.Pods == 0 || n > out.Highest {
			out.Highest, out.First, out.Order = n, a.first, a.order
		}
		out.Pods += a.pods
	}
	for n := range j.restarts {
		out.ContainerRestarts = max(out.ContainerRestarts, n)
	}
	out.Succeeded, out.Problems = j.succeeded, j.problems()
	return out, true
}

func (j *job) problems() (out []string) {
	if len(j.malformed) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(j.malformed))
	for _, name := range names[:min(len(names), maxProblems)] {
		out = append(out, fmt.Sprintf("pod %q prevents the in-place restart: annotation %s must be a number of 0 or more, not %q",
			name, jobsetv1alpha2.InPlaceRestartAttemptKey, j.malformed[name]))
	}
	return out
}
