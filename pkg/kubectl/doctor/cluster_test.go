// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	jobsetfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/outage"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// cluster is what the checks look at.
type cluster struct {
	services []runtime.Object
	objects  []runtime.Object
	// sets are JobSets and SequentialJobs.
	sets []runtime.Object
	// refused are errors by resource.
	refused map[string]error
	// refusedNames are errors by the name of an APIService.
	refusedNames map[string]error
	// denied are permissions that no service account has.
	denied []string
	// definitions are CustomResourceDefinitions.
	definitions []runtime.Object
	// answers are answers by path; others are NotFound, except that for the version.
	answers map[string]answer
}

// healthPath is the path of what the server says about itself, and readyzPath that of the readiness of its pod.
const (
	healthPath = "/apis/jobset.x-k8s.io/v1alpha2/serverhealth"
	readyzPath = "/api/v1/namespaces/jobset-system/pods/https:server-0:8443/proxy/readyz?verbose"
)

// get answers like kube-apiserver whose clock is right.
func (c cluster) get(_ context.Context, path string) (answer, error) {
	if a, found := c.answers[path]; found {
		if a.code == 0 {
			return answer{}, errors.New(string(a.body))
		}
		return a, nil
	}
	if path == "/version" {
		return answer{code: http.StatusOK, body: []byte(`{"gitVersion":"v1.36.3"}`), date: time.Now()}, nil
	}
	return answer{code: http.StatusNotFound, body: []byte(`{"kind":"Status","reason":"NotFound","message":"not found"}`)}, nil
}

// examine runs all checks in the cluster.
func (c cluster) examine(ctx context.Context) *Report { return examine(ctx, c.clients(), c.get, now) }

func (c cluster) clients() *cli.Clients {
	kube := kubefake.NewClientset(c.objects...)
	dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{outage.APIServices: "APIServiceList", customResources: "CustomResourceDefinitionList"}, append(c.services, c.definitions...)...)
	kube.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		review.Status.Allowed = !slices.Contains(c.denied, describe(review.Spec.ResourceAttributes))
		return true, review, nil
	})
	sets := jobsetfake.NewClientset(c.sets...)
	for resource, err := range c.refused {
		refuse := func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err }
		kube.PrependReactor("*", resource, refuse)
		dynamic.PrependReactor("*", resource, refuse)
		sets.PrependReactor("*", resource, refuse)
	}
	dynamic.PrependReactor("get", "apiservices", func(action clienttesting.Action) (bool, runtime.Object, error) {
		err := c.refusedNames[action.(clienttesting.GetAction).GetName()]
		return err != nil, nil, err
	})
	return &cli.Clients{Namespace: "team", Kube: kube, Dynamic: dynamic, JobSets: sets}
}

// service is an APIService with the condition; without a status it has none.
func service(kind cli.Kind, status, reason, message string) *unstructured.Unstructured {
	s := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": outage.Name(kind)},
		"spec": map[string]any{"service": map[string]any{"namespace": "jobset-system", "name": "jobset-apiserver"}},
	}}
	if status != "" {
		s.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": status, "reason": reason, "message": message}}}
	}
	return s
}

// all are the APIServices of all groups.
func all(status, reason, message string) (services []runtime.Object) {
	for _, kind := range outage.Kinds() {
		services = append(services, service(kind, status, reason, message))
	}
	return services
}

func record(t *testing.T, r witness.Record) []runtime.Object {
	t.Helper()
	r.UUID, r.Floor = "uuid-1", 70
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: witness.Namespace, Name: witness.Name}}
	if err := r.Write(cm); err != nil {
		t.Fatal(err)
	}
	return []runtime.Object{cm}
}

func refusal(age time.Duration) *witness.Refusal {
	return &witness.Refusal{
		Reason: witness.ReasonEmptyStore, Message: "The store is empty.\nDo this.", Server: "host-1",
		Time: metav1.NewTime(now.Add(-age)), NewUUID: "uuid-2", Revision: 0, JobsAtStake: 3,
	}
}

// refusalOf is a refusal of groups by a server that serves others.
func refusalOf(groups ...string) *witness.Refusal {
	r := refusal(20 * time.Second)
	r.Groups = groups
	return r
}

// lost are n owners that the refused store lacks.
func lost(n int, more bool, newUUID string) runtime.Object {
	l := &witness.LostOwners{NewUUID: newUUID, More: more}
	for i := range n {
		l.Owners = append(l.Owners, types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)))
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: witness.Namespace, Name: witness.LostOwnersName}}
	l.Write(cm)
	return cm
}

// heldSets are so many JobSets that are held, one that is not, and a sequence.
func heldSets(n int, sequence metav1.ConditionStatus) []runtime.Object {
	conditions := func(kind string, status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: status}}
	}
	objects := []runtime.Object{
		&jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "free"}},
		&batchv1alpha1.SequentialJob{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "etl"}, Status: batchv1alpha1.SequentialJobStatus{Conditions: conditions(batchv1alpha1.ConditionHeld, sequence)}},
	}
	for i := range n {
		objects = append(objects, &jobsetv1alpha2.JobSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("train-%d", i)},
			Status:     jobsetv1alpha2.JobSetStatus{Conditions: conditions(jobsetv1alpha2.Held, metav1.ConditionTrue)},
		})
	}
	return objects
}

func forbidden(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
}

// find runs one check in the cluster.
func (c cluster) find(t *testing.T, name string) finding {
	t.Helper()
	i := slices.IndexFunc(checks, func(of check) bool { return of.name == name })
	if i < 0 {
		t.Fatalf("there is no check %s", name)
	}
	f := checks[i].run(t.Context(), read(t.Context(), c.clients(), c.get, now))
	f.message = cli.Clean(f.message)
	return f
}
