// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package selfcheck

import (
	"context"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/selfcheck"
)

// questions asks kube-apiserver what the server must be able to ask it, and returns what fails.
func questions(ctx context.Context, main kubernetes.Interface) (problems []selfcheck.Problem) {
	asked := []struct {
		name string
		ask  func() error
	}{
		{"tokenreviews", func() error {
			// The token belongs to no user, so that the answer is that it is not valid.
			review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "jobset-apiserver-self-check"}}
			_, err := main.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
			return err
		}},
		{"subjectaccessreviews", func() error {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "jobset-apiserver-self-check", NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/healthz", Verb: "get"},
			}}
			_, err := main.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			return err
		}},
		{"configmap kube-system/extension-apiserver-authentication", func() error {
			_, err := main.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "extension-apiserver-authentication", metav1.GetOptions{})
			return err
		}},
	}
	errs := make([]error, len(asked))
	var group sync.WaitGroup
	for i := range asked {
		group.Go(func() { errs[i] = asked[i].ask() })
	}
	group.Wait()
	for i, err := range errs {
		if err != nil {
			problems = append(problems, selfcheck.Problem{Name: asked[i].name, Message: err.Error()})
		}
	}
	return problems
}
