// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

func TestPlacementMoveAfter(t *testing.T) {
	const head = "apiVersion: config.jobset.x-k8s.io/v1alpha1\nkind: Configuration\n"
	const bounds = ": must be from 30s to 1h, such as 5m, not "
	for name, tc := range map[string]struct {
		file string
		args []string
		want time.Duration
		err  string
	}{
		"the default":         {file: head, want: 5 * time.Minute},
		"of the file":         {file: head + "placement: {moveAfter: 10m}\n", want: 10 * time.Minute},
		"the flag wins":       {file: head + "placement: {moveAfter: 10m}\n", args: []string{"--placement-move-after=1m"}, want: time.Minute},
		"the shortest":        {file: head + "placement: {moveAfter: 30s}\n", want: 30 * time.Second},
		"the longest":         {file: head, args: []string{"--placement-move-after=60m"}, want: time.Hour},
		"too short":           {file: head, args: []string{"--placement-move-after=29s"}, err: "--placement-move-after" + bounds + "29s"},
		"not at all":          {file: head + "placement: {moveAfter: 0s}\n", err: "--config: placement.moveAfter" + bounds + "0s"},
		"too long":            {file: head + "placement: {moveAfter: 2h}\n", err: "--config: placement.moveAfter" + bounds + "2h0m0s"},
		"a number, no length": {file: head + "placement: {moveAfter: 5}\n", err: "--config: FILE: json: cannot unmarshal number into Go struct field placementConfig.placement.moveAfter of type string"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := configured(t, tc.file, tc.args...)
			switch {
			case tc.err != "" && (err == nil || flagerror.OneLine(err) != tc.err):
				t.Errorf("error %v, want %s", err, tc.err)
			case tc.err == "" && (err != nil || o.PlacementMoveAfter != tc.want):
				t.Errorf("got %v, %v, want %s", o, err, tc.want)
			}
		})
	}
}
