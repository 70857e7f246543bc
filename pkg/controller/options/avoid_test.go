// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"testing"
	"time"
)

func TestAvoidFailedNodes(t *testing.T) {
	const file = "apiVersion: config.jobset.x-k8s.io/v1alpha1\nkind: Configuration\navoidFailedNodes: 1h\n"
	const tooMuch = "--avoid-failed-nodes: must be from 0s, for not at all, to 720h, such as 1h, not "
	for name, tc := range map[string]struct {
		args []string
		want time.Duration
		err  string
	}{
		"of the file":     {want: time.Hour},
		"the flag wins":   {args: []string{"--avoid-failed-nodes=90m"}, want: 90 * time.Minute},
		"the flag is off": {args: []string{"--avoid-failed-nodes=0"}},
		"the longest":     {args: []string{"--avoid-failed-nodes=720h"}, want: 720 * time.Hour},
		"too long":        {args: []string{"--avoid-failed-nodes=721h"}, err: tooMuch + "721h0m0s"},
		"negative":        {args: []string{"--avoid-failed-nodes=-1s"}, err: tooMuch + "-1s"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := configured(t, file, tc.args...)
			switch {
			case tc.err != "" && (err == nil || err.Error() != tc.err):
				t.Errorf("error %v, want %s", err, tc.err)
			case tc.err == "" && (err != nil || o.AvoidFailedNodes != tc.want):
				t.Errorf("got %v, %v", o, err)
			}
		})
	}
}
