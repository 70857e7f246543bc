// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	certutil "k8s.io/client-go/util/cert"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

const servingSecret = "jobset-apiserver-serving"

// managed are servers that make their certificate in a Secret.
type managed struct {
	*rotation
	flags []string
}

// newManaged creates the Secret as the manifests do.
func newManaged(t *testing.T, flags ...string) *managed {
	t.Helper()
	secrets := plane.Kube.CoreV1().Secrets(apiservice.Namespace)
	if _, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: servingSecret}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := secrets.Delete(context.WithoutCancel(t.Context()), servingSecret, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	m := &managed{rotation: &rotation{etcd: plane.StartEtcd(t)}}
	m.flags = append(append(flags, "--tls-managed-secret="+apiservice.Namespace+"/"+servingSecret), m.etcd.Flags...)
	return m
}

func (m *managed) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret, err := plane.Kube.CoreV1().Secrets(apiservice.Namespace).Get(t.Context(), servingSecret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// ready waits until a server is ready, and trusts what the Secret has.
func (m *managed) ready(t *testing.T, server *framework.Server) {
	t.Helper()
	framework.Eventually(t, "the Secret has an authority", func(context.Context) error {
		ca := m.secret(t).Data["ca.crt"]
		if len(ca) == 0 {
			return errors.New("it is empty")
		}
		write(t, filepath.Join(server.CertDir, "ca.crt"), ca)
		return nil
	})
	server.AwaitReady(t)
}

// bundle returns the caBundle of an APIService.
func bundle(ctx context.Context, name string) ([]byte, error) {
	object, err := plane.Dynamic.Resource(apiservice.Resource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	encoded, _, err := unstructured.NestedString(object.Object, "spec", "caBundle")
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(encoded)
}

// count returns how many certificates all caBundles have; an error if they differ.
func (m *managed) count(ctx context.Context) (int, error) {
	webhook, err := plane.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, apiservice.WebhookName, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	first := webhook.Webhooks[0].ClientConfig.CABundle
	for _, group := range apiservice.Groups {
		other, err := bundle(ctx, apiservice.Name(group))
		if err != nil {
			return 0, err
		}
		if !bytes.Equal(first, other) {
			return 0, fmt.Errorf("the caBundle of %s differs from that of the webhook", apiservice.Name(group))
		}
	}
	certs, err := certutil.ParseCertsPEM(first)
	return len(certs), err
}

func (m *managed) awaitCount(t *testing.T, want int) {
	t.Helper()
	framework.Eventually(t, fmt.Sprintf("all caBundles have %d certificates", want), func(ctx context.Context) error {
		got, err := m.count(ctx)
		if err == nil && got != want {
			err = fmt.Errorf("they have %d", got)
		}
		return err
	})
}

// dial makes a new connection to a server, as a client with the current caBundle, and returns the certificate of the server.
func dial(ctx context.Context, port int) (*x509.Certificate, error) {
	ca, err := bundle(ctx, apiservice.JobSets)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	name := apiservice.ServiceName + "." + apiservice.Namespace + ".svc"
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("localhost:%d", port))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

func pemOf(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: cert.Raw})
}

// dialAll makes connections until what it returns is called, which returns how many, the number of different
// certificates, and the failures.
func dialAll(t *testing.T, servers ...*framework.Server) func() (made, certs int, failures []error) {
	ctx, cancel := context.WithCancel(t.Context())
	var made int
	var failures []error
	seen := map[string]bool{}
	var running sync.WaitGroup
	running.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			for _, server := range servers {
				if err := twice(ctx, func() error {
					cert, err := dial(ctx, server.Port)
					if err == nil {
						seen[string(cert.Raw)] = true
					}
					return err
				}); err != nil {
					failures = append(failures, err)
				}
				made++
			}
		}, 50*time.Millisecond)
	})
	return func() (int, int, []error) {
		cancel()
		running.Wait()
		return made, len(seen), failures
	}
}

// watchCounts watches the webhook, and returns what returns the numbers of certificates that its caBundle had since.
func watchCounts(t *testing.T) func() []int {
	t.Helper()
	factory := informers.NewSharedInformerFactory(plane.Kube, 0)
	informer := factory.Admissionregistration().V1().MutatingWebhookConfigurations().Informer()
	var mu sync.Mutex
	var counts []int
	note := func(obj any) {
		webhook := obj.(*admissionregistrationv1.MutatingWebhookConfiguration)
		if certs, err := certutil.ParseCertsPEM(webhook.Webhooks[0].ClientConfig.CABundle); err == nil && webhook.Name == apiservice.WebhookName {
			mu.Lock()
			defer mu.Unlock()
			counts = append(counts, len(certs))
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, obj any) { note(obj) }}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer does not sync")
	}
	return func() []int {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(counts)
	}
}

// TestManagedCertificate starts two servers with an empty Secret, and APIServices and a webhook without caBundles.
// While requests run, an administrator replaces the authority, and the serving certificate is renewed.
func TestManagedCertificate(t *testing.T) {
	tier.OnRequest(t, "rotates certificates in real time")
	// A third of the duration is left for each step.
	m := newManaged(t, "--tls-managed-certificate-duration=2m", "--tls-managed-authority-duration=1h")
	first, second := plane.LaunchServer(t, m.flags...), plane.LaunchServer(t, m.flags...)
	m.ready(t, first)
	m.ready(t, second)
	plane.AggregatePort(t, first.Port, nil)
	m.env = newEnv(t, first, plane.Config)
	m.awaitPodWebhook(t)
	m.create(t, jobSet("begin"))
	m.awaitCount(t, 1)
	m.repairs(t)
	m.awaitPodWebhook(t)
	plane.AwaitForwarded(t, 3*time.Second)

	requests, connections, counts := m.probe(t), dialAll(t, first, second), watchCounts(t)
	before := m.secret(t).Data
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"jobset-apiserver.io/replace-authority-before":%q}}}`, time.Now().UTC().Add(time.Second).Format(time.RFC3339))
	if _, err := plane.Kube.CoreV1().Secrets(apiservice.Namespace).Patch(t.Context(), servingSecret, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the caBundles had two certificates, and have one", func(ctx context.Context) error {
		got, err := m.count(ctx)
		if had := counts(); err == nil && (got != 1 || !slices.Contains(had, 2)) {
			err = fmt.Errorf("they have %d, had %v", got, had)
		}
		return err
	})
	rotated := m.secret(t).Data
	if bytes.Equal(before["ca.crt"], rotated["ca.crt"]) || bytes.Equal(before["tls.crt"], rotated["tls.crt"]) {
		t.Error("the authority and the certificate must have been replaced")
	}
	framework.Eventually(t, "the serving certificate is renewed, and served", func(ctx context.Context) error {
		renewed := m.secret(t).Data
		if bytes.Equal(renewed["tls.crt"], rotated["tls.crt"]) {
			return errors.New("it is the same")
		}
		if served, err := dial(ctx, second.Port); err != nil || !bytes.HasPrefix(renewed["tls.crt"], pemOf(served)) {
			return fmt.Errorf("the second server has another one (%v)", err)
		}
		if !bytes.Equal(renewed["ca.crt"], rotated["ca.crt"]) {
			t.Error("the authority has changed, too")
		}
		return nil
	})
	failures := requests()
	made, certs, refused := connections()
	t.Logf("%d connections saw %d certificates; %d of them and %d requests failed", made, certs, len(refused), len(failures))
	if err := errors.Join(append(failures, refused...)...); err != nil || certs < 2 {
		t.Errorf("%d certificates were seen; failures: %v", certs, err)
	}
}

// repairs damages the caBundles and the Secret.
func (m *managed) repairs(t *testing.T) {
	t.Helper()
	begin := time.Now()
	for _, group := range apiservice.Groups {
		patch := fmt.Sprintf(`{"spec":{"caBundle":%q}}`, base64.StdEncoding.EncodeToString([]byte("garbage")))
		if _, err := plane.Dynamic.Resource(apiservice.Resource).Patch(t.Context(), apiservice.Name(group), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch := `{"webhooks":[{"name":"mpod.kb.io","clientConfig":{"caBundle":null}}]}`
	webhooks := plane.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations()
	if _, err := webhooks.Patch(t.Context(), apiservice.WebhookName, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	m.awaitCount(t, 1)
	t.Logf("the caBundles were repaired in %s", time.Since(begin).Round(time.Millisecond))

	before := m.secret(t)
	damaged := before.DeepCopy()
	damaged.Data = map[string][]byte{"ca.crt": []byte("garbage"), "tls.key": nil}
	begin = time.Now()
	if _, err := plane.Kube.CoreV1().Secrets(apiservice.Namespace).Update(t.Context(), damaged, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the Secret is repaired", func(context.Context) error {
		if !bytes.Equal(m.secret(t).Data["ca.crt"], before.Data["ca.crt"]) {
			return errors.New("it has another authority")
		}
		return nil
	})
	t.Logf("the Secret was repaired in %s", time.Since(begin).Round(time.Millisecond))
}
