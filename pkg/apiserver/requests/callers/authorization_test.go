// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/kubeconfig"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/poll"
)

// mainCluster answers SubjectAccessReviews: alice may do everything. It returns a kubeconfig for it.
func mainCluster(t testing.TB) string {
	t.Helper()
	return mainClusterAsking(t, func(name string) bool { return name == "alice" })
}

// mainClusterAsking answers SubjectAccessReviews about a user.
func mainClusterAsking(t testing.TB, allowed func(user string) bool) string {
	t.Helper()
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	main := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		review := &authorizationv1.SubjectAccessReview{}
		if err := runtime.DecodeInto(scheme.Codecs.UniversalDeserializer(), body, review); err != nil {
			t.Errorf("the question cannot be read: %v", err)
		}
		review.Status.Allowed = allowed(review.Spec.User)
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		w.WriteHeader(http.StatusCreated)
		encoder := scheme.Codecs.EncoderForVersion(info.Serializer, authorizationv1.SchemeGroupVersion)
		if err := encoder.Encode(review, w); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(main.Close)
	return kubeconfig.For(t, main.URL)
}

func TestAuthorizer(t *testing.T) {
	o := genericoptions.NewDelegatingAuthorizationOptions()
	o.RemoteKubeConfigFile = mainCluster(t)
	authorize, err := NewAuthorizer(o)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		user   user.DefaultInfo
		record authorizer.AttributesRecord
		want   authorizer.Decision
	}{
		"the main API allows it":         {user: user.DefaultInfo{Name: "alice"}, record: authorizer.AttributesRecord{Verb: "delete", Resource: "jobsets", ResourceRequest: true}, want: authorizer.DecisionAllow},
		"the main API does not allow it": {user: user.DefaultInfo{Name: "bob"}, record: authorizer.AttributesRecord{Verb: "delete", Resource: "jobsets", ResourceRequest: true}, want: authorizer.DecisionNoOpinion},
		"administrators are not asked about": {
			user: user.DefaultInfo{Name: "carol", Groups: []string{user.SystemPrivilegedGroup}}, record: authorizer.AttributesRecord{Verb: "delete", Resource: "jobsets", ResourceRequest: true}, want: authorizer.DecisionAllow,
		},
		"probes are not asked about": {user: user.DefaultInfo{Name: "bob"}, record: authorizer.AttributesRecord{Verb: "get", Path: "/readyz"}, want: authorizer.DecisionAllow},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.record.User = &c.user
			if got, _, err := authorize.Authorize(t.Context(), c.record); got != c.want || err != nil {
				t.Errorf("decision %v (%v), want %v", got, err, c.want)
			}
		})
	}
}

// BenchmarkDecisions asks whether one user may delete sets of different names, 50 questions at a time. Run it with
// -benchtime=5000x: the library's own client sends 400 at once and then 200 in a second.
func BenchmarkDecisions(b *testing.B) {
	setups := map[string]func(*genericoptions.DelegatingAuthorizationOptions) (authorizer.Authorizer, error){
		"own": NewAuthorizer,
		"library": func(o *genericoptions.DelegatingAuthorizationOptions) (authorizer.Authorizer, error) {
			info := &server.AuthorizationInfo{}
			err := o.ApplyTo(info)
			return info.Authorizer, err
		},
	}
	for name, setup := range setups {
		b.Run(name, func(b *testing.B) {
			o := genericoptions.NewDelegatingAuthorizationOptions()
			o.RemoteKubeConfigFile = mainCluster(b)
			authorize, err := setup(o)
			if err != nil {
				b.Fatal(err)
			}
			b.SetParallelism(25)
			b.ResetTimer()
			var number atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					record := authorizer.AttributesRecord{
						User: &user.DefaultInfo{Name: "alice"}, Verb: "delete", Resource: "jobsets", ResourceRequest: true, Name: fmt.Sprint(number.Add(1)),
					}
					if got, _, err := authorize.Authorize(b.Context(), record); got != authorizer.DecisionAllow {
						b.Errorf("decision %v (%v)", got, err)
					}
				}
			})
			b.ReportMetric(b.Elapsed().Seconds(), "s")
		})
	}
}

// TestImpersonationWaitsForASlot holds all questions back and counts those under way.
func TestImpersonationWaitsForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var underWay, most, others atomic.Int32
		release := make(chan struct{})
		limited := limitImpersonation(authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if a.GetVerb() == "get" {
				others.Add(1)
				return authorizer.DecisionAllow, "", nil
			}
			for now := underWay.Add(1); ; {
				if known := most.Load(); known >= now || most.CompareAndSwap(known, now) {
					break
				}
			}
			defer underWay.Add(-1)
			<-release
			return authorizer.DecisionAllow, "", nil
		}))
		ask := func(ctx context.Context, verb string) error {
			_, _, err := limited.Authorize(ctx, authorizer.AttributesRecord{Verb: verb})
			return err
		}
		var group sync.WaitGroup
		for i := range 10 * maxImpersonationReviews {
			group.Go(func() {
				if err := ask(t.Context(), []string{"impersonate", "impersonate:user-info"}[i%2]); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if got := underWay.Load(); got != maxImpersonationReviews {
			t.Errorf("%d questions are under way, want %d", got, maxImpersonationReviews)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := ask(ended, "impersonate"); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that has gone gets %v", err)
		}
		if err := ask(t.Context(), "get"); err != nil || others.Load() != 1 {
			t.Errorf("another question waits for those about impersonation: %v", err)
		}
		close(release)
		group.Wait()
		if most.Load() != maxImpersonationReviews {
			t.Errorf("%d questions were under way, want %d", most.Load(), maxImpersonationReviews)
		}
	})
}

// TestRevokedPermission revokes a permission, and asks again as a client that connects directly and as one whose
// requests kube-apiserver forwards.
func TestRevokedPermission(t *testing.T) {
	var revoked atomic.Bool
	o := genericoptions.NewDelegatingAuthorizationOptions()
	o.AllowCacheTTL = time.Millisecond
	o.RemoteKubeConfigFile = mainClusterAsking(t, func(string) bool { return !revoked.Load() })
	authorize, err := NewAuthorizer(o)
	if err != nil {
		t.Fatal(err)
	}
	forwarded := &channel{}
	forwarded.forwarded.Store(true)
	contexts := map[string]context.Context{"direct": t.Context(), "forwarded": context.WithValue(t.Context(), channelKey{}, forwarded)}
	ask := func(how string) authorizer.Decision {
		record := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "alice"}, Verb: "list", Resource: "jobsets", ResourceRequest: true}
		decision, _, err := authorize.Authorize(contexts[how], record)
		if err != nil {
			t.Fatal(err)
		}
		return decision
	}
	for how := range contexts {
		if ask(how) != authorizer.DecisionAllow {
			t.Fatalf("a %s request is not allowed", how)
		}
	}
	revoked.Store(true)
	poll.Until(t, "a direct request is not allowed any more after the time of the flag", func() bool {
		return ask("direct") == authorizer.DecisionNoOpinion
	})
	if ask("forwarded") != authorizer.DecisionAllow {
		t.Error("the answer about a forwarded request is not cached")
	}
}

// TestForwardedIsNoted asks both authenticators in the order of the library.
func TestForwardedIsNoted(t *testing.T) {
	known := func(header string) authenticator.Request {
		return authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
			name := req.Header.Get(header)
			return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, name != "", nil
		})
	}
	for header, want := range map[string]bool{"X-Remote-User": true, "Authorization": false} {
		var noted bool
		authenticate := NoteForwarded(known("X-Remote-User"), known("Authorization"))
		h := WithChannel(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			response, ok, err := authenticate.AuthenticateRequest(req)
			if !ok || err != nil || response.User.GetName() != "alice" {
				t.Errorf("%s: %v, %v, %v", header, response, ok, err)
			}
			noted = wasForwarded(req.Context())
		}))
		req := httptest.NewRequest(http.MethodGet, "/apis", nil)
		req.Header.Set(header, "alice")
		h.ServeHTTP(httptest.NewRecorder(), req)
		if noted != want {
			t.Errorf("%s: forwarded is %v, want %v", header, noted, want)
		}
	}
}
