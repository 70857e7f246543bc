// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/etcdcluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/hosts"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/replicas"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// embedded is a control plane with three of our API servers, each with a member of an embedded etcd.
type embedded struct {
	*cluster
	// network has a host for each server. Without root it is nil, and the servers have addresses of the loopback interface.
	network *hosts.Network
	// forward is where the hosts reach kube-apiserver.
	forward   *replicas.Balancer
	hosts     []string
	data      string
	servers   *replicas.Set
	members   *etcdcluster.Cluster
	bystander *bystander
}

// ofMembers is the one of this package, once a test has asked for it.
var ofMembers *embedded

// useEmbedded makes the control plane with embedded members the shared one until the test ends. The first test starts it.
func useEmbedded(t *testing.T) *embedded {
	t.Helper()
	if ofMembers == nil {
		ofMembers = &embedded{}
		if err := ofMembers.start(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if ofMembers.bystander == nil {
		t.Fatal("the control plane with embedded members did not start")
	}
	single := shared
	shared = ofMembers.cluster
	t.Cleanup(func() { shared = single })
	return ofMembers
}

func (e *embedded) start(ctx context.Context) (err error) {
	local, err := localcluster.New(".cluster-faults-embedded", "", "CLUSTER_COMPONENTS=none")
	if err != nil {
		return err
	}
	e.cluster = &cluster{Cluster: local}
	if err := errors.Join(local.Stop(false), local.Script("up"), e.connect()); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{e.install, e.connectHosts, e.credentials, e.directories, e.serve} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	e.bystander, err = e.newBystander(ctx)
	return err
}

// install creates what the manifests have beside the servers.
func (e *embedded) install(ctx context.Context) error {
	manifests := filepath.Join(e.Root, "artifacts")
	peers := filepath.Join(manifests, "components", "embedded-members")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: apiservice.Namespace, Name: "jobset-apiserver-serving"}}
	for _, from := range [][]string{
		{"-k", filepath.Join(manifests, "base", "rbac")}, {"-f", filepath.Join(peers, "rbac.yaml"), "-f", filepath.Join(peers, "serving.yaml")},
	} {
		if err := e.Script(append([]string{"kubectl", "apply", "--server-side"}, from...)...); err != nil {
			return err
		}
	}
	_, err := e.Kube.CoreV1().Secrets(apiservice.Namespace).Create(ctx, secret, metav1.CreateOptions{})
	return err
}

// connectHosts gives each server an address.
func (e *embedded) connectHosts(context.Context) (err error) {
	if os.Geteuid() != 0 {
		for n := range size {
			e.hosts = append(e.hosts, fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()>>8%250, os.Getpid()%256, 230+n))
		}
		return nil
	}
	if e.network, err = hosts.New(size); err != nil {
		return err
	}
	for _, h := range e.network.Hosts {
		e.hosts = append(e.hosts, h.Address)
	}
	e.forward, err = replicas.Forward(e.network.Gateway+":0", strings.TrimPrefix(e.REST.Host, "https://"))
	return err
}

// credentials writes those of the servers and of the controller.
func (e *embedded) credentials(ctx context.Context) error {
	of := &framework.Clients{Kube: e.Kube, REST: e.REST}
	if e.forward != nil {
		of.REST = rest.CopyConfig(e.REST)
		of.REST.Host = "https://" + e.forward.Address
		of.REST.ServerName = "127.0.0.1"
	}
	return errors.Join(of.WriteKubeconfig(ctx, "jobset-apiserver", e.file("apiserver.kubeconfig")),
		e.WriteKubeconfig(ctx, "jobset-controller-manager", e.file("controller.kubeconfig")))
}

// mountSize has room for the write-ahead log of a member, whose segments have 64 MiB.
const mountSize = "512m"

// directories makes those of the members. With root, each is a small file system, which can be full.
func (e *embedded) directories(context.Context) (err error) {
	if e.data, err = os.MkdirTemp("", "js-"); err != nil { // the names of sockets are short
		return err
	}
	var endpoints []string
	for n := range size {
		endpoints = append(endpoints, "unix://"+filepath.Join(e.dataOf(n), "client.sock"))
		if err := os.Mkdir(e.volume(n), 0o700); err != nil {
			return err
		}
		if e.network == nil {
			continue
		}
		if err := syscall.Mount("tmpfs", e.volume(n), "tmpfs", 0, "mode=0700,size="+mountSize); err != nil {
			return fmt.Errorf("mounting a small file system: %w", err)
		}
	}
	e.members = etcdcluster.At(endpoints...)
	return nil
}

func (e *embedded) file(name string) string { return filepath.Join(e.Dir, name) }

// volume has the data of a member.
func (e *embedded) volume(n int) string { return filepath.Join(e.data, strconv.Itoa(n)) }

func (e *embedded) dataOf(n int) string { return filepath.Join(e.volume(n), "d") }

// serve starts the servers and routes the API groups to them.
func (e *embedded) serve(ctx context.Context) error {
	all, err := dynamic.NewForConfig(e.REST)
	if err != nil {
		return err
	}
	settings := replicas.Settings{
		Binary: e.Program("jobset-apiserver"), Kubeconfig: e.file("apiserver.kubeconfig"), Dir: e.file("servers"),
		Readiness: replicas.Quick, Hosts: e.hosts,
		Flags: []string{
			"--embedded-etcd-members=" + strings.Join(e.hosts, ","), fmt.Sprint("--shutdown-delay-duration=", shutdownDelay()),
		},
		ServingFlags: []string{"--tls-managed-secret=" + apiservice.Namespace + "/jobset-apiserver-serving"},
		FlagsOf: func(n int) []string {
			return append(framework.Embedded(e.dataOf(n)), "--pod-name=jobset-apiserver-"+strconv.Itoa(n))
		},
	}
	if e.network != nil {
		settings.StartOn = func(n int, start func() error) error { return e.network.Hosts[n].Do(start) }
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

// leader is the ordinal of the server whose member leads the others.
func (e *embedded) leader(ctx context.Context) (int, error) {
	leader, err := e.members.Leader(ctx)
	return slices.Index(e.members.Members, leader), err
}

// follower is the ordinal of another server.
func (e *embedded) follower(ctx context.Context) (int, error) {
	leader, err := e.leader(ctx)
	return (leader + 1) % size, err
}

// recovered waits until all members and servers work.
func (e *embedded) recovered(ctx context.Context) error {
	if err := e.members.AwaitHealthy(ctx); err != nil {
		return err
	}
	return e.servers.AwaitEndpoints(ctx)
}

// away kills servers, and starts them again later.
func (e *embedded) away(ctx context.Context, pause time.Duration, ordinals ...int) error {
	var chosen []*replicas.Server
	for _, n := range ordinals {
		chosen = append(chosen, e.servers.Servers[n])
	}
	return away(ctx, pause, e.servers.AwaitEndpoints, chosen...)
}

// stop ends everything. Unless all went well, the logs are kept with those of the control plane.
func (e *embedded) stop(good bool) error {
	if e.servers != nil {
		e.servers.Close()
	}
	if e.bystander != nil {
		e.bystander.controller.Kill()
	}
	if e.forward != nil {
		e.forward.Close()
	}
	if e.network != nil {
		e.network.Close()
	}
	var errs []error
	for n := range size {
		if _, err := os.Stat(e.volume(n)); e.data != "" && e.network != nil && err == nil {
			_ = syscall.Unmount(e.volume(n), syscall.MNT_DETACH) // it may not be mounted
		}
	}
	if e.data != "" {
		errs = append(errs, os.RemoveAll(e.data))
	}
	if e.cluster == nil {
		return errors.Join(errs...)
	}
	logs, err := filepath.Glob(e.file("servers/*.log"))
	errs = append(errs, err)
	for _, log := range logs {
		errs = append(errs, os.Rename(log, filepath.Join(e.Dir, "logs", filepath.Base(log))))
	}
	return errors.Join(append(errs, e.Stop(good))...)
}
