// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// endShared ends what the shared cluster has started.
func endShared(t *testing.T) {
	t.Helper()
	if err := shared.Script("stop", "apiserver"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{mainAPI, mainEtcd} {
		kill(t, name)
	}
}

// kill ends a process of the shared cluster at once.
func kill(t *testing.T, name string) {
	t.Helper()
	pid := pidOf(t, name)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, name+" has ended", func(context.Context) error {
		if err := syscall.Kill(pid, 0); err == nil {
			return errors.New("it runs")
		}
		return nil
	})
}

// commandOf returns the command line of a process of the shared cluster.
func commandOf(t *testing.T, name string) (command []string) {
	t.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pidOf(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
}

// pidOf returns the id of a process of the shared cluster.
func pidOf(t *testing.T, name string) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(shared.Dir, "pids", name+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
