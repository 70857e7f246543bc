// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// AnonymousPeak observes the memory of the program that is not backed by files, which the kernel cannot take back, and
// returns a function that reads the most that was seen so far.
func (p *Process) AnonymousPeak(t *testing.T) func() int64 {
	t.Helper()
	var peak atomic.Int64
	ticker := time.NewTicker(5 * time.Millisecond)
	t.Cleanup(ticker.Stop)
	go func() {
		for {
			select {
			case <-p.done:
				return
			case <-ticker.C:
				if now, err := anonymous(p.cmd.Process.Pid); err == nil {
					peak.Store(max(peak.Load(), now))
				}
			}
		}
	}()
	return peak.Load
}

func anonymous(pid int) (int64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(content), "RssAnon:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, fmt.Errorf("process %d has no anonymous memory", pid)
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	return kib << 10, err
}
