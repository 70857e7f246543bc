// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/poll"
)

// newDir returns the directory of a cluster with one process, which is this one.
func newDir(t *testing.T) *Cluster {
	t.Helper()
	c := &Cluster{Dir: t.TempDir()}
	write(t, filepath.Join(c.Dir, "pids", "etcd.pid"), fmt.Sprintf("%d\n", os.Getpid()))
	return c
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestProcessesAreThoseOfThePidFiles(t *testing.T) {
	c := newDir(t)
	got, err := c.Processes()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]int{"etcd": os.Getpid()}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	write(t, filepath.Join(c.Dir, "pids", "etcd.pid"), "none")
	if _, err := c.Processes(); err == nil {
		t.Error("no error for a pid file without a number")
	}
}

func TestCPUTimeGrowsWithWork(t *testing.T) {
	before, err := cpuTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(poll.Bound(t)); ; {
		now, err := cpuTime(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if now-before >= 5*clockTick {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the CPU time has grown by %v only", now-before)
		}
	}
}

func TestForgetPeakResetsThePeak(t *testing.T) {
	pid := os.Getpid()
	if err := forgetPeak(pid); err != nil {
		t.Fatal(err)
	}
	_, before, err := memory(pid)
	if err != nil {
		t.Fatal(err)
	}
	// New pages, which memory of the heap need not be.
	work, err := syscall.Mmap(-1, 0, 64<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(work) }()
	for i := 0; i < len(work); i += 4096 {
		work[i] = 1
	}
	now, peak, err := memory(pid)
	if err != nil {
		t.Fatal(err)
	}
	if now <= 0 || peak < before+32<<20 {
		t.Errorf("after touching 64 MiB: %d bytes now, peak %d, before %d", now, peak, before)
	}
	if err := forgetPeak(pid); err != nil {
		t.Fatal(err)
	}
	if now, peak, err = memory(pid); err != nil || peak > now+16<<20 {
		t.Errorf("after forgetting: %d bytes now, peak %d, error %v", now, peak, err)
	}
}

func TestProcessStartTime(t *testing.T) {
	c := newDir(t)
	program := exec.Command("cat")
	input, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = input.Close() // which ends it
		_ = program.Wait()
	}()
	write(t, filepath.Join(c.Dir, "pids", "etcd.pid"), fmt.Sprint(program.Process.Pid))
	began, err := c.Began("etcd")
	if err != nil {
		t.Fatal(err)
	}
	// Times in /proc are precise to a hundredth of a second.
	if began.Before(before.Add(-50*time.Millisecond)) || began.After(time.Now().Add(50*time.Millisecond)) {
		t.Errorf("began at %v, must be between %v and now", began, before)
	}
}

func TestFlagsAreReadFromTheCommandLine(t *testing.T) {
	program := exec.Command("sh", "-c", "echo; read line", "--etcd-servers=http://a:1,http://b:2", "--v")
	input, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = input.Close() // which ends it
		_ = program.Wait()
	}()
	// A process that has just been started may have no command line for a moment.
	if _, err := output.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	got, err := flags(program.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff("http://a:1,http://b:2", got["etcd-servers"]); d != "" {
		t.Errorf("--etcd-servers (-want +got):\n%s", d)
	}
}

func TestControllerCallsAreCountedFromAnAuditLogOffset(t *testing.T) {
	c := newDir(t)
	controllerUser := c.controllers()[0]
	if end, err := c.auditEnd(); end != -1 || err != nil {
		t.Errorf("end of a log that does not exist: %d, error %v", end, err)
	}
	line := func(user, verb, resource, sub string) string {
		return fmt.Sprintf(`{"verb":%q,"user":{"username":%q},"objectRef":{"resource":%q,"subresource":%q}}`+"\n", verb, user, resource, sub)
	}
	write(t, c.auditLog(), line(controllerUser, "create", "jobs", ""))
	begin, err := c.auditEnd()
	if err != nil {
		t.Fatal(err)
	}
	write(t, c.auditLog(), line(controllerUser, "create", "jobs", "")+line(controllerUser, "update", "jobsets", "status")+
		line(controllerUser, "update", "jobsets", "status")+line("somebody", "create", "jobs", "")+
		line(controllerUser, "update", "leases", "")+`{"verb":"cut o`)
	got, err := c.asked(begin)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Calls{"update jobsets/status": 2}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	old := strings.TrimSuffix(c.auditLog(), ".log") + "-2026-11-23T18-47-52.757.log"
	write(t, old, line(controllerUser, "create", "jobs", "")+line(controllerUser, "patch", "jobs", ""))
	write(t, c.auditLog(), line(controllerUser, "create", "services", ""))
	if got, err = c.asked(begin); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Calls{"patch jobs": 1, "create services": 1}, got); d != "" {
		t.Errorf("after kube-apiserver has begun a new file (-want +got):\n%s", d)
	}
	begin, err = c.auditEnd()
	if err != nil {
		t.Fatal(err)
	}
	if got, err = c.asked(begin); err != nil || len(got) != 0 {
		t.Errorf("from the end on: %v, error %v", got, err)
	}
}

func TestClusterOfUpstream(t *testing.T) {
	c := newDir(t)
	c.Upstream = true
	if d := cmp.Diff([]string{"kube-apiserver"}, c.servers()); d != "" {
		t.Errorf("servers whose requests are counted (-want +got):\n%s", d)
	}
	if got := c.StoreOfSets(); got != "kube-apiserver" {
		t.Errorf("sets are stored in %s", got)
	}
	lines := ""
	for _, user := range c.controllers() {
		lines += fmt.Sprintf(`{"verb":"create","user":{"username":%q},"objectRef":{"resource":"jobs"}}`+"\n", user)
	}
	write(t, c.auditLog(), lines)
	got, err := c.asked(0)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Calls{"create jobs": 2}, got); d != "" {
		t.Errorf("requests of both controllers (-want +got):\n%s", d)
	}
	if got := c.controllerOfSets(); got != "upstream-jobset" {
		t.Errorf("sets are synced by %s", got)
	}
	if err := c.Do(t.Context(), "stop", "apiserver"); err == nil || !strings.Contains(err.Error(), "stop of apiserver: upstream has no such program") {
		t.Errorf("stopping one of our programs: %v", err)
	}
	if !isOwn("upstream-lws") || isOwn("kube-apiserver") {
		t.Error("upstream's controllers take the place of our programs, and nothing else does")
	}
}
