// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestDeposedSender has a controller that was deposed send three requests, and looks which of them arrive.
func TestDeposedSender(t *testing.T) {
	for name, tc := range map[string]struct {
		second error
		// refutes means that nothing follows the second request if it fails.
		refutes bool
		want    []int
	}{
		"all are carried out":                                  {want: []int{1, 2, 3}},
		"one meets another state":                              {second: ErrConflict, want: []int{1, 2, 3}},
		"one is about an object that went":                     {second: ErrNotFound, want: []int{1, 2, 3}},
		"one is about a name that is taken":                    {second: ErrExists, want: []int{1, 2, 3}},
		"one meets another state, after which nothing follows": {second: ErrConflict, refutes: true, want: []int{1, 2}},
		"one is denied":                                        {second: apierrors.NewForbidden(anything, "x", errors.New("no")), want: []int{1, 2}},
		"one fails":                                            {second: ErrServer, want: []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWorld(NewDice(1, 1), nil)
			sender := w.NewSender(func() {})
			sender.DrawWrite = func() Outcome { return Deposed }
			var arrived []int
			for n := range 3 {
				answer, err := Send(sender, n, func(bool) (int, error) {
					if arrived = append(arrived, n+1); n == 1 {
						if tc.refutes {
							sender.Refute()
						}
						return 0, tc.second
					}
					return 0, nil
				})
				if answer != n || err != nil {
					t.Errorf("request %d is answered with %d, %v", n+1, answer, err)
				}
			}
			for w.DeliverLate() {
			}
			if d := cmp.Diff(tc.want, arrived); d != "" {
				t.Errorf("requests that arrive (-want +got):\n%s", d)
			}
		})
	}
}
