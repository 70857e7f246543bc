// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// webhook is a server of admission reviews.
type webhook struct {
	url, ca string
	// lastUser is who the last review was about.
	lastUser atomic.Value
}

func newWebhook(t *testing.T, review func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) *webhook {
	t.Helper()
	authority := newAuthority(t)
	cert, key, err := authority.Server()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	w := &webhook{ca: string(authority.CA())}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		var r admissionv1.AdmissionReview
		if err := json.NewDecoder(req.Body).Decode(&r); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		w.lastUser.Store(r.Request.UserInfo.Username)
		r.Response = review(r.Request)
		r.Response.UID, r.Request = r.Request.UID, nil
		_ = json.NewEncoder(rw).Encode(r)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *webhook) client() admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{URL: &w.url, CABundle: []byte(w.ca)}
}

func (e *env) registerMutating(t *testing.T, client admissionregistrationv1.WebhookClientConfig) {
	t.Helper()
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mutate.example.com", ClientConfig: client, NamespaceSelector: e.here(),
			Rules:       []admissionregistrationv1.RuleWithOperations{jobSetRule(admissionregistrationv1.Create)},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}
	if _, err := plane.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), configuration, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (e *env) registerValidating(t *testing.T, client admissionregistrationv1.WebhookClientConfig) {
	t.Helper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "validate.example.com", ClientConfig: client, NamespaceSelector: e.here(),
			Rules:       []admissionregistrationv1.RuleWithOperations{jobSetRule(admissionregistrationv1.Create)},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
		}},
	}
	if _, err := plane.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), configuration, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func testWebhooks(t *testing.T, e *env) {
	mutating := newWebhook(t, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		patch := `[{"op":"add","path":"/metadata/labels","value":{"hooked":"true"}}]`
		return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(patch), PatchType: ptr.To(admissionv1.PatchTypeJSONPatch)}
	})
	e.registerMutating(t, mutating.client())
	e.eventuallyLabeled(t, "hooked")
	if user := mutating.lastUser.Load(); user != "test-admin" {
		t.Errorf("the webhook was told of user %v", user)
	}

	validating := newWebhook(t, func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		var js jobsetv1alpha2.JobSet
		if err := json.Unmarshal(request.Object.Raw, &js); err != nil || js.Labels["hooked"] != "true" {
			return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "not hooked"}}
		}
		if ptr.Deref(js.Spec.Suspend, false) {
			return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "no suspended JobSets"}}
		}
		return &admissionv1.AdmissionResponse{Allowed: true}
	})
	e.registerValidating(t, validating.client())
	e.eventuallyRefused(t, jobSet("a", func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) }),
		`admission webhook "validate.example.com" denied the request: no suspended JobSets`)
	e.create(t, jobSet("a"))
}

func testWebhookFailure(t *testing.T, e *env) {
	gone := newWebhook(t, nil)
	gone.url += "1"
	e.registerValidating(t, gone.client())
	e.eventuallyRefused(t, jobSet("a"), "failed calling webhook")
	other := newEnv(t, e.server, e.config)
	other.create(t, jobSet("a"))
}
