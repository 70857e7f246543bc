// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// upstreamMetrics are the series that upstream's rules and dashboards look for, up to where values of our own begin.
var upstreamMetrics = []string{
	`controller_runtime_reconcile_total{controller="jobset",result="success"}`,
	`controller_runtime_reconcile_total{controller="jobset",result="requeue_after"}`,
	`controller_runtime_reconcile_total{controller="jobset",result="error"}`,
	`controller_runtime_reconcile_panics_total{controller="jobset"}`,
	`controller_runtime_max_concurrent_reconciles{controller="jobset"}`,
	`controller_runtime_active_workers{controller="jobset"}`,
	`controller_runtime_reconcile_errors_total{controller="jobset"}`,
	`controller_runtime_reconcile_time_seconds_bucket{controller="jobset",`,
	`workqueue_depth{name="jobset"}`,
	`workqueue_adds_total{name="jobset"}`,
	`workqueue_queue_duration_seconds_bucket{name="jobset",`,
	`workqueue_work_duration_seconds_bucket{name="jobset",`,
	`workqueue_unfinished_work_seconds{name="jobset"}`,
	`workqueue_longest_running_processor_seconds{name="jobset"}`,
	`workqueue_retries_total{name="jobset"}`,
	`rest_client_requests_total{code="200",`,
	`go_goroutines`,
	`go_memstats_alloc_bytes`,
	`process_cpu_seconds_total`,
	`process_resident_memory_bytes`,
}

func TestRow7_1_31_Prometheus(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.example("prometheus")
	e.example("simple-ttl-after-finished")
	e.awaitGone("short-lived")
	e.example("failure-policy-failjobset")
	e.awaitFailed("final", "FailJobSetFailurePolicyAction")
	bindings := shared.Kube.RbacV1().ClusterRoleBindings()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace + "-metrics"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "parity-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "prometheus", Namespace: e.namespace}},
	}
	if code, _ := e.scrape(); code != http.StatusForbidden {
		t.Errorf("without the role: status %d, want 403", code)
	}
	if _, err := bindings.Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	want := append([]string{
		fmt.Sprintf("jobset_completed_total{jobset_name=%q,namespace=%q} 1", "short-lived", e.namespace),
		fmt.Sprintf("jobset_failed_total{jobset_name=%q,namespace=%q} 1", "final", e.namespace),
	}, upstreamMetrics...)
	e.eventually(func() string {
		code, body := e.scrape()
		if code != http.StatusOK {
			return fmt.Sprintf("status %d", code)
		}
		var missing []string
		for _, series := range want {
			if !strings.Contains(body, "\n"+series) {
				missing = append(missing, series)
			}
		}
		if len(missing) > 0 {
			return "no lines that begin with\n" + strings.Join(missing, "\n")
		}
		return ""
	})
}

// scrape asks the controller for its metrics, with a token of the service account of the example.
func (e *env) scrape() (int, string) {
	e.Helper()
	token, err := shared.Kube.CoreV1().ServiceAccounts(e.namespace).CreateToken(e.Context(), "prometheus",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		e.Fatal(err)
	}
	port, err := os.ReadFile(filepath.Join(shared.Dir, "ports", "controller-metrics"))
	if err != nil {
		e.Fatal(err)
	}
	url := "https://127.0.0.1:" + strings.TrimSpace(string(port)) + "/metrics"
	request, err := http.NewRequestWithContext(context.WithoutCancel(e.Context()), http.MethodGet, url, nil)
	if err != nil {
		e.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token.Status.Token)
	// The certificate is self-signed, as upstream's is, whose monitor does not verify it either.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		e.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		e.Fatal(err)
	}
	return response.StatusCode, string(body)
}
