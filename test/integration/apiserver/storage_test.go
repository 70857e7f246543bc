// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

func TestExternalEtcd(t *testing.T) {
	tier.OnRequest(t, "starts a server for each mistake")
	etcd := plane.StartEtcd(t)
	server := plane.StartServer(t, etcd.Flags...)
	e := newEnv(t, server, server.Config(t))
	e.create(t, jobSet("a"))
	checkStored(t, etcd.Client(t), e.namespace)

	// A second replica on the same etcd serves the same objects and sees what the first one writes.
	replica := plane.StartServer(t, etcd.Flags...)
	other := clientset(t, replica.Config(t)).JobSets(e.namespace)
	e.create(t, jobSet("b"))
	list, err := other.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("the second replica lists %d: %v", len(list.Items), err)
	}
}

func TestEmbeddedEtcd(t *testing.T) {
	dir := filepath.Join(framework.ShortDir(t), "data")
	server := plane.StartServer(t, framework.Embedded(dir)...)
	e := newEnv(t, server, server.Config(t))
	e.create(t, jobSet("a"))

	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode of the data directory is %o, not 700", info.Mode().Perm())
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + filepath.Join(dir, "client.sock")}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	checkStored(t, client, e.namespace)
	checkListeners(t, server)

	t.Run("the directory cannot be used twice", func(t *testing.T) {
		f := fixture{t: t, kubeconfig: plane.ServerKubeconfig(t)}
		expectOneLine(t, append(f.valid("data-dir"), "--data-dir="+dir), []string{"--data-dir", dir + " is in use by another process", "stop that process or use another directory"})
		if got := e.get(t, "a"); got.Name != "a" {
			t.Error("the first server suffered")
		}
	})
}

func TestEncryption(t *testing.T) {
	etcd := plane.StartEtcd(t)
	f := fixture{t: t}
	config := f.write("encryption.yaml", `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [jobsets.jobset.x-k8s.io]
  providers:
  - secretbox: {keys: [{name: one, secret: MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=}]}
`)
	server := plane.StartServer(t, append(etcd.Flags, "--encryption-provider-config="+config)...)
	e := newEnv(t, server, server.Config(t))
	e.create(t, jobSet("a"))
	checkStoredBytes(t, etcd.Client(t), e.namespace, "k8s:enc:secretbox:")
	if got := e.get(t, "a"); got.Name != "a" {
		t.Errorf("read back %+v", got)
	}
}

// secretboxes returns a configuration with keys of these names, of which the first encrypts.
func secretboxes(names ...string) string {
	var keys []string
	for _, name := range names {
		keys = append(keys, fmt.Sprintf("{name: %s, secret: %s}", name, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(name[:1]), 32))))
	}
	return "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [jobsets.jobset.x-k8s.io]\n  providers:\n" +
		"  - secretbox: {keys: [" + strings.Join(keys, ", ") + "]}\n"
}

// TestEncryptionKeyRotation goes through docs/operations/unreadable.md, and takes the old key away before one of the
// sets was written again.
func TestEncryptionKeyRotation(t *testing.T) {
	tier.OnRequest(t, "starts a server for each mistake")
	etcd := plane.StartEtcd(t)
	f := fixture{t: t}
	start := func(names ...string) *framework.Server {
		return plane.StartServer(t, append(etcd.Flags, "--encryption-provider-config="+f.write("encryption.yaml", secretboxes(names...)))...)
	}
	server := start("old")
	e := newEnv(t, server, server.Config(t))
	e.create(t, jobSet("forgotten"))
	e.create(t, jobSet("written"))
	server.Stop(t)

	server = start("old", "new") // so that every server can read what others write next
	server.Stop(t)
	server = start("new", "old")
	sets := clientset(t, server.Config(t)).JobSets(e.namespace)
	for _, name := range []string{"forgotten", "written"} {
		if _, err := sets.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("with both keys: %v", err)
		}
	}
	written, err := sets.Get(t.Context(), "written", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sets.Update(t.Context(), written, metav1.UpdateOptions{}); err != nil { // as kubectl replace does, without a change
		t.Fatal(err)
	}
	server.Stop(t)

	server = start("new")
	sets = clientset(t, server.Config(t)).JobSets(e.namespace)
	if _, err := sets.Get(t.Context(), "written", metav1.GetOptions{}); err != nil {
		t.Errorf("a set that was written with the new key: %v", err)
	}
	if _, err := sets.Get(t.Context(), "forgotten", metav1.GetOptions{}); err == nil || !strings.Contains(err.Error(), "is in the store, but cannot be read") {
		t.Errorf("a set whose key is gone: %v", err)
	}
	list, err := sets.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("the list without the old key has %d sets: %v", len(list.Items), err)
	}
	server.Stop(t)

	server = start("new", "old")
	if _, err := clientset(t, server.Config(t)).JobSets(e.namespace).Get(t.Context(), "forgotten", metav1.GetOptions{}); err != nil {
		t.Errorf("the old key is back: %v", err)
	}
}

// checkStored wants one object below our prefix, in protobuf.
func checkStored(t *testing.T, client *clientv3.Client, namespace string) {
	t.Helper()
	checkStoredBytes(t, client, namespace, "k8s\x00")
}

func checkStoredBytes(t *testing.T, client *clientv3.Client, namespace, prefix string) {
	t.Helper()
	response, err := client.Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, kv := range response.Kvs {
		if strings.Contains(string(kv.Key), "jobsets") {
			values[string(kv.Key)] = string(kv.Value[:min(len(prefix), len(kv.Value))])
		}
	}
	key := "/registry/jobset-apiserver/jobset.x-k8s.io/jobsets/" + namespace + "/a"
	if diff := cmp.Diff(map[string]string{key: prefix}, values); diff != "" {
		t.Errorf("first bytes of stored objects (-want +got):\n%s", diff)
	}
}

// checkListeners wants the server to listen on its port and on nothing else of the network. Abstract sockets count: every
// process of the same network namespace can reach them.
func checkListeners(t *testing.T, server *framework.Server) {
	t.Helper()
	sockets, err := server.Listeners()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, socket := range sockets {
		names = append(names, filepath.Base(socket))
	}
	if diff := cmp.Diff([]string{fmt.Sprintf("tcp:%d", server.Port), "client.sock"}, names); diff != "" {
		t.Errorf("listeners (-want +got):\n%s", diff)
	}
}

func TestUnusableEtcdCostsOneLine(t *testing.T) {
	tier.OnRequest(t, "starts a server for each mistake")
	etcd := plane.StartEtcd(t)
	cases := map[string]struct {
		flags func(f fixture) []string
		want  []string
	}{
		"the address is none": {
			flags: func(fixture) []string { return []string{"--etcd-servers=localhost"} },
			want:  []string{"--etcd-servers", `"localhost" is not an address`, "https://host:port"},
		},
		"another authority signed its certificate": {
			flags: func(f fixture) []string {
				return []string{"--etcd-servers=" + etcd.Endpoint, "--etcd-cafile=" + f.write("ca.crt", string(f.authority().CA()))}
			},
			want: []string{"--etcd-cafile", "certificate signed by unknown authority", "give the authority that signed it"},
		},
		"no authority is given": {
			flags: func(fixture) []string { return []string{"--etcd-servers=" + etcd.Endpoint} },
			want:  []string{"--etcd-cafile", "certificate signed by unknown authority"},
		},
		"its certificate has another name": {
			flags: func(fixture) []string {
				return []string{"--etcd-servers=" + etcd.UnnamedEndpoint, "--etcd-cafile=" + etcd.CAFile}
			},
			want: []string{"--etcd-servers", "not 127.0.0.2", "use a name that its certificate has"},
		},
		"the client certificate is missing": {
			flags: func(fixture) []string {
				return []string{"--etcd-servers=" + etcd.Endpoint, "--etcd-cafile=" + etcd.CAFile}
			},
			want: []string{"--etcd-certfile", "certificate required", "give a certificate"},
		},
		"the client certificate is unreadable": {
			flags: func(f fixture) []string {
				return []string{"--etcd-servers=" + etcd.Endpoint, "--etcd-cafile=" + etcd.CAFile, "--etcd-certfile=" + f.missing(), "--etcd-keyfile=" + etcd.KeyFile}
			},
			want: []string{"--etcd-certfile", "no such file"},
		},
		"the client certificate lacks its key": {
			flags: func(f fixture) []string {
				return []string{"--etcd-servers=" + etcd.Endpoint, "--etcd-certfile=" + etcd.CertFile}
			},
			want: []string{"--etcd-certfile: must be set together with --etcd-keyfile"},
		},
		"the authority is garbage": {
			flags: func(f fixture) []string {
				return []string{"--etcd-servers=" + etcd.Endpoint, "--etcd-cafile=" + f.write("ca.crt", "garbage")}
			},
			want: []string{"--etcd-cafile", "use a PEM file"},
		},
		"it is too old": {
			flags: func(f fixture) []string { return []string{"--etcd-servers=" + oldEtcd(f.t)} },
			want:  []string{"--etcd-servers", "runs etcd 3.5.12, which is too old", "upgrade it to 3.5.13 or newer"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fixture{t: t, kubeconfig: plane.ServerKubeconfig(t)}
			// The server asks an external etcd after the main API, so that the library has said by then which admission plugins it has.
			expectLast(t, append(f.valid("data-dir", "allow-ephemeral-data"), c.flags(f)...), c.want, waitingLine, "Waiting for caches to sync",
				"admission controller(s) successfully")
		})
	}
}

// oldMember answers what version it is and nothing else.
type oldMember struct {
	pb.UnimplementedMaintenanceServer
}

func (oldMember) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Version: "3.5.12"}, nil
}

// oldEtcd answers the version request like an old release. Old releases cannot be built here.
func oldEtcd(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterMaintenanceServer(server, oldMember{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return "http://" + listener.Addr().String()
}
