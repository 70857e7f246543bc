// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestControllerMetricsAccess reads the controller's metrics with the credentials of kube-apiserver.
func TestControllerMetricsAccess(t *testing.T) {
	tier.OnRequest(t, "waits for caches of authorization")
	t.Parallel()
	k := newKubectl(t)
	port, err := os.ReadFile(filepath.Join(k.cluster.Dir, "ports", "controller-metrics"))
	if err != nil {
		t.Fatal(err)
	}
	// The certificate is self-signed.
	anybody := &rest.Config{Host: "https://127.0.0.1:" + strings.TrimSpace(string(port)), TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	with := func(token string) *rest.Config {
		config := rest.CopyConfig(anybody)
		config.BearerToken = token
		return config
	}
	answers := func(config *rest.Config, want int) func() string {
		return func() string {
			code, body := framework.Get(t, config, "/metrics")
			if code != want || strings.Contains(body, "workqueue_depth{") != (want == http.StatusOK) {
				return fmt.Sprintf("status %d, want %d: %.200s", code, want, body)
			}
			return ""
		}
	}
	k.ok("create", "serviceaccount", "prometheus")
	token := strings.TrimSpace(k.ok("create", "token", "prometheus"))
	for name, tc := range map[string]struct {
		token string
		want  int
	}{
		"no token":                             {"", http.StatusUnauthorized},
		"an invalid token":                     {"forged", http.StatusUnauthorized},
		"the token of an account without role": {token, http.StatusForbidden},
	} {
		if problem := answers(with(tc.token), tc.want)(); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
	}
	k.ok("create", "clusterrolebinding", k.namespace, "--clusterrole=jobset-metrics-reader", "--serviceaccount="+k.namespace+":prometheus")
	t.Cleanup(func() { k.run("", "delete", "clusterrolebinding", k.namespace) })
	k.eventually(answers(with(token), http.StatusOK)) // the answer of before holds for ten seconds
	admin, err := clientcmd.BuildConfigFromFlags("", k.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if admin.BearerToken != "" || len(admin.CertData) == 0 && admin.CertFile == "" {
		t.Fatal("the administrator has no client certificate")
	}
	byCertificate := rest.CopyConfig(anybody)
	byCertificate.CertFile, byCertificate.KeyFile = admin.CertFile, admin.KeyFile
	byCertificate.CertData, byCertificate.KeyData = admin.CertData, admin.KeyData
	k.eventually(answers(byCertificate, http.StatusOK))
}
