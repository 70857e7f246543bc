// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestOldMainCluster runs the server against a main cluster that does not serve mutating policies in v1, as releases
// before 1.36. Writes must go on, and an operator must be told once.
func TestOldMainCluster(t *testing.T) {
	tier.OnRequest(t, "needs the programs of an older Kubernetes")
	f := fixture{t: t}
	kubeconfig := f.write("kubeconfig", kubeconfigFor(oldMainCluster(t)))
	server := plane.StartServer(t, append(framework.Embedded(framework.ShortDir(t)), "--kubeconfig="+kubeconfig)...)
	e := newEnv(t, server, server.Config(t))
	e.create(t, jobSet("a"))
	var lines []string
	for _, line := range strings.Split(server.Log(), "\n") {
		if strings.Contains(line, "Admission plugin is off") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 1 || !strings.Contains(lines[0], `plugin="MutatingAdmissionPolicy"`) {
		t.Errorf("lines about plugins are %q", lines)
	}
}

// oldMainCluster forwards to the main cluster as our server would, and hides mutating policies.
func oldMainCluster(t *testing.T) string {
	t.Helper()
	user, err := plane.AddUser(framework.ServerUser, "system:serviceaccounts", "system:serviceaccounts:jobset-system", "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(user.Config())
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(plane.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Authorization")
			if r.In.URL.Path == discoveryPath {
				r.Out.Header.Set("Accept", "application/json")
				r.Out.Header.Del("Accept-Encoding")
			}
		},
		ModifyResponse: hidePolicies,
		FlushInterval:  -1,
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		if strings.HasPrefix(req.URL.Path, discoveryPath+"/mutatingadmissionpol") {
			http.NotFound(rw, req)
			return
		}
		proxy.ServeHTTP(rw, req)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server.URL
}

const discoveryPath = "/apis/admissionregistration.k8s.io/v1"

func hidePolicies(response *http.Response) error {
	if response.Request.URL.Path != discoveryPath {
		return nil
	}
	var list metav1.APIResourceList
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return err
	}
	list.APIResources = slices.DeleteFunc(list.APIResources, func(resource metav1.APIResource) bool {
		return strings.HasPrefix(resource.Name, "mutatingadmissionpol")
	})
	content, err := json.Marshal(list)
	if err != nil {
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(content))
	response.ContentLength = int64(len(content))
	response.Header.Set("Content-Length", strconv.Itoa(len(content)))
	return nil
}
