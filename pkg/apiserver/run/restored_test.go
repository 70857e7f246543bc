// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/kube-openapi/pkg/common"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/mainapi"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/kubeconfig"
)

// restoredMain has the authorities of a main cluster. It fails while the first watches begin, and comes back as it was before. Then it
// answers as kube-apiserver does: a watch from a version of the future is silent.
type restoredMain struct {
	mu        sync.Mutex
	version   int
	authority map[string]string
	// failing is closed when the first watches fail; begun has an element for each watch that has begun before.
	failing chan struct{}
	begun   chan struct{}
}

func (m *restoredMain) object() corev1.ConfigMap {
	return corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Name: authenticationConfigMap, Namespace: metav1.NamespaceSystem, ResourceVersion: strconv.Itoa(m.version),
		},
		Data: m.authority,
	}
}

func (m *restoredMain) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	query := req.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case query.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: 422, Reason: metav1.StatusReasonInvalid,
		})
	case query.Get("watch") != "":
		m.watch(w, req)
	default:
		m.mu.Lock()
		defer m.mu.Unlock()
		if req.URL.Path != "/api/v1/namespaces/kube-system/configmaps" {
			_ = json.NewEncoder(w).Encode(m.object())
			return
		}
		_ = json.NewEncoder(w).Encode(corev1.ConfigMapList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(m.version)},
			Items: []corev1.ConfigMap{m.object()},
		})
	}
}

func (m *restoredMain) watch(w http.ResponseWriter, req *http.Request) {
	select {
	case <-m.failing:
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-req.Context().Done()
	default:
		m.begun <- struct{}{}
		<-m.failing
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// changes receives a value when the authorities have changed.
type changes chan struct{}

func (c changes) Enqueue() {
	select {
	case c <- struct{}{}:
	default:
	}
}

// TestAuthoritiesOfRestoredMainCluster restores the main cluster from a backup that has the authorities from before they were replaced.
func TestAuthoritiesOfRestoredMainCluster(t *testing.T) {
	before := map[string]string{"client-ca-file": newAuthority(t), "requestheader-client-ca-file": newAuthority(t)}
	after := map[string]string{"client-ca-file": newAuthority(t), "requestheader-client-ca-file": newAuthority(t)}
	for _, authorities := range []map[string]string{before, after} {
		authorities["requestheader-allowed-names"], authorities["requestheader-username-headers"] = `["proxy"]`, `["X-Remote-User"]`
		authorities["requestheader-group-headers"], authorities["requestheader-extra-headers-prefix"] = `["X-Remote-Group"]`, `["X-Remote-Extra-"]`
	}
	main := &restoredMain{version: 100, authority: after, failing: make(chan struct{}), begun: make(chan struct{}, 100)}
	address := httptest.NewServer(main)
	t.Cleanup(address.Close)

	r := &run{Options: &options.Options{
		Recommended: &genericoptions.RecommendedOptions{Authentication: genericoptions.NewDelegatingAuthenticationOptions()},
	}}
	r.Recommended.Authentication.RemoteKubeConfigFile = kubeconfig.For(t, address.URL)
	_, codecs := apiserver.NewScheme()
	config := &apiserver.Config{Generic: server.NewRecommendedConfig(codecs)}
	config.Generic.SecureServing, config.Generic.OpenAPIConfig = &server.SecureServingInfo{}, &common.Config{}
	if err := r.applyAuthentication(t.Context(), config, mainapi.NewHold(t.Context())); err != nil {
		t.Fatal(err)
	}
	current, changed := config.Generic.SecureServing.ClientCA, make(changes, 1)
	current.AddListener(changed)
	go current.(dynamiccertificates.ControllerRunner).Run(t.Context(), 1)
	await := func(wanted map[string]string) {
		t.Helper()
		for {
			trusted := string(current.CurrentCABundleContent())
			if strings.Contains(trusted, strings.TrimSpace(wanted["client-ca-file"])) &&
				strings.Contains(trusted, strings.TrimSpace(wanted["requestheader-client-ca-file"])) {
				return
			}
			select {
			case <-changed:
			case <-t.Context().Done():
				t.Fatal("the authorities were not read again")
			}
		}
	}
	await(after)
	for range 3 { // the authority of clients, that of front proxies, and the names of front proxies
		<-main.begun
	}
	main.mu.Lock()
	main.version, main.authority = 50, before
	main.mu.Unlock()
	close(main.failing)
	await(before)
}
