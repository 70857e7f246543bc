// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestControllersFlag(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want bool
	}{
		"by default":                  {nil, true},
		"all":                         {[]string{"--controllers=*"}, true},
		"this one":                    {[]string{"--controllers=jobset"}, true},
		"another one":                 {[]string{"--controllers=sequentialjob"}, false},
		"all but this one":            {[]string{"--controllers=*,-jobset"}, false},
		"the first entry wins":        {[]string{"--controllers=jobset,-jobset"}, true},
		"left out before it is named": {[]string{"--controllers=-jobset,jobset"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := NewOptions()
			if err != nil {
				t.Fatal(err)
			}
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			o.addControllersFlags(fs)
			if err := fs.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			if got := o.enabled("jobset"); got != tc.want {
				t.Errorf("enabled: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestWorkersFlags(t *testing.T) {
	for want, args := range map[int][]string{
		10: nil,
		3:  {"--concurrent-jobset-syncs=3"},
		4:  {"--workers=4"}, // the name of earlier versions
	} {
		o, err := NewOptions()
		if err != nil {
			t.Fatal(err)
		}
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addControllersFlags(fs)
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		if got := *o.Workers["jobset"]; got != want {
			t.Errorf("%d workers with %v, want %d", got, args, want)
		}
	}
}
