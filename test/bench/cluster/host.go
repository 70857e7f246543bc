// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/version"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// Host describes the machine that the figures were measured on: the machine that runs this program.
func (c *Cluster) Host(ctx context.Context) (report.Host, error) {
	kubernetes, err := c.Kube.Discovery().ServerVersion()
	if err != nil {
		return report.Host{}, fmt.Errorf("asking kube-apiserver for its version: %w", err)
	}
	h := report.Host{
		CPUs: runtime.NumCPU(), Model: first("/proc/cpuinfo", "model name"), System: runtime.GOOS + "/" + runtime.GOARCH,
		Go: runtime.Version(), Kubernetes: kubernetes.GitVersion, Program: "unknown",
	}
	if words := strings.Fields(first("/proc/meminfo", "MemTotal")); len(words) > 0 {
		kibibytes, _ := strconv.Atoi(words[0]) // 0 is what it is if it is not known
		h.MemoryMiB = kibibytes >> 10
	}
	if c.Dir == "" {
		return h, nil
	}
	if storage, err := os.ReadFile(filepath.Join(c.Dir, "settings", "CLUSTER_STORAGE")); err == nil {
		h.Storage = strings.TrimSpace(string(storage))
	}
	if c.Upstream {
		h.Program, h.Storage = "none, but upstream's controllers", ""
		return h, nil
	}
	data, err := c.read(ctx, "jobset-apiserver", "/version", nil)
	if err != nil {
		return h, fmt.Errorf("asking jobset-apiserver for its version: %w", err)
	}
	var own version.Info
	if err := json.Unmarshal(data, &own); err != nil {
		return h, fmt.Errorf("reading the version of jobset-apiserver: %w", err)
	}
	h.Program = own.GitVersion
	return h, nil
}

// first returns the value of the first line "name : value" of a file, or nothing.
func first(file, name string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
