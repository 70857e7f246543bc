// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestSelectorIsAskedWithoutItsOffset(t *testing.T) {
	const want = `last_over_time(up{job="a"}[10m])`
	for _, text := range []string{`up{job="a"}`, `max(up{job="a"} offset 2m) > 0`} {
		for _, selector := range selectorsOf(t, text) {
			got := recently(selector)
			if got != want {
				t.Errorf("%s: %s, want %s", text, got, want)
			}
			selectorsOf(t, got)
		}
	}
}
