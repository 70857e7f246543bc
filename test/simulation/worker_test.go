// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
)

// TestWorkerKeepsThePace runs a worker for an hour whose syncs all end alike, and looks by which rule that is refused, if any.
func TestWorkerKeepsThePace(t *testing.T) {
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		due   queue.Due
		err   error
		eager bool
		// writes and refusals are the numbers for each sync, and wakes means that each sync is followed by an event.
		writes, refusals int
		wakes            bool
		want             string
	}{
		"a deadline that is far":                         {due: queue.After(time.Minute)},
		"a deadline that is always near":                 {due: queue.After(time.Second), want: RulePasses},
		"a deadline that is near, and each sync writes":  {due: queue.After(time.Second), writes: 1},
		"syncs that events bring about":                  {due: queue.After(time.Second), wakes: true},
		"refused requests that wait for the backoff":     {err: refused, refusals: 1},
		"a deadline that may come before the backoff":    {due: queue.After(15 * time.Second), err: refused, refusals: 1},
		"a deadline that undercuts the backoff":          {due: queue.After(15 * time.Second), err: refused, refusals: 1, eager: true, want: RuleRefusals},
		"many refused requests in each sync":             {err: refused, refusals: 5, want: RuleRefusals},
		"a cache that lags, which only delays the sync":  {due: queue.Caches(time.Second)},
		"syncs that have failed without any refusal yet": {due: queue.After(time.Second), err: refused, eager: true},
	} {
		t.Run(name, func(t *testing.T) {
			broken := Guarded(func() {
				w := NewWorld(NewDice(1, 1), nil)
				worker := &Worker{World: w, Sender: w.NewSender(func() {}), Eager: tc.eager}
				worker.Add("x")
				for w.Since(Beginning) < time.Hour {
					synced := worker.Sync(func(string) (queue.Due, error) {
						worker.Sender.Accepted += tc.writes
						worker.Sender.Refused += tc.refusals
						return tc.due, tc.err
					})
					if synced && tc.wakes {
						worker.Add("x")
					}
					w.Pass(100 * time.Millisecond)
				}
			})
			if (broken == "") != (tc.want == "") || !strings.Contains(broken, tc.want) {
				t.Errorf("broke %q, want %q", broken, tc.want)
			}
		})
	}
}

// TestWorkerBacksOffAfterDenials has requests be denied for an hour, which has no backoff, and then be refused by a server that is broken.
func TestWorkerBacksOffAfterDenials(t *testing.T) {
	for eager, want := range map[bool]string{false: "", true: RuleRefusals} {
		broken := Guarded(func() {
			w := NewWorld(NewDice(1, 1), nil)
			worker := &Worker{World: w, Sender: w.NewSender(func() {}), Eager: eager}
			worker.Add("x")
			for w.Since(Beginning) < 2*time.Hour {
				worker.Sync(func(string) (queue.Due, error) {
					worker.Sender.Refused++
					if w.Since(Beginning) < time.Hour {
						return queue.Due{Denied: true, Acts: time.Minute}, errors.New("denied")
					}
					return queue.After(15 * time.Second), errors.New("broken")
				})
				w.Pass(100 * time.Millisecond)
			}
		})
		if (broken == "") != (want == "") || !strings.Contains(broken, want) {
			t.Errorf("broke %q, want %q", broken, want)
		}
	}
}

// TestWorkerCountsNoTimeThatIsLeftOver has a sync fail, and an event bring about another one before the end of the backoff. The sync at its
// end is left over from the failure. Only the deadlines after that are counted.
func TestWorkerCountsNoTimeThatIsLeftOver(t *testing.T) {
	for name, tc := range map[string]struct {
		looks []time.Duration
		want  string
	}{
		"six syncs in a minute": {looks: []time.Duration{
			time.Second, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, time.Hour,
		}},
		"seven syncs in a minute": {looks: slices.Repeat([]time.Duration{8 * time.Second}, 8), want: RulePasses},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWorld(NewDice(1, 1), nil)
			worker := &Worker{World: w, Sender: w.NewSender(func() {})}
			fail := func(string) (queue.Due, error) { return queue.Due{}, errors.New("conflict") }
			looks := append([]time.Duration{tc.looks[0]}, tc.looks...) // the first one is set by the event, and again by what is left over
			look := func(string) (queue.Due, error) {
				after := looks[0]
				looks = looks[1:]
				return queue.After(after), nil
			}
			broken := Guarded(func() {
				worker.SyncObject("x", fail)
				w.Pass(10 * time.Millisecond)
				worker.Add("x")
				for len(looks) > 0 {
					worker.Sync(look)
					w.Pass(10 * time.Millisecond)
				}
			})
			if (broken == "") != (tc.want == "") || !strings.Contains(broken, tc.want) {
				t.Errorf("broke %q, want %q", broken, tc.want)
			}
		})
	}
}

// TestWorkerBoundsDeniedRequests has requests about children be denied for an hour, one in each sync.
func TestWorkerBoundsDeniedRequests(t *testing.T) {
	denied := apierrors.NewForbidden(anything, "x", errors.New("no"))
	for name, tc := range map[string]struct {
		verb     string
		children int
		every    time.Duration
		want     string
	}{
		"creations of six children, each after two minutes": {verb: "create", children: 6, every: 20 * time.Second},
		"creations of one child, each after two minutes":    {verb: "create", children: 1, every: 2 * time.Minute},
		"creations of one child, each after 20 seconds":     {verb: "create", children: 1, every: 20 * time.Second, want: RuleDeniedChild},
		"creations of very many children":                   {verb: "create", children: 100, every: 5 * time.Second, want: RuleDeniedObject},
		"deletions of six children, each after two minutes": {verb: "delete", children: 6, every: 20 * time.Second, want: RuleRefusals},
		"deletions of six children, one each minute":        {verb: "delete", children: 6, every: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			broken := Guarded(func() {
				w := NewWorld(NewDice(1, 1), nil)
				worker := &Worker{World: w, Sender: w.NewSender(func() {})}
				worker.Add("x")
				for n := 0; w.Since(Beginning) < time.Hour; w.Pass(100 * time.Millisecond) {
					worker.Sync(func(string) (queue.Due, error) {
						n++
						worker.Sender.Refused++
						worker.Sender.Denied(Request(tc.verb, "pod", &metav1.ObjectMeta{Name: strconv.Itoa(n % tc.children)}), denied)
						return queue.Due{Denied: true, Acts: tc.every}, denied
					})
				}
			})
			if (broken == "") != (tc.want == "") || !strings.Contains(broken, tc.want) {
				t.Errorf("broke %q, want %q", broken, tc.want)
			}
		})
	}
}
