// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// TestRequestsOfTheControllerHaveAPriorityOfTheirOwn sends requests as the controller does.
func TestRequestsOfTheControllerHaveAPriorityOfTheirOwn(t *testing.T) {
	user, err := plane.AddUser("system:serviceaccount:jobset-system:jobset-controller-manager",
		"system:serviceaccounts", "system:serviceaccounts:jobset-system", "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	config, classified := user.Config(), ""
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(req)
			if err == nil {
				classified = response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)
			}
			return response, err
		})
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
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
			framework.Eventually(t, changeTimeout, "the request is of the flow", func(ctx context.Context) error {
				classified = ""
				if tc.send(ctx); classified != string(schema.UID) {
					return fmt.Errorf("flow schema is %q, not %s", classified, schema.UID)
				}
				return nil
			})
		})
	}
}
