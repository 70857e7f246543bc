// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgotesting "k8s.io/client-go/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
)

var (
	jobSets    = schema.GroupResource{Group: "jobset.x-k8s.io", Resource: "jobsets"}
	errWebhook = apierrors.NewForbidden(jobSets, "a", errors.New(`admission webhook "w" denied the request: no`))
)

// denials are answers of a server that decides against a request about an owner.
var denials = map[string]error{
	"a webhook":      errWebhook,
	"a policy":       apierrors.NewInvalid(schema.GroupKind{Kind: "JobSet"}, "a", nil),
	"no permission":  apierrors.NewForbidden(jobSets, "a", errors.New(`user "u" cannot update resource "jobsets/status"`)),
	"too large":      apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
	"a full store":   &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInsufficientStorage, Message: "the store is full"}},
	"a webhook, 500": &apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: `admission webhook "w" denied the request: no`}},
}

// during has a queue sync the object while something happens to it each second, and returns how often a request was made in the first
// minute, and in the nine minutes after it.
func (r *rig) during(t *testing.T, asked func() int) (first, later int) {
	t.Helper()
	q := queue.New("denied status")
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { q.Run(ctx, 1, r.Sync); close(done) }()
	for second := range 600 {
		q.Add(key)
		time.Sleep(time.Second)
		if second == 59 {
			first = asked()
		}
	}
	end()
	<-done
	return first, asked() - first
}

// denied makes the server deny requests of a verb, and returns a function that counts them.
func (r *rig) denied(verb string, err error) (asked func() int) {
	n := 0
	r.client.PrependReactor(verb, "jobsets", func(clientgotesting.Action) (bool, runtime.Object, error) {
		n++
		return true, nil, err
	})
	return func() int { return n }
}

func bounded(t *testing.T, first, later int) {
	t.Helper()
	if first == 0 || first > 2 || later == 0 || later > 5 {
		t.Errorf("asked %d times in the first minute and %d times in nine more, want 1 to 2 and 1 to 5", first, later)
	}
}

// TestDeniedStatusCostsNothing has a status that is another one in each pass, that a server denies, and a plan that is full.
func TestDeniedStatusCostsNothing(t *testing.T) {
	for name, answer := range denials {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, passes := newRig(), 0
				asked := r.denied("update", answer)
				r.apply = func() (int, error) { return 2, nil }
				r.conclude = func() outcome {
					passes++
					next := r.cached.DeepCopy()
					next.Status.Restarts = int32(passes)
					return outcome{Owner: r.cached, Next: next, Due: queue.Due{Continue: true}}
				}
				first, later := r.during(t, asked)
				bounded(t, first, later)
				if passes > 620 { // one for each event, and a few by time
					t.Errorf("%d passes", passes)
				}
			})
		})
	}
}

// TestDeniedStatusIsWrittenAfterAChange has a status that a server denies until the object has another generation.
func TestDeniedStatusIsWrittenAfterAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		asked := r.denied("update", errWebhook)
		r.apply = func() (int, error) { return 2, nil }
		r.left = outcome{Owner: r.cached, Next: r.cached.DeepCopy()}
		for range 3 {
			due, err := r.Sync(t.Context(), key)
			if err == nil || !due.Denied || due.Acts != 5*time.Second {
				t.Errorf("due %+v, %v", due, err)
			}
		}
		r.cached = r.cached.DeepCopy()
		r.cached.Generation++
		r.left = outcome{Owner: r.cached, Next: r.cached.DeepCopy()}
		_, _ = r.Sync(t.Context(), key)
		if asked() != 2 {
			t.Errorf("asked %d times, want once for each generation", asked())
		}
	})
}

// TestDeniedDeletionOfOwnerCostsNothing has an object whose time to live is over, and that must not be deleted.
func TestDeniedDeletionOfOwnerCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		asked := r.denied("delete", errWebhook)
		r.apply = func() (int, error) { return 2, nil }
		r.left = outcome{Owner: r.cached, Then: r.Delete}
		first, later := r.during(t, asked)
		bounded(t, first, later)
	})
}
