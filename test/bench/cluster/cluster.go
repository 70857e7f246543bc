// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster is the cluster that the benchmarks drive. Any cluster will do that has both of our programs and can be
// reached with a kubeconfig. Of one on this machine that hack/cluster.sh made, the processes, the stores and the requests
// are looked at too.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/handover"
)

// Cluster is where the scenarios run.
type Cluster struct {
	// Dir is the directory of a cluster of hack/cluster.sh on this machine; empty for any other cluster.
	Dir string
	// Upstream means that the controllers of upstream run in place of our programs, and that sets are stored in kube-apiserver.
	Upstream bool
	// Script is hack/cluster.sh, with the environment of which our programs are stopped and started.
	Script string
	// Kube and JobSets are the administrator's clients, without limits. They speak protobuf; JobSets speaks JSON to
	// clusters without a directory, and to those with upstream's controllers.
	Kube    kubernetes.Interface
	JobSets versioned.Interface

	config *rest.Config
	token  string
	// upstream are upstream's controllers where those run, that of JobSets first.
	upstream handover.Controllers
}

// ErrNotLocal says that something can be done with a cluster of this machine only.
var ErrNotLocal = errors.New("needs --cluster-dir, the directory of a cluster of hack/cluster.sh on this machine")

// Open connects to the cluster. With a directory, the kubeconfig may be left out.
func Open(ctx context.Context, kubeconfig, dir, script string) (*Cluster, error) {
	return (&Cluster{Dir: dir, Script: script}).open(ctx, kubeconfig)
}

func (c *Cluster) open(ctx context.Context, kubeconfig string) (*Cluster, error) {
	dir := c.Dir
	if kubeconfig == "" && dir == "" {
		return nil, errors.New("--kubeconfig: must be given unless --cluster-dir is")
	}
	if kubeconfig == "" {
		kubeconfig = filepath.Join(dir, "kubeconfig")
	}
	var err error
	if c.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return nil, fmt.Errorf("--kubeconfig: must name a readable kubeconfig file: %w", err)
	}
	c.config.QPS = -1
	c.config.UserAgent = "jobset-bench"
	c.config.DisableCompression = true
	protobuf := c.Config(runtime.ContentTypeProtobuf)
	if c.Kube, err = kubernetes.NewForConfig(protobuf); err != nil {
		return nil, err
	}
	sets := protobuf
	if dir == "" || c.Upstream {
		sets = c.Config(runtime.ContentTypeJSON) // a CustomResourceDefinition knows no other
	}
	if c.JobSets, err = versioned.NewForConfig(sets); err != nil {
		return nil, err
	}
	if dir == "" {
		return c, nil
	}
	if _, err := os.Stat(filepath.Join(dir, "pids")); err != nil {
		return nil, fmt.Errorf("--cluster-dir: must be a directory of hack/cluster.sh: %w", err)
	}
	return c, c.allowReading(ctx)
}

// Config is the config of the administrator for a client which prefers an encoding. What is not a resource comes as JSON.
func (c *Cluster) Config(contentType string) *rest.Config {
	config := rest.CopyConfig(c.config)
	config.ContentType, config.AcceptContentTypes = contentType, contentType+","+runtime.ContentTypeJSON
	return config
}

// Direct is the administrator's way to our server without kube-apiserver in between.
func (c *Cluster) Direct(contentType string) (*rest.Config, error) {
	if c.Dir == "" {
		return nil, fmt.Errorf("connecting to jobset-apiserver itself: %w", ErrNotLocal)
	}
	address, err := c.address("apiserver")
	if err != nil {
		return nil, err
	}
	config := c.Config(contentType)
	config.Host = address
	config.CAData, config.CAFile = nil, filepath.Join(c.Dir, "pki", "apiserver", "ca.crt")
	return config, nil
}

// address is where one of our programs listens.
func (c *Cluster) address(port string) (string, error) {
	number, err := os.ReadFile(filepath.Join(c.Dir, "ports", port))
	if err != nil {
		return "", fmt.Errorf("finding the port of %s: %w", port, err)
	}
	address := url.URL{Scheme: "https", Host: "localhost:" + strings.TrimSpace(string(number))}
	return address.String(), nil
}

// Do stops or starts one of our programs, apiserver or controller, or in place of that upstream's controller of JobSets.
func (c *Cluster) Do(ctx context.Context, action, component string) error {
	if c.Dir == "" {
		return fmt.Errorf("%s of %s: %w", action, component, ErrNotLocal)
	}
	if c.Upstream {
		return c.doUpstream(ctx, action, component)
	}
	cmd := exec.CommandContext(ctx, c.Script, action, component)
	cmd.Env = append(os.Environ(), "CLUSTER_DIR="+c.Dir)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s %s: %w: %s", c.Script, action, component, err, output)
	}
	return nil
}
