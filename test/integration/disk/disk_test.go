// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
	"github.com/jobset-apiserver/jobset-apiserver/test/history"
)

// TestSynchronizationFails lets fsync(2) and fdatasync(2) fail. What was written before is not known to be on the disk, so the
// server must not go on.
func TestSynchronizationFails(t *testing.T) {
	tier.OnRequest(t, "strace delays and fails the disk of a server; its bounds are real time")
	f := begin(t, filepath.Join(framework.DiskDir(t), "data"))
	before := f.server.Process().Log()
	f.inject("fsync,fdatasync", "error=EIO")
	words := f.ends(before)
	namesDisk(t, words, "input/output error")
	f.restart()
	f.answers(100)
	f.checkHistory()
}

// TestServerIsKilled ends the server without a chance to write anything, several times.
func TestServerIsKilled(t *testing.T) {
	tier.OnRequest(t, "strace delays and fails the disk of a server; its bounds are real time")
	f := begin(t, filepath.Join(framework.DiskDir(t), "data"))
	for range 3 {
		f.server.Kill()
		f.restart()
		f.answers(100)
	}
	f.checkHistory()
}

// TestDiskIsFull takes all space from the file system of the server.
func TestDiskIsFull(t *testing.T) {
	tier.OnRequest(t, "strace delays and fails the disk of a server; its bounds are real time")
	dir := framework.DiskDir(t)
	// Two segments of the write-ahead log take 128 MiB from the start.
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=160m,mode=0700"); err != nil {
		t.Fatalf("mounting a small file system: %v: run this test as root", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	f := begin(t, filepath.Join(dir, "data"))
	before := f.server.Process().Log()
	filler := filepath.Join(dir, "filler")
	if err := framework.Fill(filler); err != nil {
		t.Fatal(err)
	}
	words := f.ends(before)
	namesDisk(t, words, "no space left on device")
	if err := f.server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Log("started again while the disk is full:")
	namesDisk(t, f.ends(""), "no space left on device")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	f.restart()
	f.answers(100)
	f.checkHistory()
}

// namesDisk wants a line that names the error and what to look at.
func namesDisk(t *testing.T, words, cause string) {
	t.Helper()
	for line := range strings.Lines(words) {
		if strings.Contains(line, "The embedded etcd cannot go on") && strings.Contains(line, "--data-dir") && strings.Contains(line, cause) {
			return
		}
	}
	t.Errorf("no line names the disk and %q", cause)
}

// TestSlowDisk makes the disk slow. Requests take longer, and that is all: the kubelet has no reason to restart the server.
func TestSlowDisk(t *testing.T) {
	tier.OnRequest(t, "strace delays and fails the disk of a server; its bounds are real time")
	cases := map[string]string{
		"every synchronization takes half a second":           "fsync,fdatasync",
		"every write and synchronization takes half a second": "pwrite64,fsync,fdatasync",
	}
	for name, calls := range cases {
		t.Run(name, func(t *testing.T) {
			f := begin(t, filepath.Join(framework.DiskDir(t), "data"))
			process := f.server.Process()
			release := f.inject(calls, "delay_enter=500ms")
			f.suffer(100)
			release()
			f.answers(100)
			if f.server.Process() != process || !runs(process) {
				t.Fatal("the server has ended")
			}
			t.Log(slowest(f.checkHistory()))
		})
	}
}

// unhealthy is how long /livez must fail before the kubelet restarts the server: failureThreshold times periodSeconds of the liveness
// probe in artifacts/base.
const unhealthy = 8 * 10 * time.Second

// suffer asks the server for its health until clients got so many answers.
func (f *fixture) suffer(answers int) {
	f.Helper()
	start, unready, probes := time.Now(), 0, 0
	alive := start
	for acknowledged := f.run.Acknowledged(); f.run.Acknowledged() < acknowledged+answers; probes++ {
		if time.Since(start) > stepTimeout {
			f.Fatalf("%d requests were answered in %s", f.run.Acknowledged()-acknowledged, stepTimeout)
		}
		if code, body := framework.Get(f.T, f.config(), "/livez"); code == http.StatusOK {
			alive = time.Now()
		} else if since := time.Since(alive); since > unhealthy/2 {
			f.Fatalf("/livez fails for %s: %d %s", since.Round(time.Second), code, body)
		}
		if code, _ := framework.Get(f.T, f.config(), "/readyz"); code != http.StatusOK {
			unready++
		}
		time.Sleep(time.Second)
	}
	f.Logf("%d answers in %s, not ready in %d of %d probes", answers, time.Since(start).Round(time.Second), unready, probes)
}

func runs(process *framework.Process) bool {
	select {
	case <-process.Done():
		return false
	default:
		return true
	}
}

// slowest describes the slowest write that was acknowledged.
func slowest(h *history.History) string {
	var worst time.Duration
	for i := range h.Operations {
		if o := &h.Operations[i]; o.Outcome == history.Done {
			worst = max(worst, o.End-o.Start)
		}
	}
	return fmt.Sprintf("slowest answer after %s", worst.Round(time.Millisecond))
}
