// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
)

// TestHostStartsWithSeveralRequests has owners of four children and more, one of which is refused a request.
func TestHostStartsWithSeveralRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		took := func(host *Host, n int, answer error) time.Duration {
			begin := time.Now()
			_ = host.Runner.Do(t.Context(), owner, n, func(context.Context, int) error {
				time.Sleep(time.Millisecond)
				return answer
			})
			return time.Since(begin)
		}
		host := NewHost(clock.RealClock{}, 50, nil)
		steps := []struct {
			what   string
			n      int
			answer error
			want   time.Duration
		}{
			{"4 calls", 4, nil, time.Millisecond},
			{"8 calls after 4", 8, nil, time.Millisecond},
			{"1 call that is refused", 1, refused, time.Millisecond},
			{"4 calls that are refused after a refusal", 4, refused, 4 * time.Millisecond},
			{"1, 2 and 1 calls after a refusal", 4, nil, 3 * time.Millisecond},
		}
		for _, step := range steps {
			if d := cmp.Diff(step.want, took(host, step.n, step.answer)); d != "" {
				t.Errorf("time of %s (-want +got):\n%s", step.what, d)
			}
		}
		host.Forget(owner)
		if d := cmp.Diff(time.Millisecond, took(host, 4, nil)); d != "" {
			t.Errorf("time of 4 calls for an owner that was forgotten (-want +got):\n%s", d)
		}
		if d := cmp.Diff(4*time.Millisecond, took(NewHost(clock.RealClock{}, 1, nil), 4, nil)); d != "" {
			t.Errorf("time of 4 calls with a limit of 1 (-want +got):\n%s", d)
		}
	})
}
