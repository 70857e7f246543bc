// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// ReplaceBeforeAnnotation is an annotation on the Secret with which an administrator has all authorities replaced that
// were made before a time of the past (RFC 3339).
const ReplaceBeforeAnnotation = "jobset-apiserver.io/replace-authority-before"

// mostSkew is how far the clock of this machine may be from that of the main cluster. Certificates that were made with
// another one could be refused.
const mostSkew = backdate / 2

// Config says where certificates are kept, and who has to trust them.
type Config struct {
	// Kube and Dynamic are clients of the main cluster.
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	// Secret has the certificates. It must exist.
	Secret types.NamespacedName
	// Names are the DNS names and IP addresses of the server.
	Names []string
	// Targets have the caBundles of the server.
	Targets []Target
	Policy  Policy
	Clock   clock.Clock
	// Skew returns by how much the clock of the main cluster is ahead.
	Skew func() time.Duration
	// Dir also gets the certificates, if it is not empty, for the members of an embedded etcd: the certificate then also identifies a
	// client.
	Dir string
}

// Manager keeps the certificate. It implements dynamiccertificates.CertKeyContentProvider and healthz.HealthChecker.
type Manager struct {
	Config
	bundles bundles
	trigger chan struct{}

	// The following are used by one pass at a time.

	// good is the last data of the Secret with which the server could serve.
	good map[string][]byte
	// heldSince is when all caBundles were first seen to have the next authority, which is held.
	held      []byte
	heldSince time.Time

	mu        sync.Mutex
	listeners []dynamiccertificates.Listener
	cert, key []byte
	notAfter  time.Time
	// trusted says that all caBundles have had the authority of the certificate.
	trusted bool
	failure error
}

// New returns a manager, which does nothing yet.
func New(config Config) *Manager {
	return &Manager{Config: config, bundles: bundles{client: config.Dynamic, targets: config.Targets, names: config.Names},
		trigger: make(chan struct{}, 1)}
}

// Pass makes one pass. Errors do not keep it from doing what is possible beside them.
func (m *Manager) Pass(ctx context.Context) error {
	err := m.pass(ctx)
	countPass(err)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err != nil && (m.failure == nil || m.failure.Error() != err.Error()):
		klog.FromContext(ctx).Error(err, "The serving certificate, or its caBundles, could not be kept in order", "secret", m.Secret)
	case err == nil && m.failure != nil:
		klog.FromContext(ctx).Info("The serving certificate and its caBundles are in order again", "secret", m.Secret)
	}
	m.failure = err
	return err
}

func (m *Manager) pass(ctx context.Context) error {
	current, failure := m.update(ctx, false)
	if current == nil {
		return failure
	}
	if err := m.writeBundles(ctx, current); err != nil {
		return errors.Join(failure, err)
	}
	if current.next != nil && m.propagated(current.next.Certificate) {
		if current, failure = m.update(ctx, true); current != nil {
			failure = errors.Join(failure, m.writeBundles(ctx, current))
		}
	}
	return failure
}

// update brings the Secret into order and serves with what is in it. It returns nothing if there is nothing to serve
// with. The error may come with content that is still good.
func (m *Manager) update(ctx context.Context, trusted bool) (*content, error) {
	for attempt := 0; ; attempt++ {
		current, err := m.updateOnce(ctx, trusted)
		if apierrors.IsConflict(err) && attempt < mostConflicts {
			continue
		}
		if err != nil {
			err = fmt.Errorf("secret %s: %w", m.Secret, err)
		}
		return current, err
	}
}

func (m *Manager) updateOnce(ctx context.Context, trusted bool) (*content, error) {
	secret, err := m.Kube.CoreV1().Secrets(m.Secret.Namespace).Get(ctx, m.Secret.Name, metav1.GetOptions{})
	if err != nil {
		if apierrors.IsNotFound(err) {
			err = fmt.Errorf("%w: apply the manifests of the installation, which create it", err)
		}
		return nil, err
	}
	now := m.Clock.Now()
	found := m.restore(ctx, secret.Data, now)
	planned, changes, err := m.change(ctx, secret, found, now, trusted)
	if planned == nil {
		// What is there may still be served.
		planned = found
	}
	if len(changes) > 0 {
		klog.FromContext(ctx).Info("Changed the serving certificate", "secret", m.Secret, "changes", strings.Join(changes, "; "))
	}
	if !planned.usable(now, m.Names) {
		if err == nil {
			err = errors.New("it has no certificate that could be served")
		}
		return nil, err
	}
	return planned, errors.Join(err, m.serve(planned))
}

// restore reads the data of the Secret. If it is damaged, what this server serves with takes its place.
func (m *Manager) restore(ctx context.Context, data map[string][]byte, now time.Time) *content {
	found := parse(data)
	if len(found.damaged) == 0 && len(found.authorities) > 0 || m.good == nil || maps.EqualFunc(m.good, data, bytes.Equal) {
		return found
	}
	good := parse(m.good)
	if !good.usable(now, m.Names) {
		return found
	}
	klog.FromContext(ctx).Error(nil, "The Secret of the serving certificate was damaged: restoring what this server serves with", "secret",
		m.Secret, "damaged", found.damaged)
	good.damaged = append(good.damaged, "the content")
	return good
}

// change writes what is planned, unless it is there already. It returns what is in the Secret afterwards.
func (m *Manager) change(ctx context.Context, secret *corev1.Secret, found *content, now time.Time,
	trusted bool) (*content, []string, error) {
	plan := planner{now: now, names: m.Names, Policy: m.Policy, trusted: trusted, usages: m.usages()}
	var notice error
	if value := secret.Annotations[ReplaceBeforeAnnotation]; value != "" {
		if plan.replaceBefore, notice = time.Parse(time.RFC3339, value); notice != nil {
			notice = fmt.Errorf("annotation %s: %w", ReplaceBeforeAnnotation, notice)
		}
	}
	planned, changes, err := plan.plan(found)
	if err != nil {
		return nil, nil, err
	}
	data, err := planned.data()
	if err != nil {
		return nil, nil, err
	}
	if maps.EqualFunc(data, secret.Data, bytes.Equal) {
		return planned, nil, notice
	}
	if skew := m.Skew(); skew.Abs() > mostSkew {
		return nil, nil, fmt.Errorf("a certificate is due, but the clock of this machine differs by %s from that of the main cluster, more "+
			"than %s: correct the clock",
			skew.Abs().Round(time.Second), mostSkew)
	}
	secret = secret.DeepCopy()
	secret.Data = data
	if _, err := m.Kube.CoreV1().Secrets(m.Secret.Namespace).Update(ctx, secret,
		metav1.UpdateOptions{FieldManager: "jobset-apiserver"}); err != nil {
		return nil, nil, err
	}
	return planned, changes, notice
}

// writeBundles makes kube-apiserver trust the content.
func (m *Manager) writeBundles(ctx context.Context, c *content) error {
	now := m.Clock.Now()
	err := m.bundles.write(ctx, bundlePolicy{authorities: c.authorities, now: now})
	switch {
	case c.next == nil || err != nil:
		m.held = nil
	case !bytes.Equal(m.held, c.next.Certificate.Raw):
		m.held, m.heldSince = c.next.Certificate.Raw, now
	}
	if err == nil {
		m.mu.Lock()
		m.trusted = true
		m.mu.Unlock()
	}
	return err
}

// propagated returns whether all trust the next authority. Members of etcd read it when they start.
func (m *Manager) propagated(next *x509.Certificate) bool {
	if m.Dir != "" {
		return m.Clock.Since(made(next)) >= m.Policy.restarts()
	}
	return m.held != nil && m.Clock.Since(m.heldSince) >= m.Policy.propagation()
}

func (m *Manager) usages() []x509.ExtKeyUsage {
	if m.Dir != "" {
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
}

// Skew measures by how much the clock of a server is ahead of that of this machine, by the headers of its answers. Its
// zero value is ready to use.
type Skew struct{ last atomic.Int64 }

// Last returns what the last answer said; 0 before the first one.
func (s *Skew) Last() time.Duration { return time.Duration(s.last.Load()) }

// Wrap returns a transport whose answers are measured.
func (s *Skew) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		begin := time.Now()
		response, err := next.RoundTrip(request)
		if err != nil {
			return response, err
		}
		if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
			s.last.Store(int64(apart(date, begin, time.Now())))
		}
		return response, nil
	})
}

// apart returns how far a time is from the interval in which it was taken; it has whole seconds.
func apart(date, begin, end time.Time) time.Duration {
	switch {
	case date.Add(time.Second).Before(begin):
		return date.Add(time.Second).Sub(begin)
	case date.After(end):
		return date.Sub(end)
	}
	return 0
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
