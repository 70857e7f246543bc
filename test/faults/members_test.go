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
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/replicas"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/sample"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// embedded is a control plane with three of our API servers, each with a member of an embedded etcd.
type embedded struct {
	*cluster
	hosts   []string
	data    string
	servers *replicas.Set
}

// memberFault is something that happens to the servers and their members, and is over in the end.
type memberFault struct {
	name, kind string
	happen     func(context.Context, *embedded) error
	// harmless says that no request may fail, as in serverFault.
	harmless bool
}

var memberFaults = []memberFault{
	{"rolling restart, embedded", "restart", func(ctx context.Context, e *embedded) error { return e.servers.Restart(ctx) }, true},
	{"kill -9 of each, embedded", "kill", func(ctx context.Context, e *embedded) error {
		for n := range e.servers.Servers {
			if err := e.away(ctx, restartPause, n); err != nil {
				return err
			}
		}
		return nil
	}, false},
	{"kill -9 of two, embedded", "outage", func(ctx context.Context, e *embedded) error { return e.away(ctx, outage(), 0, 1) }, false},
	{"kill -9 of all, embedded", "outage", func(ctx context.Context, e *embedded) error { return e.away(ctx, outage(), 0, 1, 2) }, false},
	{"SIGSTOP of each, embedded", "pause", pauseEach, false},
	{"volume lost, embedded", "volume", func(ctx context.Context, e *embedded) error {
		e.servers.Servers[1].Kill()
		if err := os.RemoveAll(e.dataOf(1)); err != nil {
			return err
		}
		return e.away(ctx, restartPause, 1)
	}, false},
}

// TestEmbeddedMembersUnderFaults is TestServersUnderFaults for servers that run the members of their etcd.
func TestEmbeddedMembersUnderFaults(t *testing.T) {
	tier.OnRequest(t, "faults of three servers with embedded members")
	e := &embedded{}
	t.Cleanup(func() {
		if err := e.stop(!t.Failed()); err != nil {
			t.Error(err)
		}
	})
	if err := e.start(context.Background()); err != nil {
		t.Fatal(err)
	}
	single := shared
	shared = e.cluster
	defer func() { shared = single }()
	faults := memberFaults
	if rounds() == 0 {
		faults = sample.Kinds(t, faults, func(f memberFault) string { return f.kind })
	}
	for _, fault := range faults {
		t.Run(strings.ReplaceAll(fault.name, " ", "-"), func(t *testing.T) {
			for range max(1, rounds()) {
				observe(t, fault.name, fault.harmless, func(ctx context.Context) error {
					if err := fault.happen(ctx, e); err != nil {
						return err
					}
					return e.servers.AwaitEndpoints(ctx)
				})
			}
		})
	}
}

// away kills servers, and starts them again later.
func (e *embedded) away(ctx context.Context, pause time.Duration, ordinals ...int) error {
	for _, n := range ordinals {
		e.servers.Servers[n].Kill()
	}
	time.Sleep(pause)
	for _, n := range ordinals {
		if err := e.servers.Servers[n].Start(); err != nil {
			return err
		}
	}
	for _, n := range ordinals {
		if err := e.servers.Servers[n].AwaitEndpoint(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pauseEach stops one server after the other for a while, one of which has the leader.
func pauseEach(ctx context.Context, e *embedded) error {
	for _, server := range e.servers.Servers {
		if err := server.Pause(); err != nil {
			return err
		}
		time.Sleep(outage())
		if err := errors.Join(server.Resume(), server.AwaitEndpoint(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func (e *embedded) dataOf(n int) string { return filepath.Join(e.data, strconv.Itoa(n)) }

func (e *embedded) start(ctx context.Context) (err error) {
	local, err := localcluster.New(".cluster-faults-embedded", "", "CLUSTER_COMPONENTS=none")
	if err != nil {
		return err
	}
	e.cluster = &cluster{Cluster: local}
	if err := errors.Join(local.Stop(false), local.Script("up"), e.connect()); err != nil {
		return err
	}
	if err := local.Script("kubectl", "apply", "--server-side", "-k", filepath.Join(local.Root, "artifacts", "base", "rbac")); err != nil {
		return err
	}
	peers := filepath.Join(local.Root, "artifacts", "components", "embedded-members")
	if err := local.Script("kubectl", "apply", "--server-side", "-f", filepath.Join(peers, "rbac.yaml"), "-f", filepath.Join(peers, "serving.yaml")); err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: apiservice.Namespace, Name: "jobset-apiserver-serving"}}
	if _, err := e.Kube.CoreV1().Secrets(apiservice.Namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := e.WriteKubeconfig(ctx, "jobset-apiserver", filepath.Join(e.Dir, "apiserver.kubeconfig")); err != nil {
		return fmt.Errorf("credentials of jobset-apiserver: %w", err)
	}
	if e.data, err = os.MkdirTemp("", "js-"); err != nil { // the names of sockets are short
		return err
	}
	for n := range size {
		e.hosts = append(e.hosts, fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()>>8%250, os.Getpid()%256, 230+n))
	}
	return e.serve(ctx)
}

// serve starts the servers and routes the API groups to them.
func (e *embedded) serve(ctx context.Context) error {
	all, err := dynamic.NewForConfig(e.REST)
	if err != nil {
		return err
	}
	settings := replicas.Settings{
		Binary: e.Program("jobset-apiserver"), Kubeconfig: filepath.Join(e.Dir, "apiserver.kubeconfig"), Dir: filepath.Join(e.Dir, "servers"),
		Readiness: replicas.Quick, Hosts: e.hosts,
		Flags:        []string{"--embedded-etcd-members=" + strings.Join(e.hosts, ","), fmt.Sprint("--shutdown-delay-duration=", shutdownDelay())},
		ServingFlags: []string{"--tls-managed-secret=" + apiservice.Namespace + "/jobset-apiserver-serving"},
		FlagsOf: func(n int) []string {
			return append(framework.Embedded(e.dataOf(n)), "--pod-name=jobset-apiserver-"+strconv.Itoa(n))
		},
	}
	if e.servers, err = replicas.Prepare(settings); err != nil {
		return err
	}
	// A server is ready when the APIServices have its authority.
	if err := framework.Register(ctx, e.Kube, all, e.servers.Port, e.servers.CA); err != nil {
		return err
	}
	return e.servers.StartAll(ctx, size)
}

// stop ends everything. Unless all went well, the logs are kept with those of the control plane.
func (e *embedded) stop(good bool) error {
	if e.servers != nil {
		e.servers.Close()
	}
	if e.cluster == nil {
		return nil
	}
	var errs []error
	logs, err := filepath.Glob(filepath.Join(e.Dir, "servers", "*.log"))
	errs = append(errs, err)
	for _, log := range logs {
		errs = append(errs, os.Rename(log, filepath.Join(e.Dir, "logs", filepath.Base(log))))
	}
	if e.data != "" {
		errs = append(errs, os.RemoveAll(e.data))
	}
	return errors.Join(append(errs, e.Stop(good))...)
}
