// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	uidadmission "github.com/jobset-apiserver/jobset-apiserver/pkg/admission/namespaceuid"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
)

func namespace(uid string, phase corev1.NamespacePhase) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: types.UID(uid)}, Status: corev1.NamespaceStatus{Phase: phase}}
}

// newSet returns a set with a copy of the annotations, because admission changes them.
func newSet(annotations map[string]string) *jobset.JobSet {
	return &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train", Annotations: maps.Clone(annotations)}}
}

func recordedAs(uid string) map[string]string {
	return map[string]string{namespaceuid.Annotation: uid, "mine": "x"}
}

func TestAdmit(t *testing.T) {
	sets := jobset.Resource("jobsets")
	for name, tc := range map[string]struct {
		resource       schema.GroupResource
		subresource    string
		cached, live   *corev1.Namespace
		liveErr        error
		before, object *jobset.JobSet // before is nil at creation
		want           string
	}{
		"a new set":                                    {cached: namespace("new", corev1.NamespaceActive), object: newSet(nil), want: "new"},
		"a new set that says where it is from":         {cached: namespace("new", corev1.NamespaceActive), object: newSet(recordedAs("old")), want: "new"},
		"the namespace is not in the cache yet":        {live: namespace("new", corev1.NamespaceActive), object: newSet(nil), want: "new"},
		"the cache has the namespace before":           {cached: namespace("old", corev1.NamespaceTerminating), live: namespace("new", corev1.NamespaceActive), object: newSet(nil), want: "new"},
		"the namespace cannot be read":                 {liveErr: apierrors.NewInternalError(context.DeadlineExceeded), object: newSet(recordedAs("old")), want: ""},
		"a step of a sequence":                         {resource: batch.Resource("sequentialjobs"), cached: namespace("new", corev1.NamespaceActive), object: newSet(nil), want: "new"},
		"another resource":                             {resource: batch.Resource("podreadinessgroups"), cached: namespace("new", corev1.NamespaceActive), object: newSet(nil), want: ""},
		"a status":                                     {subresource: "status", cached: namespace("new", corev1.NamespaceActive), before: newSet(recordedAs("old")), object: newSet(nil), want: ""},
		"an update that keeps it":                      {cached: namespace("new", corev1.NamespaceActive), before: newSet(recordedAs("old")), object: newSet(recordedAs("old")), want: "old"},
		"an update that lacks it":                      {cached: namespace("new", corev1.NamespaceActive), before: newSet(recordedAs("old")), object: newSet(nil), want: "old"},
		"an update to something else":                  {cached: namespace("new", corev1.NamespaceActive), before: newSet(recordedAs("old")), object: newSet(recordedAs("x")), want: "old"},
		"an update to the present namespace":           {cached: namespace("new", corev1.NamespaceActive), before: newSet(recordedAs("old")), object: newSet(recordedAs("new")), want: "new"},
		"an update of a set of a version without it":   {cached: namespace("new", corev1.NamespaceActive), before: newSet(nil), object: newSet(recordedAs("x")), want: ""},
		"such a set is confirmed":                      {cached: namespace("new", corev1.NamespaceActive), before: newSet(nil), object: newSet(recordedAs("new")), want: "new"},
		"an update while the namespace cannot be read": {liveErr: apierrors.NewInternalError(context.DeadlineExceeded), before: newSet(recordedAs("old")), object: newSet(recordedAs("new")), want: "old"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			if tc.live != nil {
				objects = append(objects, tc.live)
			}
			client := fake.NewClientset(objects...)
			if tc.liveErr != nil {
				client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.liveErr })
			}
			factory := informers.NewSharedInformerFactory(client, 0)
			plugin := uidadmission.New()
			plugin.SetExternalKubeClientSet(client)
			plugin.SetExternalKubeInformerFactory(factory)
			if err := plugin.ValidateInitialization(); err != nil {
				t.Fatal(err)
			}
			if tc.cached != nil {
				if err := factory.Core().V1().Namespaces().Informer().GetStore().Add(tc.cached); err != nil {
					t.Fatal(err)
				}
			}
			resource := sets
			if tc.resource.Resource != "" {
				resource = tc.resource
			}
			operation, old := admission.Create, runtime.Object(nil)
			if tc.before != nil {
				operation, old = admission.Update, tc.before
			}
			attributes := admission.NewAttributesRecord(tc.object, old, jobset.Kind("JobSet").WithVersion("v1alpha2"), "team", "train", resource.WithVersion("v1alpha2"), tc.subresource, operation, nil, false, nil)
			if err := plugin.Admit(t.Context(), attributes, nil); err != nil {
				t.Fatal(err)
			}
			if got := tc.object.Annotations[namespaceuid.Annotation]; got != tc.want {
				t.Errorf("the annotation is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestPluginNeedsTheMainAPI(t *testing.T) {
	if err := uidadmission.New().ValidateInitialization(); err == nil {
		t.Error("a plugin without a client is taken as complete")
	}
}
