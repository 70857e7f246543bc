// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestReadyStaysSo has a group appear whose caches are not filled.
func TestReadyStaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, "one")
		e.refuse("list", "services", errAway, time.Hour)
		e.Start(t.Context())
		e.check(t, "with one controller", "")
		e.serve("one", "two")
		time.Sleep(groupsPoll)
		e.check(t, "with another one", "")
	})
}
