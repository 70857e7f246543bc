// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of times in /proc, the same on all architectures that Go runs on.
const clockTick = 10 * time.Millisecond

// Processes are the ids of all processes of the cluster by name.
func (c *Cluster) Processes() (map[string]int, error) {
	if c.Dir == "" {
		return nil, nil
	}
	files, err := filepath.Glob(filepath.Join(c.Dir, "pids", "*.pid"))
	if err != nil {
		return nil, err
	}
	processes := map[string]int{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".pid")
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the process id of %s: %w", name, err)
		}
		if processes[name], err = strconv.Atoi(strings.TrimSpace(string(data))); err != nil {
			return nil, fmt.Errorf("reading the process id of %s: %w", name, err)
		}
	}
	return processes, nil
}

// cpuTime is what a process has used since it began, in user and system mode.
func cpuTime(pid int) (time.Duration, error) {
	fields, err := stat(pid)
	if err != nil {
		return 0, err
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * clockTick, err
}

// Began is when a process of the cluster was started.
func (c *Cluster) Began(name string) (time.Time, error) {
	processes, err := c.Processes()
	if err != nil {
		return time.Time{}, err
	}
	fields, err := stat(processes[name])
	if err != nil {
		return time.Time{}, err
	}
	ticks, err := strconv.ParseInt(fields[19], 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	data, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return time.Time{}, err
	}
	now := time.Now()
	seconds, err := strconv.ParseFloat(strings.Fields(string(data))[0], 64)
	since := time.Duration(seconds*float64(time.Second)) - time.Duration(ticks)*clockTick
	return now.Add(-since), err
}

// Memory is what each process has in RAM now.
func (c *Cluster) Memory() (map[string]int64, error) {
	processes, err := c.Processes()
	if err != nil {
		return nil, err
	}
	bytes := map[string]int64{}
	for name, pid := range processes {
		if bytes[name], _, err = memory(pid); err != nil {
			return nil, fmt.Errorf("reading the memory of %s: %w", name, err)
		}
	}
	return bytes, nil
}

// stat returns the fields from the third on. The second is the name of the program, in which anything may be.
func stat(pid int) ([]string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 20 {
		return nil, fmt.Errorf("/proc/%d/stat: has %d fields, must have more", pid, len(fields))
	}
	return fields, nil
}

// memory returns the bytes in RAM now, and the most since the peak was forgotten.
func memory(pid int) (now, peak int64, err error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	fields := map[string]*int64{"VmRSS:": &now, "VmHWM:": &peak}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) != 3 || fields[words[0]] == nil {
			continue
		}
		kibibytes, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil {
			return 0, 0, err
		}
		*fields[words[0]] = kibibytes << 10
	}
	return now, peak, nil
}

// forgetPeak resets the peak of memory.
func forgetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// flags are the --name=value words that a process was started with.
func flags(pid int) (map[string]string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for word := range strings.SplitSeq(string(data), "\x00") {
		if name, value, ok := strings.Cut(word, "="); ok {
			found[strings.TrimLeft(name, "-")] = value
		}
	}
	return found, nil
}
