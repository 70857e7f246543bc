// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"errors"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/outage"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

func forbidden(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
}

func recorded(t *testing.T, refusal *witness.Refusal) *corev1.ConfigMap {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: witness.Namespace, Name: witness.Name}}
	if err := (&witness.Record{UUID: "uuid", Floor: 1, Refusal: refusal}).Write(cm); err != nil {
		t.Fatal(err)
	}
	return cm
}

func TestExplain(t *testing.T) {
	sequences := schema.GroupResource{Group: cli.SequentialJob.GroupVersion.Group, Resource: "sequentialjobs"}
	sets := schema.GroupResource{Group: cli.JobSet.GroupVersion.Group, Resource: "jobsets"}
	answer := func(code int, of schema.GroupResource) error {
		return apierrors.NewGenericServerResponse(code, "get", of, "train", "", 0, true)
	}
	const (
		away   = "the server is currently unable to handle the request (get jobsets.jobset.x-k8s.io train)"
		silent = "APIService v1alpha2.jobset.x-k8s.io: Available is False (MissingEndpoints): endpoints have no addresses"
	)
	refusal := &witness.Refusal{Reason: witness.ReasonForeignStore, Message: "The store\nis foreign.", Server: "host-1", Time: metav1.NewTime(time.Now().Add(-90 * time.Second))}
	ofGroup := func(kind cli.Kind) *witness.Refusal {
		r := *refusal
		r.Groups = []string{kind.GroupVersion.Group}
		return &r
	}
	service := func(kind cli.Kind) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": outage.Name(kind)},
			"status": map[string]any{"conditions": []any{map[string]any{
				"type": "Available", "status": "False", "reason": "MissingEndpoints", "message": "endpoints have no addresses",
			}}},
		}}
	}
	for name, tc := range map[string]struct {
		err     error
		record  *corev1.ConfigMap
		service *unstructured.Unstructured
		refused map[string]error
		want    string
	}{
		"an error about something else": {
			err: apierrors.NewNotFound(sets, "train"), record: recorded(t, refusal), want: `jobsets.jobset.x-k8s.io "train" not found`,
		},
		"the server refuses": {
			err: answer(http.StatusServiceUnavailable, sets), record: recorded(t, refusal), service: service(cli.JobSet),
			want: away + "\njobset-apiserver refuses to serve its store (ForeignStore, confirmed by host-1 90s ago): The store is foreign.",
		},
		"the server refuses the group": {
			err: answer(http.StatusServiceUnavailable, sets), record: recorded(t, ofGroup(cli.JobSet)), service: service(cli.JobSet),
			want: away + "\njobset-apiserver refuses to serve jobset.x-k8s.io (ForeignStore, confirmed by host-1 90s ago): The store is foreign.",
		},
		"the server refuses another group": {
			err: answer(http.StatusServiceUnavailable, sets), record: recorded(t, ofGroup(cli.SequentialJob)), service: service(cli.JobSet),
			want: away + "\n" + silent + "; no server has recorded in ConfigMap kube-system/jobset-apiserver-store that it refuses to serve, so it does not run, or kube-apiserver does not reach it",
		},
		"the group is not served, and the server refuses": {
			err: answer(http.StatusNotFound, sets), record: recorded(t, refusal),
			want: "the server could not find the requested resource (get jobsets.jobset.x-k8s.io train)\njobset-apiserver refuses to serve its store (ForeignStore, confirmed by host-1 90s ago): The store is foreign.",
		},
		"the server is down": {
			err: answer(http.StatusServiceUnavailable, sets), record: recorded(t, nil), service: service(cli.JobSet),
			want: away + "\n" + silent + "; no server has recorded in ConfigMap kube-system/jobset-apiserver-store that it refuses to serve, so it does not run, or kube-apiserver does not reach it",
		},
		"the server of sequences is down": {
			err: answer(http.StatusServiceUnavailable, sequences), record: recorded(t, nil), service: service(cli.SequentialJob),
			want: "the server is currently unable to handle the request (get sequentialjobs.batch.jobset-apiserver.io train)\nAPIService v1alpha1.batch.jobset-apiserver.io: Available is False (MissingEndpoints): endpoints have no addresses; " +
				"no server has recorded in ConfigMap kube-system/jobset-apiserver-store that it refuses to serve, so it does not run, or kube-apiserver does not reach it",
		},
		"there is no record": {
			err: answer(http.StatusServiceUnavailable, sets), service: service(cli.JobSet),
			want: away + "\n" + silent + "; no server has recorded that it refuses to serve: there is no ConfigMap kube-system/jobset-apiserver-store",
		},
		"the user may read neither": {
			err: answer(http.StatusServiceUnavailable, sets), record: recorded(t, refusal), service: service(cli.JobSet),
			refused: map[string]error{"configmaps": forbidden("configmaps"), "apiservices": forbidden("apiservices")},
			want: away + "\nyou have no permission to read APIService v1alpha2.jobset.x-k8s.io; if jobset-apiserver refuses to serve, ConfigMap kube-system/jobset-apiserver-store has the reason, " +
				"which you have no permission to read; ask an administrator of the cluster to run `kubectl jobset doctor`",
		},
		"neither can be read": {
			err: answer(http.StatusServiceUnavailable, sets), refused: map[string]error{"configmaps": errors.New("broken"), "apiservices": errors.New("torn")},
			want: away + "\nAPIService v1alpha2.jobset.x-k8s.io could not be read: torn; whether jobset-apiserver refuses to serve is not known: broken",
		},
		"nothing is installed": {
			err:  answer(http.StatusNotFound, sets),
			want: "the server could not find the requested resource (get jobsets.jobset.x-k8s.io train): the cluster does not serve jobset.x-k8s.io/v1alpha2; ask `kubectl get apiservice v1alpha2.jobset.x-k8s.io`",
		},
	} {
		t.Run(name, func(t *testing.T) {
			kube := kubefake.NewClientset()
			if tc.record != nil {
				kube = kubefake.NewClientset(tc.record)
			}
			var services []runtime.Object
			if tc.service != nil {
				services = append(services, tc.service)
			}
			dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
				map[schema.GroupVersionResource]string{outage.APIServices: "APIServiceList"}, services...)
			for resource, err := range tc.refused {
				refuse := func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err }
				kube.PrependReactor("*", resource, refuse)
				dynamic.PrependReactor("*", resource, refuse)
			}
			c := &cli.Clients{Kube: kube, Dynamic: dynamic}
			err := outage.Explain(t.Context(), c, tc.err, outage.Kinds()...)
			if again := outage.Explain(t.Context(), c, err, outage.Kinds()...); again != err {
				t.Errorf("explained twice: %v", again)
			}
			got := age.ReplaceAllString(cli.Explain(err, outage.Kinds()...), "confirmed by host-1 90s ago")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

// age is of a refusal that was confirmed 90 seconds before the test looks, or a little longer.
var age = regexp.MustCompile(`confirmed by host-1 \d+s ago`)

func TestConfirmed(t *testing.T) {
	now := time.Now()
	for age, want := range map[time.Duration]string{
		2 * time.Minute:  "confirmed by host-1 2m ago",
		14 * time.Minute: "last confirmed by host-1 14m ago; it may be over, that server may not run, or its clock may be wrong",
	} {
		r := &witness.Refusal{Server: "host-1\n", Time: metav1.NewTime(now.Add(-age))}
		if got := outage.Confirmed(r, now); got != want {
			t.Errorf("after %s: %q, want %q", age, got, want)
		}
	}
}
