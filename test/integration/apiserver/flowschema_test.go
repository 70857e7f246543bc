// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestControllerRequestsHaveTheirOwnFlowSchema sends requests as the controller does.
func TestControllerRequestsHaveTheirOwnFlowSchema(t *testing.T) {
	tier.OnRequest(t, "more cases of the manifests")
	user, err := plane.AddUser("system:serviceaccount:jobset-system:jobset-controller-manager",
		"system:serviceaccounts", "system:serviceaccounts:jobset-system", "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	client, classified := classifiedClient(t, user.Config())
	for name, tc := range map[string]struct {
		schema, level string
		send          func(context.Context)
	}{
		"Jobs": {"jobset-controller", "workload-high", func(ctx context.Context) {
			_, _ = client.BatchV1().Jobs(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		}},
		"the version of the cluster": {"jobset-controller", "workload-high", func(context.Context) {
			_, _ = client.Discovery().ServerVersion()
		}},
		"its lease": {"jobset-controller-leader-election", "leader-election", func(ctx context.Context) {
			_, _ = client.CoordinationV1().Leases("jobset-system").Get(ctx, "lease", metav1.GetOptions{})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			schema, err := plane.Kube.FlowcontrolV1().FlowSchemas().Get(t.Context(), tc.schema, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if level := schema.Spec.PriorityLevelConfiguration.Name; level != tc.level {
				t.Errorf("priority level is %s, not %s", level, tc.level)
			}
			framework.Eventually(t, "the request is of the flow", func(ctx context.Context) error {
				if tc.send(ctx); classified() != schema.UID {
					return fmt.Errorf("flow schema is %q, not %s", classified(), schema.UID)
				}
				return nil
			})
		})
	}
}

// TestDelegatedRequestsAreExempt wants kube-apiserver to answer the questions of our server without queueing them
// when each belongs to a request that was let in and waits for the answer, and no others: anybody can cause those about
// tokens.
func TestDelegatedRequestsAreExempt(t *testing.T) {
	tier.OnRequest(t, "more cases of the manifests")
	schema, err := plane.Kube.FlowcontrolV1().FlowSchemas().Get(t.Context(), "jobset-apiserver-delegated", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if level := schema.Spec.PriorityLevelConfiguration.Name; level != "exempt" {
		t.Errorf("priority level is %s", level)
	}
	user, err := plane.AddUser(framework.ServerUser, "system:serviceaccounts", "system:serviceaccounts:jobset-system", "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	client, classified := classifiedClient(t, user.Config())
	questions := map[string]func() error{
		"what somebody may do": func() error {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "alice", NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
			}}
			_, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
			return err
		},
		"which volume claims exist": func() error {
			_, err := client.CoreV1().PersistentVolumeClaims("default").List(t.Context(), metav1.ListOptions{})
			return err
		},
		"whether a namespace exists": func() error {
			_, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
			return err
		},
	}
	for name, ask := range questions {
		framework.Eventually(t, name+" is exempt", func(context.Context) error {
			if err := ask(); err != nil {
				return err
			}
			if classified() != schema.UID {
				return fmt.Errorf("flow schema is %s, not %s", classified(), schema.UID)
			}
			return nil
		})
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "x"}}
	if _, err := client.AuthenticationV1().TokenReviews().Create(t.Context(), review, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if classified() == schema.UID {
		t.Error("the question who somebody is, which anybody can cause, is exempt")
	}
}

// classifiedClient returns a client of kube-apiserver, and a function that returns the UID of the flow schema of its last request.
func classifiedClient(t *testing.T, config *rest.Config) (client kubernetes.Interface, flowSchema func() types.UID) {
	t.Helper()
	var last types.UID
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(req)
			last = ""
			if err == nil {
				last = types.UID(response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID))
			}
			return response, err
		})
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client, func() types.UID { return last }
}
