// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericoptions "k8s.io/apiserver/pkg/server/options"
)

// TestForAnyName asks about requests, and expects these questions and the decision on the last of them.
func TestForAnyName(t *testing.T) {
	const allow, deny, noOpinion = authorizer.DecisionAllow, authorizer.DecisionDeny, authorizer.DecisionNoOpinion
	away := errors.New("kube-apiserver does not answer")
	request := func(verb, name string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: "alice"}, Verb: verb, Namespace: "ns", Name: name, APIGroup: "jobset.x-k8s.io", APIVersion: "v1alpha2",
			Resource: "jobsets", Subresource: "status", ResourceRequest: true,
		}
	}
	type decisions map[string]authorizer.Decision // by name
	cases := map[string]struct {
		request   authorizer.AttributesRecord
		decisions decisions
		err       error
		want      authorizer.Decision
		asked     []string
	}{
		"every name is allowed":  {request("update", "a"), decisions{"": allow}, nil, allow, []string{""}},
		"this name is allowed":   {request("patch", "a"), decisions{"": noOpinion, "a": allow}, nil, allow, []string{"", "a"}},
		"a denial without name":  {request("delete", "a"), decisions{"": deny, "a": allow}, nil, allow, []string{"", "a"}},
		"no name is allowed":     {request("get", "a"), decisions{"": noOpinion, "a": noOpinion}, nil, noOpinion, []string{"", "a"}},
		"an action":              {request("create", "a"), decisions{"": allow}, nil, allow, []string{""}},
		"no answer":              {request("update", "a"), decisions{"": noOpinion}, away, noOpinion, []string{""}},
		"a request without name": {request("create", ""), decisions{"": noOpinion}, nil, noOpinion, []string{""}},
		"a list of one name":     {request("list", "a"), decisions{"a": allow}, nil, allow, []string{"a"}},
		"impersonation":          {request("impersonate", "a"), decisions{"": allow, "a": noOpinion}, nil, noOpinion, []string{"a"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var asked []string
			next := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				if got, want := withoutName(a), withoutName(c.request); got != want {
					t.Errorf("asked about %s, want %s", got, want)
				}
				asked = append(asked, a.GetName())
				return c.decisions[a.GetName()], "", c.err
			})
			got, _, err := forAnyName(next).Authorize(t.Context(), c.request)
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("decision %v (%v), want %v (%v)", got, err, c.want, c.err)
			}
			if !slices.Equal(asked, c.asked) {
				t.Errorf("names that were asked about: %q, want %q", asked, c.asked)
			}
		})
	}
}

func withoutName(a authorizer.Attributes) string {
	return fmt.Sprint(a.GetUser(), a.GetVerb(), a.GetNamespace(), a.GetAPIGroup(), a.GetAPIVersion(), a.GetResource(), a.GetSubresource(),
		a.IsResourceRequest())
}

// TestNamesShareAnAnswer updates sets of many names, once forwarded by kube-apiserver and once directly.
func TestNamesShareAnAnswer(t *testing.T) {
	const sets = 20
	for how, want := range map[string]int32{"forwarded": 1, "direct": sets} {
		t.Run(how, func(t *testing.T) {
			var questions atomic.Int32
			o := genericoptions.NewDelegatingAuthorizationOptions()
			o.RemoteKubeConfigFile = mainClusterAsking(t, func(string) bool { questions.Add(1); return true })
			authorize, err := NewAuthorizer(o)
			if err != nil {
				t.Fatal(err)
			}
			c := &channel{}
			c.forwarded.Store(how == "forwarded")
			ctx := context.WithValue(t.Context(), channelKey{}, c)
			for i := range sets {
				record := authorizer.AttributesRecord{
					User: &user.DefaultInfo{Name: "alice"}, Verb: "update", Namespace: "ns", Name: fmt.Sprint("set-", i), Resource: "jobsets",
					Subresource: "status", ResourceRequest: true,
				}
				if got, _, err := authorize.Authorize(ctx, record); got != authorizer.DecisionAllow || err != nil {
					t.Fatalf("decision %v (%v)", got, err)
				}
			}
			if got := questions.Load(); got != want {
				t.Errorf("%d questions about %d sets, want %d", got, sets, want)
			}
		})
	}
}
