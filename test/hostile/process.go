// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// programs are our programs, by the names of hack/cluster.sh.
var programs = []string{"apiserver", "controller"}

// process is one of our programs that runs with a limit on its memory.
type process struct {
	name string
	pid  int
	// endLimit ends the limit on its memory.
	endLimit func() error
}

// adopt finds the running program and limits its memory: what it allocates beyond the limit ends it.
func adopt(dir, name string, limit uint64) (process, error) {
	content, err := os.ReadFile(filepath.Join(dir, "pids", "jobset-"+name+".pid"))
	if err != nil {
		return process{}, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return process{}, err
	}
	end, err := limitMemory(pid, name, limit)
	return process{name, pid, end}, err
}

// alive says whether the process runs. One that ended is a zombie until its parent has waited for it.
func (p process) alive() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// forgetPeak makes the peak of memory that of now.
func (p process) forgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.pid), []byte("5"), 0)
}

// peak is the most memory since forgetPeak, in MiB; 0 when the process has ended.
func (p process) peak() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(status), "\n") {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, _ := strconv.Atoi(strings.Fields(rest)[0]) // the kernel writes numbers
			return kib / 1024
		}
	}
	return 0
}

// allocate is the argument with which the program calls itself, to see what the limit does.
const allocate = "allocate"

// checkLimit runs this program with the limit: half of it must be there, twice as much must not.
func checkLimit(limit uint64) error {
	for size, want := range map[uint64]bool{limit / 2: true, limit * 2: false} {
		var out bytes.Buffer
		cmd := exec.Command(os.Args[0], allocate, fmt.Sprint(size)) //nolint:gosec // this program
		cmd.Stdin, cmd.Stderr = nil, &out
		ready, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		end, err := limitMemory(cmd.Process.Pid, fmt.Sprint(allocate, "-", os.Getpid()), limit)
		if err != nil {
			return err
		}
		if err := ready.Close(); err != nil {
			return err
		}
		err = cmd.Wait()
		if err := end(); err != nil {
			return err
		}
		if (err == nil) != want {
			return fmt.Errorf("allocating %d MiB with a limit of %d MiB: %v, must be possible: %v\n%.300s", size>>20, limit>>20, err, want, out.String())
		}
	}
	return nil
}

// useMemory allocates and touches so much once the standard input ends.
func useMemory(size string) {
	_, _ = os.Stdin.Read(make([]byte, 1)) // the end of the input is the sign
	n, err := strconv.ParseUint(size, 10, 64)
	if err != nil {
		os.Exit(2)
	}
	block := make([]byte, n)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	fmt.Println(len(block), time.Now())
}
