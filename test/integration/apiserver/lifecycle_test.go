// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

func TestGracefulStop(t *testing.T) {
	tier.OnRequest(t, "starts, signals and stops servers")
	const delay = 30 * time.Second // in which all that follows happens on a slow machine, too
	flags := append(framework.Embedded(framework.ShortDir(t)), fmt.Sprint("--shutdown-delay-duration=", delay))
	server := plane.StartServer(t, flags...)
	e := newEnv(t, server, server.Config(t))
	e.create(t, jobSet("before"))
	w, err := e.typed.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if kind, js := next(t, w); kind != watch.Added || js.Name != "before" {
		t.Fatalf("first event is %s of %s", kind, js.Name)
	}

	begin := time.Now()
	if err := server.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "/readyz fails", func(context.Context) error {
		if code, body := server.Get(t, "/readyz"); code != http.StatusInternalServerError {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	if code, body := server.Get(t, "/livez"); code != http.StatusOK {
		t.Errorf("/livez answers %d %s while the server is still to serve", code, body)
	}
	e.create(t, jobSet("during"))
	if kind, js := next(t, w); kind != watch.Added || js.Name != "during" {
		t.Errorf("the watch got %s of %s", kind, js.Name)
	}
	for event := range w.ResultChan() {
		t.Errorf("the watch got %s before it ended", event.Type)
	}
	if code := server.Wait(t); code != 0 {
		t.Errorf("exit code is %d", code)
	}
	if took := time.Since(begin); took < delay {
		t.Errorf("stopping took %s", took)
	}
	for _, noise := range []string{"panic", "embedded etcd stopped", "[core]"} {
		if strings.Contains(server.Log(), noise) {
			t.Errorf("the log contains %q", noise)
		}
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	tier.OnRequest(t, "starts, signals and stops servers")
	flags := append(framework.Embedded(framework.ShortDir(t)), "--shutdown-delay-duration=1h")
	server := plane.StartServer(t, flags...)
	if err := server.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the stop has begun", func(context.Context) error {
		if code, _ := server.Get(t, "/readyz"); code != http.StatusInternalServerError {
			return fmt.Errorf("/readyz answers %d", code)
		}
		return nil
	})
	if err := server.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := server.Wait(t); code != 1 {
		t.Errorf("exit code is %d", code)
	}
}

// TestRestart kills the server in the hardest way. Losing an object, or giving it another UID, would make the garbage
// collector delete the running Jobs of that JobSet.
func TestRestart(t *testing.T) {
	tier.OnRequest(t, "starts, signals and stops servers")
	dir, certs := framework.ShortDir(t), t.TempDir()
	flags := append(framework.Embedded(dir), "--cert-dir="+certs)
	server := plane.LaunchServer(t, flags...)
	server.CertDir = certs
	server.AwaitReady(t)
	e := newEnv(t, server, server.Config(t))
	want := map[string]string{}
	for i := range 20 {
		js := e.create(t, jobSet(fmt.Sprintf("a%d", i)))
		want[js.Name] = string(js.UID) + js.ResourceVersion
	}
	authority, err := os.ReadFile(filepath.Join(certs, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	server.Wait(t)

	server = plane.LaunchServer(t, flags...)
	server.CertDir = certs
	server.AwaitReady(t)
	list, err := clientset(t, server.Config(t)).JobSets(e.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, js := range list.Items {
		got[js.Name] = string(js.UID) + js.ResourceVersion
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("UIDs and versions (-want +got):\n%s", diff)
	}
	again, err := os.ReadFile(filepath.Join(certs, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(authority), string(again)); diff != "" {
		t.Error("a restart made another authority, which the APIService does not know")
	}
}

func TestHealth(t *testing.T) {
	tier.OnRequest(t, "starts, signals and stops servers")
	etcd := plane.StartEtcd(t)
	server := plane.StartServer(t, append(etcd.Flags, "--request-timeout=3s")...)
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		if code, body := server.Get(t, path); code != http.StatusOK {
			t.Errorf("%s answers %d %s without an identity", path, code, body)
		}
	}
	_, body := server.Get(t, "/readyz?verbose")
	for _, check := range []string{"etcd", "etcd-readiness", "informer-sync", "client-ca", "poststarthook/start-apiserver-admission-initializer", "shutdown"} {
		if !strings.Contains(body, "[+]"+check+" ok") {
			t.Errorf("/readyz does not check %s:\n%s", check, body)
		}
	}
	if err := etcd.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "/readyz fails without etcd", func(context.Context) error {
		if code, body := server.Get(t, "/readyz"); code == http.StatusOK {
			return errors.New(body)
		}
		return nil
	})
	// The garbage collector must be told to try again, not that the owners are gone.
	e := newEnv(t, server, server.Config(t))
	_, err := e.typed.Create(t.Context(), jobSet("a"), metav1.CreateOptions{})
	if err == nil || apierrors.IsNotFound(err) {
		t.Errorf("without etcd: %v", err)
	}
}

func TestCertificateIsReloaded(t *testing.T) {
	tier.OnRequest(t, "starts, signals and stops servers")
	dir := t.TempDir()
	first, second := newAuthority(t), newAuthority(t)
	_, cert, key, err := first.WriteServer(dir)
	if err != nil {
		t.Fatal(err)
	}
	flags := append(framework.Embedded(framework.ShortDir(t)), "--tls-cert-file="+cert, "--tls-private-key-file="+key)
	server := plane.LaunchServer(t, flags...)
	server.CertDir = dir
	server.AwaitReady(t)
	if err := verify(server, first); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := second.WriteServer(dir); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the new certificate is served", func(context.Context) error { return verify(server, second) })
}

func newAuthority(t *testing.T) *framework.Authority {
	t.Helper()
	authority, err := framework.NewAuthority("serving")
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// verify connects and wants a certificate of the authority.
func verify(server *framework.Server, authority *framework.Authority) error {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.CA())
	conn, err := tls.Dial("tcp", fmt.Sprintf("localhost:%d", server.Port), &tls.Config{RootCAs: pool})
	if err != nil {
		return err
	}
	return conn.Close()
}

func TestVersionAndMetrics(t *testing.T) {
	tier.OnRequest(t, "starts, signals and stops servers")
	server := plane.StartServer(t, framework.Embedded(framework.ShortDir(t))...)
	e := newEnv(t, server, server.Config(t))
	e.create(t, jobSet("a"))
	var version struct{ GitVersion, EmulationMajor, EmulationMinor string }
	e.fetch(t, "/version", &version)
	if version.GitVersion != plane.Version || version.EmulationMajor != "1" {
		t.Errorf("version is %+v", version)
	}
	code, metrics := framework.Get(t, server.Config(t), "/metrics")
	if code != http.StatusOK {
		t.Fatalf("/metrics answers %d", code)
	}
	for _, metric := range []string{"apiserver_request_total", "apiserver_flowcontrol_dispatched_requests_total", "apiserver_admission_step_admission_duration_seconds", "etcd_request_duration_seconds"} {
		if !strings.Contains(metrics, metric+"{") && !strings.Contains(metrics, metric+"_bucket{") {
			t.Errorf("metric %s is missing", metric)
		}
	}
	process := framework.Run(t, plane.Binary, "--help")
	if code := process.Wait(t); code != 0 {
		t.Errorf("--help ends with code %d", code)
	}
}
