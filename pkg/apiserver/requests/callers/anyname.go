// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// forAnyName asks first whether the caller may do the same to objects of any name, because the answer to that serves for other objects of
// the namespace, too: the controller writes the status of thousands. Whoever may not is asked about by name, so that rules with
// resourceNames hold. An authorizer may deny a name although it allows any. So this is only for requests that were authorized by name
// before they came here.
func forAnyName(next authorizer.Authorizer) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetName() != "" && ofOneObject(a) {
			if decision, reason, err := next.Authorize(ctx, anyName{a}); decision == authorizer.DecisionAllow || err != nil {
				return decision, reason, err
			}
		}
		return next.Authorize(ctx, a)
	})
}

// ofOneObject returns whether the request is about the object that it names. Those of lists have selectors, and those of impersonation are
// not about objects of this server.
func ofOneObject(a authorizer.Attributes) bool {
	switch a.GetVerb() {
	case "get", "create", "update", "patch", "delete":
		return a.IsResourceRequest()
	}
	return false
}

// anyName is a request without the name of its object.
type anyName struct{ authorizer.Attributes }

// GetName implements authorizer.Attributes.
func (anyName) GetName() string { return "" }
