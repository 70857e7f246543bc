// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// gate is an address of the main API that can be taken away.
type gate struct {
	address, target string

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
}

// newGate returns one that is closed, and a kubeconfig of the server that leads through it.
func newGate(t *testing.T) (g *gate, kubeconfig string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(plane.ServerKubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	g = &gate{address: fmt.Sprintf("127.0.0.1:%d", framework.FreePort(t))}
	for _, cluster := range config.Clusters {
		target, err := url.Parse(cluster.Server)
		if err != nil {
			t.Fatal(err)
		}
		g.target, cluster.Server = target.Host, "https://"+g.address
	}
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.close)
	return g, kubeconfig
}

func (g *gate) open(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	g.mu.Lock()
	g.listener = listener
	g.mu.Unlock()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			next, err := net.Dial("tcp", g.target)
			if err != nil {
				conn.Close()
				continue
			}
			g.mu.Lock()
			g.conns = append(g.conns, conn, next)
			g.mu.Unlock()
			for _, pair := range [][2]net.Conn{{conn, next}, {next, conn}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1]) // one side has gone
					pair[0].Close()
				}()
			}
		}
	}()
}

// close takes the address away, and all connections.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener != nil {
		g.listener.Close()
	}
	for _, conn := range g.conns {
		conn.Close()
	}
	g.listener, g.conns = nil, nil
}

// askWithoutTrust asks as a probe of the kubelet does, which verifies no certificate.
func askWithoutTrust(t *testing.T, server *framework.Server, path string) (code int, body string) {
	t.Helper()
	return framework.Get(t, &rest.Config{Host: server.URL(), TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, path)
}

// awaitWaiting waits until the server answers that it waits, with these texts, and checks that nothing has a reason to restart it.
func awaitWaiting(t *testing.T, server *framework.Server, want ...string) {
	t.Helper()
	if err := server.Await(t.Context(), "says what it waits for", func(context.Context) error {
		code, body := askWithoutTrust(t, server, "/readyz")
		missing := slices.DeleteFunc(slices.Clone(want), func(text string) bool { return strings.Contains(body, text) })
		if code != http.StatusServiceUnavailable || len(missing) > 0 {
			return fmt.Errorf("%d without %q: %s", code, missing, body)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if code, body := askWithoutTrust(t, server, "/livez"); code != http.StatusOK {
		t.Errorf("/livez: %d %s", code, body)
	}
	code, body := askWithoutTrust(t, server, "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets")
	var status metav1.Status
	err := json.Unmarshal([]byte(body), &status)
	if code != http.StatusServiceUnavailable || err != nil || status.Reason != metav1.StatusReasonServiceUnavailable || !strings.Contains(status.Message, want[0]) {
		t.Errorf("/apis: %d %s", code, body)
	}
}

// TestServerWaitsForMainAPI starts a server before the main API, and takes the main API away again while it serves.
func TestServerWaitsForMainAPI(t *testing.T) {
	tier.OnRequest(t, "waits in real time for what is away")
	t.Parallel()
	g, kubeconfig := newGate(t)
	flags := func() []string { return append(framework.Embedded(framework.ShortDir(t)), "--kubeconfig="+kubeconfig) }
	server, other := plane.LaunchServer(t, flags()...), plane.LaunchServer(t, flags()...)
	waits := []string{"has been waiting for the API server of the main cluster at https://" + g.address + " since ", "connection refused"}
	awaitWaiting(t, server, waits...)
	awaitWaiting(t, other, waits...)
	other.Stop(t)

	g.open(t)
	opened := time.Now()
	server.AwaitReady(t)
	t.Logf("ready %s after the main API came", time.Since(opened).Round(time.Millisecond))
	e := newEnv(t, server, server.Config(t))
	e.create(t, jobSet("before"))

	g.close()
	for range 3 {
		if code, body := askWithoutTrust(t, server, "/livez"); code != http.StatusOK {
			t.Errorf("/livez without the main API: %d %s", code, body)
		}
		e.get(t, "before")
	}
	g.open(t)
	opened = time.Now()
	framework.Eventually(t, "a set is created after the main API came back", func(ctx context.Context) error {
		_, err := e.typed.Create(ctx, jobSet("after"), metav1.CreateOptions{})
		return err
	})
	t.Logf("created %s after the main API came back", time.Since(opened).Round(time.Millisecond))
	server.Stop(t)
}

func TestServerWaitsForEtcd(t *testing.T) {
	tier.OnRequest(t, "waits in real time for what is away")
	t.Parallel()
	etcd := plane.StartEtcd(t)
	// An etcd that is killed before it has stored its own membership never serves again.
	if _, err := etcd.Client(t).Put(t.Context(), "/test/started", "yes"); err != nil {
		t.Fatal(err)
	}
	etcd.Kill()
	server := plane.LaunchServer(t, etcd.Flags...)
	awaitWaiting(t, server, "etcd at "+etcd.Endpoint, "connection refused", "start etcd or correct the address")
	etcd.Launch(t)
	server.AwaitReady(t)
	if !strings.Contains(server.Log(), "The wait is over") {
		t.Error("the log does not say that the wait is over")
	}
}
