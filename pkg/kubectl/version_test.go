// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	componentversion "k8s.io/component-base/version"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/version"
)

// cluster answers by path; others are NotFound.
type cluster map[string]string

const (
	kubernetesPath = "/version"
	gatesPath      = "/apis/jobset.x-k8s.io/v1alpha2/featuregates"
	leasePath      = "/apis/coordination.k8s.io/v1/namespaces/jobset-system/leases/" + helper.ControllerLease
)

func (c cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	body, found := c[r.URL.Path]
	switch {
	case !found:
		w.WriteHeader(http.StatusNotFound)
		body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"not found"}`
	case body == "forbidden":
		w.WriteHeader(http.StatusForbidden)
		body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"you may not"}`
	}
	_, _ = w.Write([]byte(body))
}

func lease(holder string) string {
	return `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"x"},"spec":{"holderIdentity":"` + holder + `"}}`
}

// outcome is what the command has done.
type outcome struct {
	Lines []string
	Err   string
}

func run(t *testing.T, url string, args ...string) outcome {
	t.Helper()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	f := cli.NewFactory(streams)
	*f.Flags.APIServer = url
	cmd := version.NewCommand(f)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetOut(&bytes.Buffer{})
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	got := outcome{}
	if text := strings.TrimSpace(out.String()); text != "" {
		got.Lines = strings.Split(text, "\n")
	}
	if err != nil {
		got.Err = err.Error()
	}
	return got
}

func TestVersion(t *testing.T) {
	own := componentversion.Get().GitVersion
	const served = `{"featureGates":{"ElasticJobSet":true,"RestartJob":false,"InPlaceRestart":false},"version":"v1.4.0"}`
	controller := func(version string) string { return lease(helper.ControllerIdentity("host", "uuid", version)) }
	client := "Client      " + own
	apart := "warning: the plugin (" + own + ") and the server (v1.4.0) are more than 1 minor version apart, which is not supported"
	gates := []string{"Gates on    ElasticJobSet", "Gates off   InPlaceRestart, RestartJob"}
	for name, tc := range map[string]struct {
		cluster cluster
		args    []string
		want    outcome
	}{
		"everything is known": {
			cluster: cluster{kubernetesPath: `{"gitVersion":"v1.36.3"}`, gatesPath: served, leasePath: controller("v1.5.0")},
			want:    outcome{Lines: append(append([]string{client, "Server      v1.4.0", "Controller  v1.5.0", "Kubernetes  v1.36.3"}, gates...), apart)},
		},
		"an ordinary user": {
			cluster: cluster{kubernetesPath: `{"gitVersion":"v1.36.3"}`, gatesPath: served, leasePath: "forbidden"},
			want: outcome{Lines: append(append([]string{client, "Server      v1.4.0", "Controller  unknown", "Kubernetes  v1.36.3"}, gates...), apart,
				"note: the version of the controller is not known: you may not")},
		},
		"upstream's server and controller": {
			cluster: cluster{kubernetesPath: `{"gitVersion":"v1.36.3"}`, leasePath: lease("host_uuid")},
			want: outcome{Lines: []string{client, "Server      unknown", "Controller  unknown", "Kubernetes  v1.36.3",
				"note: the version of the server is not known: there is no " + gatesPath + "; it is another server of JobSets, or none is installed",
				"note: the version of the controller is not known: host_uuid, which holds the lease, does not report it"}},
		},
		"no controller works": {
			cluster: cluster{kubernetesPath: `{"gitVersion":"v1.36.3"}`, gatesPath: `{"featureGates":{}}`, leasePath: lease("")},
			want: outcome{Lines: []string{client, "Server      unknown", "Controller  unknown", "Kubernetes  v1.36.3",
				"note: the version of the server is not known: it is older than this plugin, and does not report it",
				"note: the version of the controller is not known: no controller holds the lease, so that none works"}},
		},
		"another namespace": {
			args: []string{"--controller-namespace=sets"}, cluster: cluster{kubernetesPath: `{"gitVersion":"v1.36.3"}`, gatesPath: `{"version":"master"}`},
			want: outcome{Lines: []string{client, "Server      master", "Controller  unknown", "Kubernetes  v1.36.3",
				"note: the version of the controller is not known: there is no lease " + helper.ControllerLease + " in namespace sets; --controller-namespace names another one"}},
		},
		"as data": {
			args:    []string{"-o", "jsonpath={.kind} {.client} {.server} {.controller} {.featureGates.ElasticJobSet}"},
			cluster: cluster{kubernetesPath: `{"gitVersion":"v1.36.3"}`, gatesPath: served, leasePath: controller("v1.5.0")},
			want:    outcome{Lines: []string{"JobSetVersions " + own + " v1.4.0 v1.5.0 true"}},
		},
		"the client only":   {args: []string{"--client"}, want: outcome{Lines: []string{"Client  " + own}}},
		"an argument":       {args: []string{"train"}, want: outcome{Err: "train: version takes no arguments"}},
		"a bad namespace":   {args: []string{"--controller-namespace=A/b"}, want: outcome{Err: `--controller-namespace: must be the name of a namespace, not "A/b"`}},
		"an unknown format": {args: []string{"-o", "table"}, want: outcome{Err: `unable to match a printer suitable for the output format "table", allowed formats are: go-template,go-template-file,json,jsonpath,jsonpath-as-json,jsonpath-file,kyaml,template,templatefile,yaml`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(tc.cluster)
			defer s.Close()
			got := run(t, s.URL, tc.args...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoServer(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	got := run(t, s.URL)
	if !strings.HasPrefix(got.Err, "reading the version of the cluster: ") || len(got.Lines) != 4 || !strings.HasPrefix(got.Lines[0], "Client ") {
		t.Errorf("got %+v", got)
	}
}

func TestSkew(t *testing.T) {
	for name, tc := range map[string]struct {
		versions version.Versions
		want     int
	}{
		"equal":                     {version.Versions{Client: "v1.4.0", Server: "v1.4.9", Controller: "v1.4.2-dev+abc"}, 0},
		"one apart":                 {version.Versions{Client: "v1.5.0", Server: "v1.4.0", Controller: "v1.3.0"}, 0},
		"two apart":                 {version.Versions{Client: "v1.6.0", Server: "v1.4.0", Controller: "v1.2.0"}, 2},
		"another major version":     {version.Versions{Client: "v2.4.0", Server: "v1.4.0"}, 1},
		"the server is not known":   {version.Versions{Client: "v2.4.0"}, 0},
		"the server has no version": {version.Versions{Client: "v2.4.0", Server: "master"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := version.Skew(&tc.versions); len(got) != tc.want {
				t.Errorf("warnings %q, want %d", got, tc.want)
			}
		})
	}
}
