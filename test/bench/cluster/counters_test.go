// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/testutil"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/handover"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/peers"
)

const ofClient = `# TYPE rest_client_requests_total counter
rest_client_requests_total{code="200",host="127.0.0.1:6443",method="GET"} 3
rest_client_requests_total{code="201",host="localhost:6443",method="POST"} 4
rest_client_requests_total{code="409",host="127.0.0.1:6443",method="POST"} 1
rest_client_requests_total{code="200",host="[::1]:8443",method="GET"} 90
`

func metricsOfText(t *testing.T, text string) testutil.Metrics {
	t.Helper()
	metrics := testutil.NewMetrics()
	if err := testutil.ParseMetrics(text, &metrics); err != nil {
		t.Fatal(err)
	}
	return metrics
}

// TestSentRequestsAreThoseToKubeAPIServer leaves out those of a server to itself.
func TestSentRequestsAreThoseToKubeAPIServer(t *testing.T) {
	if d := cmp.Diff(Calls{"GET": 3, "POST": 5}, sentTo(metricsOfText(t, ofClient), "6443")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestServedRequestsHaveTheCallsOfWebhooks(t *testing.T) {
	const text = `# TYPE apiserver_request_total counter
apiserver_request_total{code="201",resource="pods",subresource="",verb="POST"} 2
apiserver_request_total{code="200",resource="jobs",subresource="status",verb="PUT"} 3
apiserver_request_total{code="200",resource="",subresource="",verb="GET"} 9
# TYPE apiserver_admission_webhook_request_total counter
apiserver_admission_webhook_request_total{code="200",name="mpod.kb.io",operation="CREATE",rejected="false",type="admit"} 2
apiserver_admission_webhook_request_total{code="403",name="mpod.kb.io",operation="UPDATE",rejected="true",type="admit"} 1
`
	want := Calls{"POST pods": 2, "PUT jobs/status": 3, "WEBHOOK mpod.kb.io": 3}
	if d := cmp.Diff(want, servedBy(metricsOfText(t, text))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestSendersOfUpstream has a metrics port for each program of upstream, and one that kube-controller-manager was started with.
func TestSendersOfUpstream(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, ofClient) }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := newDir(t)
	c.Upstream, c.config = true, &rest.Config{Host: "https://127.0.0.1:6443"}
	for _, name := range []string{"jobset", "lws"} {
		c.upstream = append(c.upstream, &handover.Controller{Peer: &peers.Peer{Name: name}, MetricsPort: port})
	}
	program := exec.Command("sh", "-c", "echo; read line", "--secure-port="+port)
	input, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = input.Close() // which ends it
		_ = program.Wait()
	}()
	if _, err := output.Read(make([]byte, 1)); err != nil { // a process that has just been started may have no command line for a moment
		t.Fatal(err)
	}
	for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
		write(t, filepath.Join(c.Dir, "pids", name+".pid"), fmt.Sprint(program.Process.Pid))
	}
	senders := []string{"kube-controller-manager", "kube-scheduler", "upstream-jobset", "upstream-lws"}
	if d := cmp.Diff(senders, c.senders()); d != "" {
		t.Errorf("programs (-want +got):\n%s", d)
	}
	for _, name := range senders {
		if got, err := c.sent(t.Context(), name); err != nil || got["POST"] != 5 {
			t.Errorf("%s: %v, error %v", name, got, err)
		}
	}
}

// TestAuditLogHasTheControllersOfBothSides compares the users of the policy with those that are counted.
func TestAuditLogHasTheControllersOfBothSides(t *testing.T) {
	policy, err := os.ReadFile(filepath.Join("..", "testdata", "audit-policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range append((&Cluster{}).controllers(), (&Cluster{Upstream: true}).controllers()...) {
		if !strings.Contains(string(policy), `"`+user+`"`) {
			t.Errorf("requests of %s are not in the audit log", user)
		}
	}
}
