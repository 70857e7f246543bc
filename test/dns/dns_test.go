// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dns looks names of pods up in a real CoreDNS while pods on simulated nodes come and go, and jobset-controller
// writes their addresses. It starts a cluster of its own, or uses the one whose directory is in JOBSET_DNS_CLUSTER_DIR,
// whose controller must run with --service-endpoints=controller.
package dns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/endpointslices"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/suite"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

const (
	// domain is the domain of the cluster.
	domain = "cluster.local"
	// corefile takes the port, that of the health check, and the kubeconfig. Answers are kept as long as on real nodes.
	corefile = `.:%s {
  bind 127.0.0.1
  errors
  ready 127.0.0.1:%s
  kubernetes ` + domain + ` {
    kubeconfig %s
    ttl 5
  }
  cache 5
}
`
)

var (
	cluster *localcluster.Cluster
	kube    kubernetes.Interface
	sets    versioned.Interface
)

func TestMain(m *testing.M) {
	suite.Main("dns", func() (code int, err error) {
		cluster, err = localcluster.New(".cluster-dns", "JOBSET_DNS_CLUSTER_DIR", "CLUSTER_NODES=20", "CLUSTER_CONTROLLER_ARGS=--service-endpoints=controller")
		if err != nil {
			return 0, err
		}
		return cluster.Run(m, connect)
	})
}

func connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
	if err != nil {
		return err
	}
	config.QPS = -1
	if kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	sets, err = versioned.NewForConfig(config)
	return err
}

// startDNS starts CoreDNS for one test, and returns a resolver that asks it.
func startDNS(t *testing.T) *net.Resolver {
	t.Helper()
	build := exec.CommandContext(t.Context(), filepath.Join(cluster.Root, "hack", "ensure-node-binaries.sh"))
	build.Stderr = os.Stderr
	binaries, err := build.Output()
	if err != nil {
		t.Fatal(err)
	}
	ports, err := localcluster.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "Corefile")
	if err := os.WriteFile(config, fmt.Appendf(nil, corefile, ports[0], ports[1], cluster.Kubeconfig()), 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(filepath.Join(strings.TrimSpace(string(binaries)), "coredns"), "-conf", config)
	server.Stdout, server.Stderr = t.Output(), t.Output()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	framework.Eventually(t, "CoreDNS is ready", func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+ports[1])
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1:"+ports[0])
	}}
}

func newNamespace(t *testing.T) string {
	t.Helper()
	ns, err := kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "dns-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kube.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{}) })
	framework.Eventually(t, "the namespace admits pods", func(ctx context.Context) error {
		_, err := kube.CoreV1().ServiceAccounts(ns.Name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return ns.Name
}

// inDomain completes names as the resolver of a pod does.
type inDomain struct{ *net.Resolver }

func (r inDomain) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	return r.Resolver.LookupNetIP(ctx, network, host+"."+domain+".")
}

// TestCanaryRecordResolves has CoreDNS resolve the record by which the controller finds out whether the cluster reads slices.
func TestCanaryRecordResolves(t *testing.T) {
	resolver := startDNS(t)
	canary := &endpoints.Canary{Kube: kube, Namespace: newNamespace(t), Resolver: inDomain{resolver}}
	canary.Resolves()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		canary.Run(ctx, func() {})
	}()
	defer func() { stop(); <-ended }()
	framework.Eventually(t, "the canary record resolves", func(context.Context) error {
		if resolves, reason, _ := canary.Resolves(); !resolves {
			return fmt.Errorf("not yet: %q", reason)
		}
		return nil
	})
}
