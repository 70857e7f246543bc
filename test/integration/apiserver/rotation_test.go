// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// rotation replaces authorities and certificates between the programs while a watch runs and requests are made.
type rotation struct {
	*env
	etcd *framework.Etcd
	// serving holds ca.crt, server.crt and server.key of our server.
	serving string
	old     *framework.Authority
	new     *framework.Authority
	watch   watch.Interface
}

// TestRotation replaces the certificates of all hops, and their authorities: the certificates with which our server serves, the
// certificates with which kube-apiserver comes to it, and the certificates between our server and etcd.
func TestRotation(t *testing.T) {
	tier.OnRequest(t, "rotates certificates in real time")
	r := &rotation{etcd: plane.StartEtcd(t), serving: t.TempDir(), old: newAuthority(t), new: newAuthority(t)}
	if _, _, _, err := r.old.WriteServer(r.serving, apiservice.Hosts()...); err != nil {
		t.Fatal(err)
	}
	server := plane.LaunchServer(t, append(r.etcd.Flags, "--tls-cert-file="+filepath.Join(r.serving, "server.crt"),
		"--tls-private-key-file="+filepath.Join(r.serving, "server.key"))...)
	server.CertDir = r.serving
	server.AwaitReady(t)
	plane.Aggregate(t, server)
	r.env = newEnv(t, server, plane.Config)
	var err error
	if r.watch, err = r.typed.Watch(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	defer r.watch.Stop()
	r.seen(t, "begin")
	r.awaitPodWebhook(t)
	requests := r.probe(t)
	r.rotateServing(t)
	r.seen(t, "serving")
	r.rotateFrontProxy(t)
	r.seen(t, "front-proxy")
	if failures := requests(); len(failures) > 0 {
		t.Errorf("%d requests failed, the first with: %v", len(failures), failures[0])
	}
	r.rotateEtcd(t)
	r.seen(t, "etcd")
}

// seen creates a set, which the watch that runs all the time must see.
func (r *rotation) seen(t *testing.T, name string) {
	t.Helper()
	r.create(t, jobSet(name))
	if kind, js := next(t, r.watch); kind != watch.Added || js.Name != name {
		t.Fatalf("the watch got %s of %s", kind, js.Name)
	}
}

// twice asks again when something fails. A connection that a busy machine breaks off is no failure of the rotation.
func twice(ctx context.Context, ask func() error) error {
	err := ask()
	if err == nil || ctx.Err() != nil {
		return nil
	}
	if again := ask(); again != nil && ctx.Err() == nil {
		return errors.Join(err, again)
	}
	return nil
}

// probe makes requests until what it returns is called, which returns the failures.
func (r *rotation) probe(t *testing.T) func() []error {
	ctx, cancel := context.WithCancel(t.Context())
	var failures []error
	var made atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			if err := twice(ctx, func() error {
				_, err := r.typed.Get(ctx, "begin", metav1.GetOptions{})
				if err == nil {
					_, err = r.createPod(ctx, groupPod("sample-0"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				}
				return err
			}); err != nil {
				failures = append(failures, err)
			}
			made.Add(1)
		}, 50*time.Millisecond)
	}()
	return func() []error {
		cancel()
		<-done
		if made.Load() == 0 {
			t.Error("no request was made")
		}
		return failures
	}
}

// rotateServing follows docs/operations/certificates.md: the new authority beside the old one, the new certificate, the
// new authority alone.
func (r *rotation) rotateServing(t *testing.T) {
	t.Helper()
	for i, bundle := range [][]byte{bytes.Join([][]byte{r.old.CA(), r.new.CA()}, nil), r.new.CA()} {
		patch := fmt.Sprintf(`{"spec":{"caBundle":%q}}`, base64.StdEncoding.EncodeToString(bundle))
		for _, group := range apiservice.Groups {
			if _, err := plane.Dynamic.Resource(apiservice.Resource).Patch(t.Context(), apiservice.Name(group), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		patch = fmt.Sprintf(`{"webhooks":[{"name":"mpod.kb.io","clientConfig":{"caBundle":%q}}]}`, base64.StdEncoding.EncodeToString(bundle))
		webhooks := plane.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations()
		if _, err := webhooks.Patch(t.Context(), apiservice.WebhookName, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(r.serving, "ca.crt"), bundle)
		if i > 0 {
			continue
		}
		cert, key, err := r.new.Server(apiservice.Hosts()...)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(r.serving, "server.key"), key)
		write(t, filepath.Join(r.serving, "server.crt"), cert)
		framework.Eventually(t, "the server uses the new certificate", func(context.Context) error { return r.servesFor(r.new) })
	}
	if err := r.servesFor(r.old); err == nil {
		t.Error("the old certificate is still served")
	}
}

// servesFor connects, trusting the authority alone.
func (r *rotation) servesFor(authority *framework.Authority) error {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.CA())
	conn, err := tls.Dial("tcp", fmt.Sprintf("localhost:%d", r.server.Port), &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})
	if err == nil {
		conn.Close()
	}
	return err
}

// rotateFrontProxy rotates the client certificate of kube-apiserver and its authority, and back, because other tests
// use the same kube-apiserver.
func (r *rotation) rotateFrontProxy(t *testing.T) {
	t.Helper()
	from, to := plane.FrontProxy, newAuthority(t)
	shown := r.observe(t)
	for range 2 {
		ca := filepath.Join(plane.FrontProxyDir, "ca.crt")
		write(t, ca, bytes.Join([][]byte{from.CA(), to.CA()}, nil))
		framework.Eventually(t, "the server knows the new authority", func(context.Context) error {
			if err := r.proxied(t, to, "front-proxy-client"); apierrors.IsUnauthorized(err) {
				return err
			}
			return nil
		})
		cert, key, err := to.Client("front-proxy-client")
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(plane.FrontProxyDir, "client.key"), key)
		write(t, filepath.Join(plane.FrontProxyDir, "client.crt"), cert)
		framework.Eventually(t, "kube-apiserver has read its new certificate", func(ctx context.Context) error {
			_ = plane.Kube.Discovery().RESTClient().Get().AbsPath("/apis/rotation.test/v1").Do(ctx).Error() // what it answers does not matter
			return signedBy(shown.Load(), to)
		})
		// kube-apiserver publishes the old authority until its certificate has expired.
		write(t, ca, to.CA())
		from, to = to, from
	}
}

// observe registers a server of the test with kube-apiserver and returns where the certificate with which
// kube-apiserver came last can be seen.
func (r *rotation) observe(t *testing.T) *atomic.Pointer[x509.Certificate] {
	t.Helper()
	var shown atomic.Pointer[x509.Certificate]
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		if certs := req.TLS.PeerCertificates; len(certs) > 0 {
			shown.Store(certs[0])
		}
	}))
	cert, key, err := r.new.Server("observer.jobset-system.svc")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.Config.SetKeepAlivesEnabled(false)
	server.StartTLS()
	t.Cleanup(server.Close)
	port := server.Listener.Addr().(*net.TCPAddr).Port
	service := apiservice.Service(port)
	service.Name = "observer"
	if _, err := plane.Kube.CoreV1().Services(service.Namespace).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	object := apiservice.New(schema.GroupVersion{Group: "rotation.test", Version: "v1"}, port, r.new.CA())
	if err := unstructured.SetNestedField(object.Object, service.Name, "spec", "service", "name"); err != nil {
		t.Fatal(err)
	}
	services := plane.Dynamic.Resource(apiservice.Resource)
	if _, err := services.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := services.Delete(ctx, object.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if err := plane.Kube.CoreV1().Services(service.Namespace).Delete(ctx, service.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return &shown
}

// signedBy returns an error unless the authority has signed the certificate.
func signedBy(cert *x509.Certificate, authority *framework.Authority) error {
	if cert == nil {
		return errors.New("no certificate was shown")
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.CA())
	_, err := cert.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err
}

// rotateEtcd rotates both sides between our server and etcd. The server reads its certificate for each connection.
func (r *rotation) rotateEtcd(t *testing.T) {
	t.Helper()
	fresh := newAuthority(t)
	cert, key, err := fresh.Client("jobset-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	write(t, r.etcd.KeyFile, key)
	write(t, r.etcd.CertFile, cert)
	write(t, r.etcd.CAFile, fresh.CA())
	r.etcd.Kill()
	r.etcd.Launch(t)
	framework.Eventually(t, "the server reaches etcd with its new certificate", func(ctx context.Context) error {
		_, err := r.typed.Get(ctx, "begin", metav1.GetOptions{ResourceVersion: ""})
		return err
	})
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	// Replaced by a rename, as a kubelet does: no process reads half of a file.
	if err := errors.Join(os.WriteFile(path+".new", content, 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}
