// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestUpgradeToManagedCertificate replaces a server whose certificate and caBundles an administrator has made. Requests run all the time.
func TestUpgradeToManagedCertificate(t *testing.T) {
	tier.OnRequest(t, "rotates certificates in real time")
	m := newManaged(t)
	m.serving, m.old = t.TempDir(), newAuthority(t)
	if _, _, _, err := m.old.WriteServer(m.serving, apiservice.Hosts()...); err != nil {
		t.Fatal(err)
	}
	old := plane.LaunchServer(t, append(m.etcd.Flags, "--tls-cert-file="+filepath.Join(m.serving, "server.crt"), "--tls-private-key-file="+filepath.Join(m.serving, "server.key"))...)
	old.CertDir = m.serving
	old.AwaitReady(t)
	plane.Aggregate(t, old)
	m.env = newEnv(t, old, plane.Config)
	m.awaitPodWebhook(t)
	m.create(t, jobSet("begin"))

	requests, connections := m.probe(t), dialAll(t, old)
	next := plane.LaunchServer(t, m.flags...)
	m.ready(t, next)
	if _, err := dial(t.Context(), next.Port); err != nil {
		t.Errorf("the new server is ready, and its certificate is refused: %v", err)
	}
	m.awaitCount(t, 2)
	m.moveTo(t, next.Port)
	framework.Eventually(t, "requests go to the new server", func(ctx context.Context) error {
		m.create(t, jobSet(fmt.Sprintf("set-%d", time.Now().UnixNano())))
		m.awaitPodWebhook(t)
		code, metrics := framework.Get(t, next.Config(t), "/metrics")
		for _, want := range []string{`resource="jobsets"`, `jobset_apiserver_pod_webhook_requests_total{result="mutated"}`} {
			if code != 200 || !bytes.Contains([]byte(metrics), []byte(want)) {
				return fmt.Errorf("metrics have no %s (code %d)", want, code)
			}
		}
		return nil
	})
	made, _, refused := connections()
	old.Stop(t)
	m.create(t, jobSet("end"))
	failures := requests()
	t.Logf("%d connections to the old server; %d of them and %d requests failed", made, len(refused), len(failures))
	if err := errors.Join(append(failures, refused...)...); err != nil {
		t.Error(err)
	}
	m.awaitCount(t, 2)
}

// moveTo makes kube-apiserver use another server, as a Service does when its endpoints change.
func (m *managed) moveTo(t *testing.T, port int) {
	t.Helper()
	for _, group := range apiservice.Groups {
		patch := fmt.Sprintf(`{"spec":{"service":{"port":%d}}}`, port)
		if _, err := plane.Dynamic.Resource(apiservice.Resource).Patch(t.Context(), apiservice.Name(group), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch := fmt.Sprintf(`{"webhooks":[{"name":"mpod.kb.io","clientConfig":{"service":{"port":%d}}}]}`, port)
	webhooks := plane.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations()
	if _, err := webhooks.Patch(t.Context(), apiservice.WebhookName, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
