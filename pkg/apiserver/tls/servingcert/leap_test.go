// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"strings"
	"testing"
	"time"
)

// TestClockLeaps lets the clock of a server leap by an hour, and come back, while that of the main cluster goes on.
func TestClockLeaps(t *testing.T) {
	for name, tc := range map[string]struct {
		// age is how old the certificate is.
		age, leap time.Duration
		// wantError is what the log says meanwhile; the server goes on with its certificate.
		wantError string
	}{
		"forward, with a new certificate": {leap: time.Hour},
		"forward, with an old one":        {age: 30 * 24 * time.Hour, leap: time.Hour},
		"back, with an old certificate":   {age: 30 * 24 * time.Hour, leap: -time.Hour},
		"back, before the certificate was made": {
			leap: -time.Hour, wantError: "a certificate is due, but the clock of this machine differs by 1h0m0s from that of the main cluster, more than 5m0s: correct the clock",
		},
		"forward, past the end of the certificate": {
			age: DefaultPolicy.Serving - time.Minute, leap: time.Hour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, installed()...)
			m := c.manager(DefaultPolicy)
			c.pass(m)
			c.clock.Step(tc.age)
			c.pass(m)
			before, version := c.served(m).Certificate, c.secret().ResourceVersion

			right := c.clock.Now()
			c.clock.SetTime(right.Add(tc.leap))
			m.Skew = func() time.Duration { return right.Sub(c.clock.Now()) }
			err := m.Pass(t.Context())
			if tc.wantError == "" && err != nil || tc.wantError != "" && (err == nil || !strings.Contains(err.Error(), tc.wantError)) {
				t.Errorf("got error %v, want %q", err, tc.wantError)
			}
			if !c.served(m).Certificate.Equal(before) || c.secret().ResourceVersion != version {
				t.Error("another certificate was made by a wrong clock")
			}
			if err := m.Check(nil); err != nil {
				t.Errorf("not ready: %v", err)
			}
			c.clock.SetTime(right)
			c.pass(m)
			c.accepted(m)
			if !c.served(m).Certificate.Equal(before) {
				t.Error("another certificate was made afterwards")
			}
		})
	}
}
