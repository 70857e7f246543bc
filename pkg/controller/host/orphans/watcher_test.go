// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package orphans

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/testutil"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// cluster is what a Watcher sees.
type cluster struct {
	t        *testing.T
	jobs     []Child
	services []Child
	cached   map[types.UID]bool
	// live are the UIDs by name, and err is what the API answers instead.
	live map[string]types.UID
	err  error
	// listErr is why the Jobs are not known.
	listErr error
	// unreadable means that the API returns placeholders.
	unreadable bool
	reads      int
	events     []string
}

func newWatcher(c *cluster) *Watcher {
	return NewWatcher(Config{
		Kind: "JobSet", Recorder: c, Sources: []Source{
			{batchv1.SchemeGroupVersion.WithKind("Job"), func(context.Context) (iter.Seq[Child], error) { return slices.Values(c.jobs), c.listErr }},
			{corev1.SchemeGroupVersion.WithKind("Service"), func(context.Context) (iter.Seq[Child], error) { return slices.Values(c.services), nil }},
		},
		Cached: func(o Owner) bool { return c.cached[o.UID] },
		Read: func(_ context.Context, _, name string) (metav1.Object, error) {
			c.reads++
			if c.err != nil {
				return nil, c.err
			}
			if c.unreadable {
				return &metav1.ObjectMeta{Annotations: map[string]string{unreadable.Annotation: "its bytes are damaged"}}, nil
			}
			if uid, found := c.live[name]; found {
				return &metav1.ObjectMeta{UID: uid}, nil
			}
			return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "jobsets"}, name)
		},
	})
}

func (c *cluster) Eventf(regarding, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	c.events = append(c.events, fmt.Sprintf("%s %s %s", eventType, reason, fmt.Sprintf(note, args...)))
}

func (c *cluster) gauge() float64 { return c.gaugeOf("Job") }

func (c *cluster) gaugeOf(kind string) float64 {
	c.t.Helper()
	value, err := testutil.GetGaugeMetricValue(withoutOwner.WithLabelValues("JobSet", kind))
	if err != nil {
		c.t.Fatal(err)
	}
	return value
}

// jobsOf returns so many Jobs of an owner, whose UID is its name.
func jobsOf(owner string, n int) (jobs []Child) {
	for i := range n {
		name := fmt.Sprintf("%s-w-%d", owner, i)
		jobs = append(jobs, Child{Name: name, UID: types.UID("uid-" + name), Owner: Owner{Namespace: "ml", Name: owner, UID: types.UID(owner)}})
	}
	return jobs
}

func TestAlarm(t *testing.T) {
	jobs := append(jobsOf("train", 3), jobsOf("eval", 1)...)
	for name, tc := range map[string]struct {
		cached map[types.UID]bool
		live   map[string]types.UID
		err    error
		// second are the Jobs at the second look.
		second    []Child
		wantGauge float64
		wantEvent string
		wantReads int
	}{
		"all owners are known":                   {cached: map[types.UID]bool{"train": true, "eval": true}, second: jobs},
		"the Jobs are being deleted":             {second: nil},
		"the cache lags":                         {live: map[string]types.UID{"train": "train", "eval": "eval"}, second: jobs, wantReads: 2},
		"one owner is unknown":                   {cached: map[types.UID]bool{"eval": true}, second: jobs, wantReads: 1, wantGauge: 3, wantEvent: `the API does not know JobSet "train" with the UID train, which owns this Job and 2 others`},
		"an owner has the name and another UID":  {cached: map[types.UID]bool{"eval": true}, live: map[string]types.UID{"train": "new"}, second: jobs, wantReads: 1, wantGauge: 3, wantEvent: "release-orphans"},
		"no server answers":                      {err: apierrors.NewServiceUnavailable("refused"), second: jobs, wantReads: 1},
		"others are unknown than at first":       {second: jobsOf("other", 2)},
		"some of the Jobs are still being found": {second: jobsOf("train", 1), wantReads: 1, wantGauge: 1, wantEvent: "which owns this Job and 0 others"},
	} {
		t.Run(name, func(t *testing.T) {
			withoutOwner.Reset()
			c := &cluster{t: t, jobs: jobs, cached: tc.cached, live: tc.live, err: tc.err}
			w := newWatcher(c)
			w.look(t.Context())
			if len(c.events) > 0 || c.reads > 0 || c.gauge() > 0 {
				t.Errorf("after the first look: %q, %d reads, %v", c.events, c.reads, c.gauge())
			}
			c.jobs = tc.second
			w.look(t.Context())
			if got := strings.Join(c.events, "; "); !strings.Contains(got, tc.wantEvent) || (got == "") != (tc.wantEvent == "") || c.reads != tc.wantReads || c.gauge() != tc.wantGauge {
				t.Errorf("events %q, %d reads, gauge %v", got, c.reads, c.gauge())
			}
		})
	}
}

func TestCachedIn(t *testing.T) {
	unreadableObject := &metav1.ObjectMeta{Annotations: map[string]string{unreadable.Annotation: "its bytes are damaged"}}
	for name, tc := range map[string]struct {
		cached *metav1.ObjectMeta
		err    error
		want   bool
	}{
		"the owner is in the cache":     {cached: &metav1.ObjectMeta{UID: "train"}, want: true},
		"it is not":                     {want: false},
		"another object has its name":   {cached: &metav1.ObjectMeta{UID: "new"}, want: false},
		"it cannot be read any more":    {cached: unreadableObject, want: true},
		"the cache cannot be looked up": {err: errors.New("no index"), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			cached := CachedIn(func(cache.ObjectName) (*metav1.ObjectMeta, error) { return tc.cached, tc.err })
			if got := cached(Owner{Namespace: "ml", Name: "train", UID: "train"}); got != tc.want {
				t.Errorf("cached: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestAlarmIsRaisedOnce: not with every look, again if there are more Jobs, and again after it was over.
func TestAlarmIsRaisedOnce(t *testing.T) {
	withoutOwner.Reset()
	c := &cluster{t: t, jobs: jobsOf("train", 2)}
	w := newWatcher(c)
	for _, step := range []struct {
		jobs       []Child
		wantEvents int
		wantGauge  float64
	}{
		{jobsOf("train", 2), 0, 0}, {jobsOf("train", 2), 1, 2}, {jobsOf("train", 2), 1, 2}, {jobsOf("train", 1), 1, 1},
		{jobsOf("train", 3), 2, 3}, {nil, 2, 0}, {jobsOf("train", 1), 2, 0}, {jobsOf("train", 1), 3, 1},
	} {
		c.jobs = step.jobs
		w.look(t.Context())
		if len(c.events) != step.wantEvents || c.gauge() != step.wantGauge {
			t.Errorf("with %d Jobs: %d events, gauge %v; want %+v", len(step.jobs), len(c.events), c.gauge(), step)
		}
	}
}

// TestAlarmHasBounds: many owners are unknown, and then some of very many.
func TestAlarmHasBounds(t *testing.T) {
	withoutOwner.Reset()
	c := &cluster{t: t, cached: map[types.UID]bool{}}
	for i := range maxOwners + 5 {
		c.jobs = append(c.jobs, jobsOf(fmt.Sprintf("s%05d", i), 2)...)
	}
	w := newWatcher(c)
	w.look(t.Context())
	w.look(t.Context())
	if c.reads != maxReads || c.gauge() != 2*maxOwners || len(w.suspects) != maxOwners || len(c.events) != 1 {
		t.Errorf("%d reads, %v Jobs, %d suspects, %d events", c.reads, c.gauge(), len(w.suspects), len(c.events))
	}
	c.live = map[string]types.UID{"s00003": "s00003"} // the cache lags: of the others nothing is said
	w.look(t.Context())
	if c.reads != 2*maxReads || c.gauge() != 2*(maxReads-1) {
		t.Errorf("%d reads, %v Jobs", c.reads, c.gauge())
	}
}

// TestAlarmCountsAllChildren: children of all kinds count, also when those without pods are the only ones that are left.
func TestAlarmCountsAllChildren(t *testing.T) {
	for name, tc := range map[string]struct {
		jobs, services []Child
		unreadable     bool
		listErr        error
		wantEvent      string
	}{
		"Jobs and Services": {jobs: jobsOf("train", 2), services: jobsOf("train", 1),
			wantEvent: `Warning OwnerUnknown the API does not know JobSet "train" with the UID train, which owns this Job and 2 others; ` + advice},
		"a Service alone": {services: jobsOf("train", 1),
			wantEvent: `Warning OwnerUnknown the API does not know JobSet "train" with the UID train, which owns this Service and 0 others; ` + advice},
		"the owner cannot be read": {services: jobsOf("train", 1), unreadable: true},
		"the Jobs are not known":   {services: jobsOf("train", 1), listErr: errors.New("not listed")},
	} {
		withoutOwner.Reset()
		c := &cluster{t: t, jobs: tc.jobs, services: tc.services, unreadable: tc.unreadable, listErr: tc.listErr}
		w := newWatcher(c)
		w.look(t.Context())
		w.look(t.Context())
		if got := strings.Join(c.events, "; "); got != tc.wantEvent {
			t.Errorf("%s: events %q", name, got)
		}
		jobs, services := float64(len(tc.jobs)), float64(len(tc.services))
		if tc.wantEvent == "" {
			jobs, services = 0, 0
		}
		if c.gauge() != jobs || c.gaugeOf("Service") != services {
			t.Errorf("%s: %v Jobs, %v Services", name, c.gauge(), c.gaugeOf("Service"))
		}
	}
}
