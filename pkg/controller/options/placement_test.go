// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

func TestPlacementWhenFull(t *testing.T) {
	const head = "apiVersion: config.jobset.x-k8s.io/v1alpha1\nkind: Configuration\n"
	for name, tc := range map[string]struct {
		file      string
		args      []string
		want, err string
	}{
		"the default":            {file: head, want: "affinity"},
		"empty in the file":      {file: head + "placement: {whenFull: \"\"}\n", want: "affinity"},
		"of the file":            {file: head + "placement: {whenFull: wait}\n", want: "wait"},
		"the flag wins":          {file: head + "placement: {whenFull: wait}\n", args: []string{"--placement-when-full=affinity"}, want: "affinity"},
		"the flag is wrong":      {file: head, args: []string{"--placement-when-full=never"}, err: `--placement-when-full: must be affinity or wait, not "never"`},
		"the flag is empty":      {file: head, args: []string{"--placement-when-full="}, err: `--placement-when-full: must be affinity or wait, not ""`},
		"another field with it":  {file: head + "placement: {whenfull: wait}\n", err: `--config: FILE: unknown field "placement.whenfull"`},
		"a list instead of text": {file: head + "placement: {whenFull: [wait]}\n", err: `--config: FILE: json: cannot unmarshal array into Go struct field placementConfig.placement.whenFull of type string`},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := configured(t, tc.file, tc.args...)
			switch {
			case tc.err != "" && (err == nil || flagerror.OneLine(err) != tc.err):
				t.Errorf("error %v, want %s", err, tc.err)
			case tc.err == "" && (err != nil || o.PlacementWhenFull != tc.want):
				t.Errorf("got %v, %v, want %s", o, err, tc.want)
			}
		})
	}
}
