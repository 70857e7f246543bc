// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver tests the API server as its users meet it: the real program, with a real etcd, behind a real
// kube-apiserver.
package apiserver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	typedv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// plane is the main cluster of all tests of this package.
var plane *framework.ControlPlane

var jobsets = jobsetv1alpha2.SchemeGroupVersion.WithResource("jobsets")

func TestMain(m *testing.M) {
	framework.Main(m, "integration", func(p *framework.ControlPlane) { plane = p })
}

// env is what a case works with: a server and a namespace of its own.
type env struct {
	server    *framework.Server
	config    *rest.Config
	namespace string
	// typed speaks protobuf, dynamic speaks JSON.
	typed   typedv1alpha2.JobSetInterface
	dynamic dynamic.ResourceInterface
}

// newEnv makes a namespace and clients for it. The config decides whether requests go through kube-apiserver.
func newEnv(t testing.TB, server *framework.Server, config *rest.Config) *env {
	t.Helper()
	namespace, err := plane.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e := &env{server: server, config: config, namespace: namespace.Name}
	e.typed = clientset(t, config).JobSets(e.namespace)
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	e.dynamic = untyped.Resource(jobsets).Namespace(e.namespace)
	return e
}

// clientset speaks protobuf.
func clientset(t testing.TB, config *rest.Config) typedv1alpha2.JobsetV1alpha2Interface {
	t.Helper()
	return protobufClients(t, config).JobsetV1alpha2()
}

// protobufClients returns clients that send protobuf.
func protobufClients(t testing.TB, config *rest.Config) versioned.Interface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

// jobSet returns a small JobSet with one group of workers.
func jobSet(name string, change ...func(*jobsetv1alpha2.JobSet)) *jobsetv1alpha2.JobSet {
	js := builders.JobSet(name, builders.WithJobs("workers", 2, 3))
	js.Namespace = ""
	for _, f := range change {
		f(js)
	}
	return js
}

// create stores a JobSet and fails the test when that is refused.
func (e *env) create(t testing.TB, js *jobsetv1alpha2.JobSet) *jobsetv1alpha2.JobSet {
	t.Helper()
	created, err := e.typed.Create(t.Context(), js, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func (e *env) get(t testing.TB, name string) *jobsetv1alpha2.JobSet {
	t.Helper()
	js, err := e.typed.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return js
}
