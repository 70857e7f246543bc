// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// refusing is a cluster whose server refuses to serve: kube-apiserver answers for it, in plain text.
func refusing(t *testing.T) *httptest.Server {
	t.Helper()
	cm := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: witness.Namespace, Name: witness.Name},
	}
	record := &witness.Record{UUID: "uuid", Floor: 1, Refusal: &witness.Refusal{Reason: witness.ReasonEmptyStore, Message: "The store is empty.", Time: metav1.Now()}}
	if err := record.Write(cm); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any
		switch {
		case strings.HasPrefix(r.URL.Path, "/apis/jobset.x-k8s.io/"), strings.HasPrefix(r.URL.Path, "/apis/batch.jobset-apiserver.io/"),
			strings.HasPrefix(r.URL.Path, "/apis/leaderworkerset.x-k8s.io/"):
			http.Error(w, "service unavailable", http.StatusServiceUnavailable)
			return
		case r.URL.Path == "/api/v1/namespaces/kube-system/configmaps/jobset-apiserver-store":
			answer = cm
		case r.URL.Path == "/version":
			answer = map[string]string{"gitVersion": "v1.36.3"}
		default:
			w.WriteHeader(http.StatusNotFound)
			answer = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestErrorsOfAllCommandsSayWhyTheServerRefuses(t *testing.T) {
	s := refusing(t)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"list", "tree train", "tree sqj/etl", "tree lws/vllm", "top train", "top lws/vllm", "timeline train", "timeline sqj/etl", "timeline lws/vllm", "logs train", "events train", "why train", "why sqj/etl", "why lws/vllm",
		"restart train", "suspend train eval", "resume train", "cancel sqj/etl", "retry train", "groups", "version", "doctor",
	} {
		t.Run(line, func(t *testing.T) {
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			cmd := kubectl.NewCommand(streams)
			cmd.SetArgs(append(strings.Fields(line), "--server="+s.URL, "--kubeconfig="+config))
			err := cmd.ExecuteContext(t.Context())
			if err == nil && line != "version" {
				t.Error("the command did not fail")
			}
			said := out.String() + errOut.String()
			if err != nil {
				said += kubectl.Explain(err)
			}
			if n := strings.Count(said, "The store is empty."); n != 1 {
				t.Errorf("the paragraph of the server was shown %d times, want once:\n%s", n, said)
			}
		})
	}
}
