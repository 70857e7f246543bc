// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bench measures what our two programs cost with many JobSets, on a full control plane of its own. Figures that
// depend on the machine are compared with others of the same run. Without -bench nothing is started.
package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// cluster is a control plane with our programs in it.
type cluster struct {
	root, dir string
}

// started is the control plane of this run once a benchmark has asked for it.
var started *cluster

func TestMain(m *testing.M) {
	interrupted, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	done := make(chan int, 1)
	go func() { done <- m.Run() }()
	code := 1
	select {
	case code = <-done:
	case <-interrupted.Done():
	}
	if started != nil {
		if err := started.script("down"); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// startCluster starts anew, because memory is measured from an empty store on.
func startCluster() (*cluster, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	c := &cluster{root: root, dir: filepath.Join(root, ".cluster-bench")}
	if err := c.script("down"); err != nil {
		return nil, err
	}
	started = c
	return c, c.script("up")
}

func (c *cluster) script(command string) error {
	cmd := exec.Command(filepath.Join(c.root, "hack", "cluster.sh"), command)
	cmd.Env = append(os.Environ(), "CLUSTER_DIR="+c.dir, "CLUSTER_NODES=4",
		"CLUSTER_KUBE_AUDIT_POLICY="+filepath.Join(c.root, "test", "bench", "testdata", "audit-policy.yaml"))
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("hack/cluster.sh %s: %w", command, err)
	}
	return nil
}

// throughKube is the administrator's way to everything. No limit on the client hides what the server needs.
func (c *cluster) throughKube() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(c.dir, "kubeconfig"))
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.DisableCompression = true
	return config, nil
}

// direct is the same administrator's way to our server without kube-apiserver in between.
func (c *cluster) direct() (*rest.Config, error) {
	config, err := c.throughKube()
	if err != nil {
		return nil, err
	}
	port, err := os.ReadFile(filepath.Join(c.dir, "ports", "apiserver"))
	if err != nil {
		return nil, err
	}
	address := url.URL{Scheme: "https", Host: "localhost:" + strings.TrimSpace(string(port))}
	config.Host = address.String()
	config.CAData, config.CAFile = nil, filepath.Join(c.dir, "pki", "apiserver", "ca.crt")
	return config, nil
}

// residentBytes is the memory of a program of ours that is in RAM now.
func (c *cluster) residentBytes(program string) (int64, error) {
	pid, err := os.ReadFile(filepath.Join(c.dir, "pids", program+".pid"))
	if err != nil {
		return 0, err
	}
	status, err := os.Open(filepath.Join("/proc", strings.TrimSpace(string(pid)), "status"))
	if err != nil {
		return 0, err
	}
	defer status.Close()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 3 && words[0] == "VmRSS:" {
			kibibytes, err := strconv.ParseInt(words[1], 10, 64)
			return kibibytes << 10, err
		}
	}
	return 0, errors.New("no VmRSS of " + program)
}
