// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/mainapi"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/storecheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/tls/servingcert"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// secretServer is an API server with the Secret of the members.
type secretServer struct {
	mu     sync.Mutex
	secret corev1.Secret
}

func (s *secretServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if req.URL.Query().Get("watch") != "" {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-req.Context().Done()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch update := (corev1.Secret{}); {
	case req.URL.Path != "/api/v1/namespaces/ns/secrets/certs-peers":
		w.WriteHeader(http.StatusNotFound)
		return
	case req.Method != http.MethodPut:
	case json.NewDecoder(req.Body).Decode(&update) != nil || update.ResourceVersion != s.secret.ResourceVersion:
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(apierrors.NewConflict(corev1.Resource("secrets"), s.secret.Name, nil).Status())
		return
	default:
		s.secret.Data, s.secret.ResourceVersion = update.Data, s.secret.ResourceVersion+"1"
	}
	_ = json.NewEncoder(w).Encode(s.secret)
}

// newMain returns clients of a main cluster with an empty Secret and no record of a store.
func newMain(t *testing.T) *mainapi.Clients {
	t.Helper()
	server := httptest.NewServer(&secretServer{secret: corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "certs-peers", ResourceVersion: "1"},
	}})
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	dynamics, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	kube := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: witness.Namespace, UID: "cluster"}})
	return &mainapi.Clients{Config: config, Kube: kube, Dynamic: dynamics}
}

// newMember returns a server of the cluster and its member, which has not started.
func newMember(t *testing.T, dir string, hosts []string, ordinal int) (*run, *etcd.Server) {
	t.Helper()
	storage := options.NewStorageOptions()
	storage.DataDir, storage.Members, storage.PodName = filepath.Join(dir, strconv.Itoa(ordinal)), hosts, fmt.Sprintf("js-%d", ordinal)
	r := &run{Options: &options.Options{
		Storage: storage, ManagedCert: options.ManagedCertOptions{Secret: "ns/certs", Policy: servingcert.DefaultPolicy},
		Recommended: &genericoptions.RecommendedOptions{
			Etcd:          genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig(options.EtcdPrefix, nil)),
			SecureServing: (&genericoptions.SecureServingOptions{BindAddress: net.ParseIP(hosts[ordinal])}).WithLoopback(),
		},
	}}
	store, err := openStore(r.Options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return r, store
}

// unheard takes events.
type unheard struct{}

func (unheard) Record(provider.Event) {}

// newGuard returns the check of the store that a server has.
func newGuard(t *testing.T, r *run, store *etcd.Server, main *mainapi.Clients) *storecheck.Guard {
	t.Helper()
	guard, err := storecheck.New(storecheck.Config{
		Transport: r.guardTransport(), Prefix: options.EtcdPrefix, Main: main.Kube, Recorder: unheard{}, Version: "v1",
		Routes:      func(context.Context) (map[string]storecheck.Route, error) { return nil, nil },
		Owners:      func(context.Context, sets.Set[string]) (owners.Report, error) { return owners.Report{}, nil },
		Definitions: func(context.Context, sets.Set[string]) ([]owners.Definition, error) { return nil, nil },
		Created:     func(context.Context, string) (bool, error) { return false, nil },
		Cluster:     witness.NewCluster(store.ClusterID()), Members: store.Members,
	})
	if err != nil {
		t.Error(err)
	}
	return guard
}

// TestServersFormACluster starts three servers on an empty Secret, without a record of a store, until each of them may serve.
func TestServersFormACluster(t *testing.T) {
	dir, err := os.MkdirTemp("", "js-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	main, pid := newMain(t), os.Getpid()
	var hosts []string
	for i := range 3 {
		hosts = append(hosts, fmt.Sprintf("127.%d.%d.%d", 1+pid>>8%250, pid%256, 250+i))
	}
	started := make(chan error)
	for ordinal := range hosts {
		r, store := newMember(t, dir, hosts, ordinal)
		go func() {
			if err := r.startMember(t.Context(), store, main, unheard{}); err != nil {
				started <- err
				return
			}
			guard := newGuard(t, r, store, main)
			t.Cleanup(func() { guard.Close(t.Context()) })
			go func() { _ = guard.Run(t.Context()) }()
			for !guard.Serving() && t.Context().Err() == nil {
				time.Sleep(10 * time.Millisecond)
			}
			started <- guard.Verify(t.Context())
		}()
	}
	for range hosts {
		if err := <-started; err != nil {
			t.Fatal(err)
		}
	}
	record, err := readRecord(t.Context(), main.Kube)
	if err != nil || record.Cluster == nil {
		t.Fatalf("record %+v, %v", record, err)
	}
}

// TestServerIsReadyWhileItsMemberAnswers: it is alive, whatever its store does.
func TestServerIsReadyWhileItsMemberAnswers(t *testing.T) {
	dir, err := os.MkdirTemp("", "js-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	r, _ := newMember(t, dir, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}, 1)
	transport := storagebackend.TransportConfig{ServerList: []string{"http://127.0.0.1:2379", "http://" + r.ownMember()}}
	if r.members, err = members.New(t.Context(), transport, options.EtcdPrefix); err != nil {
		t.Fatal(err)
	}
	config := &server.Config{}
	config.AddHealthChecks(healthz.NamedCheck("etcd", nil), healthz.NamedCheck("other", nil))
	r.applyMemberChecks(config)
	for name, checks := range map[string][]healthz.HealthChecker{"livez": config.LivezChecks, "healthz": config.HealthzChecks} {
		if len(checks) != 1 || checks[0].Name() != "other" {
			t.Errorf("%s has %d checks", name, len(checks))
		}
	}
	check := config.ReadyzChecks[len(config.ReadyzChecks)-1]
	if err := check.Check(nil); check.Name() != "embedded-etcd" || err != nil {
		t.Errorf("the check %s fails while the member answers: %v", check.Name(), err)
	}
	r.members.Distrust()
	if err := check.Check(nil); err == nil {
		t.Error("the check passes although the member does not answer")
	}
}
