// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// row is what became of the Jobs during a fault.
type row struct {
	fault   string
	jobs    int
	deleted int
	// statefulSets belong to LeaderWorkerSets, in tests with some.
	statefulSets, deletedSets int
	watched                   time.Duration
}

// rows are the rows of all faults.
var (
	rows   []row
	rowsMu sync.Mutex
)

// report keeps a row and prints all of them.
func report(t *testing.T, r row) {
	t.Helper()
	rowsMu.Lock()
	defer rowsMu.Unlock()
	rows = append(rows, r)
	table := []string{fmt.Sprintf("%-60s %12s %12s %12s %12s %16s", "fault", "Jobs before", "Jobs deleted", "StatefulSets", "deleted", "seconds watched")}
	for _, r := range rows {
		table = append(table, fmt.Sprintf("%-60s %12d %12d %12d %12d %16.0f",
			r.fault, r.jobs, r.deleted, r.statefulSets, r.deletedSets, r.watched.Seconds()))
	}
	t.Logf("so far:\n%s", strings.Join(table, "\n"))
}

// deletedStatefulSets counts the StatefulSets among children, and those that are gone or were replaced.
func deletedStatefulSets(was, now map[string]string) (count, deleted int) {
	for name, before := range was {
		if !strings.HasPrefix(name, "StatefulSet ") {
			continue
		}
		count++
		if uid, _, _ := strings.Cut(before, ","); !strings.HasPrefix(now[name], uid+",") {
			deleted++
		}
	}
	return count, deleted
}
