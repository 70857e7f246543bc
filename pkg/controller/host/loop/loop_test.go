// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	gocmp "cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/loop"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

type (
	jobSet  = *jobsetv1alpha2.JobSet
	outcome = loop.Outcome[jobSet]
)

var (
	key        = cache.NewObjectName("ns", "a")
	errRefused = errors.New("refused")
)

// rig is a Loop that notes its steps.
type rig struct {
	*loop.Loop[jobSet, string, int, int]
	client *fake.Clientset
	steps  []string
	// cached is what the cache holds, and version its version.
	cached  jobSet
	version string
	// held, waits and lags are the answers of the kind, and err is the error that comes with the last one.
	held, waits, lags bool
	err               error
	// left is what conclude returns.
	left outcome
	// apply and conclude are what the kind does, and questions and answer too if they are not nil.
	apply     func() (int, error)
	conclude  func() outcome
	questions func() []string
	answer    func() error
	// behind are the plans that wait for caches, and claims what becomes of the claims of a sync, in their order.
	behind, claims []bool
	decided        int
}

func newRig() *rig {
	stored := newSet()
	r := &rig{client: fake.NewClientset(stored), cached: stored, version: "5"}
	r.client.PrependReactor("*", "jobsets", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		r.note("%s %s", action.GetVerb(), action.GetSubresource())
		return false, nil, nil
	})
	store := consistency.NewConsistencyStore(clock.RealClock{}, map[string]consistency.Versioned{"jobsets": r, "jobs": r})
	shared := &children.Host{Consistency: store, Runner: children.NewSlowStart(1), Clock: clock.RealClock{}}
	r.apply = func() (int, error) { r.note("apply"); return 2, errRefused }
	r.conclude = func() outcome { r.note("conclude"); return r.left }
	r.Loop = &loop.Loop[jobSet, string, int, int]{
		Host: shared, Kind: kind{rig: r}, GVK: jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"), Resource: "jobsets", Recorder: r,
		Client: func(ns string) children.OwnerClient[jobSet] { return r.client.JobsetV1alpha2().JobSets(ns) },
		Outdated: func(context.Context, jobSet) (bool, error) {
			r.note("outdated")
			return r.held, nil
		},
	}
	return r
}

func newSet() jobSet {
	return &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u", ResourceVersion: "5"}}
}

func (r *rig) note(format string, args ...any) {
	r.steps = append(r.steps, fmt.Sprintf(format, args...))
}

// LastStoreSyncResourceVersion is asked before the cache is read.
func (r *rig) LastStoreSyncResourceVersion() string { r.note("version"); return r.version }

// Eventf implements events.EventRecorder.
func (r *rig) Eventf(_, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	r.note("event %s", reason)
}

func (r *rig) want(t *testing.T, steps ...string) {
	t.Helper()
	if d := cmp.Diff(steps, r.steps); d != "" {
		t.Errorf("steps (-want +got):\n%s", d)
	}
}

func TestSync(t *testing.T) {
	observing := []string{"owner", "outdated", "version", "owner", "waits", "children"}
	lag := queue.Caches(queue.LagRetry)
	for name, tc := range map[string]struct {
		change func(*rig)
		steps  []string
		due    queue.Due
		err    error
	}{
		"all steps":                              {steps: append(observing, "complete", "decide", "apply", "conclude"), due: queue.After(time.Hour), err: errRefused},
		"it is older than its namespace":         {change: func(r *rig) { r.held = true }, steps: observing[:2]},
		"the cache does not show the last write": {change: func(r *rig) { r.version = "3" }, steps: observing[:3], due: lag},
		"it is gone": {
			change: func(r *rig) { r.cached = nil }, steps: []string{"owner", "version", "owner", "forgotten", "absent"},
		},
		"it cannot be read": {
			change: func(r *rig) { r.cached.Annotations = map[string]string{unreadable.Annotation: "damaged"} },
			steps:  append(observing[:4:4], "absent"),
		},
		"it waits":                     {change: func(r *rig) { r.waits = true }, steps: observing[:5], due: lag},
		"a deletion does not show":     {change: func(r *rig) { r.Host.Consistency.Deleted(key, types.UID("child")) }, steps: observing, due: lag},
		"caches lag behind the status": {change: func(r *rig) { r.lags = true }, steps: append(observing, "complete"), due: lag},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			r.left = outcome{Owner: r.cached, Due: queue.After(time.Hour)}
			r.Host.Consistency.Wrote(key, "jobs", "4")
			if tc.change != nil {
				tc.change(r)
			}
			due, err := r.Sync(t.Context(), key)
			if due != tc.due || !errors.Is(err, tc.err) || tc.err == nil && err != nil {
				t.Errorf("due %+v, error %v; want %+v, %v", due, err, tc.due, tc.err)
			}
			r.want(t, tc.steps...)
		})
	}
}

// TestQuestions has decisions ask for as much as the observation lacks.
func TestQuestions(t *testing.T) {
	for name, tc := range map[string]struct {
		// questions returns what is asked for by how often something was answered.
		questions func(answers int) []string
		refused   error
		want      []string
		wantErr   string
	}{
		"nothing":         {questions: func(int) []string { return nil }, want: []string{"decide"}},
		"two rounds":      {questions: func(n int) []string { return [][]string{{"a", "b"}, {"c"}, nil}[n] }, want: []string{"decide", "answer", "decide", "answer", "decide"}},
		"an error":        {questions: func(int) []string { return []string{"a"} }, refused: errRefused, want: []string{"decide", "answer"}, wantErr: "refused"},
		"the same twice":  {questions: func(int) []string { return []string{"a"} }, want: []string{"decide", "answer", "decide"}, wantErr: `deciding about jobset ns/a: asked twice for one of ["a"]`},
		"too many rounds": {questions: func(n int) []string { return []string{fmt.Sprint(n)} }, want: slices.Repeat([]string{"decide", "answer"}, 10), wantErr: "deciding about jobset ns/a: asked in more than 10 rounds"},
	} {
		t.Run(name, func(t *testing.T) {
			r, answers := newRig(), 0
			r.questions = func() []string { return tc.questions(answers) }
			r.answer = func() error {
				r.note("answer")
				answers++
				return tc.refused
			}
			r.Host.Consistency.Wrote(key, "jobs", "4")
			_, _, _, err := r.Decided(t.Context(), key)
			if got := fmt.Sprint(err); got != gocmp.Or(tc.wantErr, "<nil>") {
				t.Errorf("error %s, want %s", got, tc.wantErr)
			}
			if name == "too many rounds" {
				tc.want = append(tc.want, "decide")
			}
			r.steps = r.steps[slices.Index(r.steps, "decide"):]
			r.want(t, tc.want...)
		})
	}
}

func TestWhatIsGoneIsForgotten(t *testing.T) {
	r := newRig()
	r.Host.Consistency.Deleted(key, "child")
	r.cached = nil
	if _, err := r.Sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if !r.Host.Consistency.DeletionsShown(key, []consistency.Child{{UID: "child"}}) {
		t.Error("a deletion of a child of an object that is gone is remembered")
	}
}

func TestFinish(t *testing.T) {
	write, events := []loop.Report{{Event: plan.Event{Reason: "Write"}}}, []loop.Report{{Event: plan.Event{Reason: "Changed"}}}
	for name, tc := range map[string]struct {
		change func(*rig)
		// storing is the error of the write of the status, and kept that of Stored. over means that the time of the sync is over.
		storing, kept error
		over          bool
		steps         []string
		err           error
	}{
		"the status is stored": {steps: []string{"event Write", "update status", "stored", "event Changed", "then"}},
		"the status stays": {
			change: func(r *rig) { r.left.Next = nil }, steps: []string{"event Write", "stored", "event Changed", "then"},
		},
		"the status is refused": {storing: errRefused, err: errRefused, steps: []string{"event Write", "update status", "not stored"}},
		"the object is gone": {
			storing: apierrors.NewNotFound(jobsetv1alpha2.Resource("jobsets"), "a"), steps: []string{"event Write", "update status"},
		},
		"a field was not kept": {
			kept: errRefused, err: errRefused, steps: []string{"event Write", "update status", "stored", "event Changed"},
		},
		"the time of the sync is over": {over: true, steps: []string{"event Write", "update status", "stored", "event Changed"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			r.left = outcome{
				Owner: r.cached, Next: newSet(), Writes: write, Events: events,
				NotStored: func(context.Context, error) { r.note("not stored") },
				Stored:    func(jobSet) error { r.note("stored"); return tc.kept },
				Then:      func(context.Context, jobSet) error { r.note("then"); return nil },
			}
			if tc.change != nil {
				tc.change(r)
			}
			if tc.storing != nil {
				r.client.PrependReactor("update", "jobsets", func(clientgotesting.Action) (bool, runtime.Object, error) {
					r.note("update status")
					return true, nil, tc.storing
				})
			}
			ctx, end := context.WithCancel(t.Context())
			defer end()
			if tc.over {
				end()
			}
			if err := r.Finish(ctx, r.left); !errors.Is(err, tc.err) || tc.err == nil && err != nil {
				t.Errorf("error %v, want %v", err, tc.err)
			}
			r.want(t, tc.steps...)
		})
	}
}
