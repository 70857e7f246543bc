// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"bytes"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

const (
	oldUUID = "11111111-1111-4111-8111-111111111111"
	newUUID = "22222222-2222-4222-8222-222222222222"
	lostUID = types.UID("33333333-3333-4333-8333-333333333333")
)

// mainCluster is what the commands see.
type mainCluster struct {
	t        *testing.T
	kube     *fake.Clientset
	metadata metadata.Interface
	dynamic  dynamic.Interface
	// in is the standard input.
	in *bytes.Buffer
}

func newCluster(t *testing.T, objects ...runtime.Object) *mainCluster {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kube := fake.NewClientset()
	kube.Resources = []*metav1.APIResourceList{
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "statefulsets"}, {Name: "controllerrevisions"}}},
		{GroupVersion: "scheduling.volcano.sh/v1beta1", APIResources: []metav1.APIResource{{Name: "podgroups"}}},
	}
	return &mainCluster{t: t, kube: kube, metadata: metadatafake.NewSimpleMetadataClient(scheme, objects...), in: &bytes.Buffer{}}
}

// with stores a record.
func (m *mainCluster) with(record witness.Record) *mainCluster {
	m.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: witness.Namespace, Name: witness.Name}}
	if err := record.Write(cm); err != nil {
		m.t.Fatal(err)
	}
	return m.store(cm)
}

// losing stores a list of lost owners.
func (m *mainCluster) losing(list witness.LostOwners) *mainCluster {
	m.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: witness.Namespace, Name: witness.LostOwnersName}}
	list.Write(cm)
	return m.store(cm)
}

func (m *mainCluster) store(cm *corev1.ConfigMap) *mainCluster {
	m.t.Helper()
	if err := m.kube.Tracker().Add(cm); err != nil {
		m.t.Fatal(err)
	}
	return m
}

// record reads the record.
func (m *mainCluster) record() *witness.Record {
	m.t.Helper()
	cm, err := m.kube.CoreV1().ConfigMaps(witness.Namespace).Get(m.t.Context(), witness.Name, metav1.GetOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	record, err := witness.Read(cm)
	if err != nil {
		m.t.Fatal(err)
	}
	return record
}

// result is what became of a command.
type result struct {
	out, errOut, message string
	code                 int
}

// run runs a command, and ends as the program does.
func (m *mainCluster) run(args ...string) result {
	m.t.Helper()
	var out, errOut bytes.Buffer
	cmd := newCommand(genericiooptions.IOStreams{In: m.in, Out: &out, ErrOut: &errOut}, func(*genericclioptions.ConfigFlags) (*clients, error) {
		return &clients{m.kube, m.metadata, m.dynamic}, nil
	})
	cmd.SetArgs(args)
	cmd.SetContext(m.t.Context())
	r := result{}
	err := cmd.Execute()
	var code ExitCode
	switch {
	case errors.As(err, &code):
		r.code = int(code)
	case err != nil:
		r.code, r.message = 1, err.Error()
	}
	r.out, r.errOut = out.String(), errOut.String()
	return r
}

// testNow is when tests look.
var testNow = time.Unix(1_700_000_000, 0)

// refusal is the refusal of an empty store, confirmed some time before testNow.
func refusal(ago time.Duration) *witness.Refusal {
	return &witness.Refusal{
		Reason: witness.ReasonEmptyStore, Message: "What was found, what is at stake, and what to do.", Server: "jobset-apiserver-0",
		Time: metav1.NewTime(testNow.Add(-ago)), NewUUID: newUUID, Revision: 7, JobsAtStake: 2, Jobs: []string{"ns/a", "ns/b"},
	}
}

// object is one of the main cluster, with owners.
func object(apiVersion, kind, name string, references ...metav1.OwnerReference) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name), OwnerReferences: references},
	}
}

func job(name string, references ...metav1.OwnerReference) *metav1.PartialObjectMetadata {
	return object("batch/v1", "Job", name, references...)
}

// renewed makes another object of the same name of it.
func renewed(object *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	object.UID += "-2"
	return object
}

func reference(apiVersion, kind string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "owner", UID: uid}
}

// jobSetOwner is a reference to a JobSet.
func jobSetOwner(uid types.UID) metav1.OwnerReference {
	return reference("jobset.x-k8s.io/v1alpha2", "JobSet", uid)
}

// configMap puts a record into a stored ConfigMap.
func configMap(t *testing.T, record witness.Record, stored runtime.Object) *corev1.ConfigMap {
	t.Helper()
	cm := stored.(*corev1.ConfigMap).DeepCopy()
	if err := record.Write(cm); err != nil {
		t.Fatal(err)
	}
	return cm
}
