// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// bundleOf returns a bundle of certificates with these contents.
func bundleOf(contents ...string) (bundle []byte) {
	for _, content := range contents {
		bundle = append(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(content)})...)
	}
	return bundle
}

// podWebhook is the configuration of the webhook, changed.
func podWebhook(change func(w *admissionregistrationv1.MutatingWebhook)) *admissionregistrationv1.MutatingWebhookConfiguration {
	w := admissionregistrationv1.MutatingWebhook{
		Name: "mpod.kb.io", FailurePolicy: ptr.To(admissionregistrationv1.Fail),
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			CABundle: bundleOf("own"),
			Service:  &admissionregistrationv1.ServiceReference{Namespace: "jobset-system", Name: "jobset-apiserver-webhook", Path: ptr.To("/mutate--v1-pod")},
		},
	}
	change(&w)
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "jobset-apiserver-pods"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "other"}, w},
	}
}

func unchanged(*admissionregistrationv1.MutatingWebhook) {}

// trusting is an APIService of LeaderWorkerSets with a caBundle.
func trusting(bundle string) []runtime.Object {
	s := service(cli.LeaderWorkerSet, "True", "Passed", "")
	if err := unstructured.SetNestedField(s.Object, bundle, "spec", "caBundle"); err != nil {
		panic(err) // the object is a map
	}
	return []runtime.Object{s}
}

func TestWebhook(t *testing.T) {
	const config = "MutatingWebhookConfiguration jobset-apiserver-pods"
	const good = "kube-apiserver asks the server of LeaderWorkerSets about their pods"
	const foreign = ", but must ask Service jobset-system/jobset-apiserver-webhook with path /mutate--v1-pod; apply the manifests of jobset-apiserver"
	trusted := trusting(base64.StdEncoding.EncodeToString(bundleOf("older", "own")))
	custom := service(cli.LeaderWorkerSet, "True", "Local", "")
	unstructured.RemoveNestedField(custom.Object, "spec", "service")
	with := func(services []runtime.Object, change func(w *admissionregistrationv1.MutatingWebhook)) cluster {
		return cluster{services: services, objects: []runtime.Object{podWebhook(change)}}
	}
	for name, tc := range map[string]struct {
		cluster cluster
		status  Status
		message string
	}{
		"all is well":                  {with(trusted, unchanged), OK, good},
		"the APIService has no bundle": {with(trusting(""), unchanged), OK, good},
		"the same bundle, not in PEM": {with(trusting(base64.StdEncoding.EncodeToString([]byte("x"))), func(w *admissionregistrationv1.MutatingWebhook) {
			w.ClientConfig.CABundle = []byte("x")
		}), OK, good},
		"LeaderWorkerSets are not registered":   {cluster{}, OK, "no webhook is needed, because jobset-apiserver does not serve LeaderWorkerSets"},
		"LeaderWorkerSets are custom resources": {cluster{services: []runtime.Object{custom}}, OK, "no webhook is needed, because jobset-apiserver does not serve LeaderWorkerSets"},
		"APIServices cannot be read":            {cluster{refused: map[string]error{"apiservices": errors.New("broken")}}, Fail, "APIServices could not be read: broken"},
		"there is none": {
			cluster{services: trusted}, Fail, "there is no " + config + ", so pods of LeaderWorkerSets start without their index and environment; apply the manifests of jobset-apiserver",
		},
		"it is forbidden": {
			cluster{services: trusted, refused: map[string]error{"mutatingwebhookconfigurations": forbidden("mutatingwebhookconfigurations")}}, Warn,
			"you have no permission to read " + config + "; the ClusterRole jobset-doctor grants it",
		},
		"it cannot be read": {
			cluster{services: trusted, refused: map[string]error{"mutatingwebhookconfigurations": errors.New("broken")}}, Fail, config + " could not be read: broken",
		},
		"it is empty": {
			with(trusted, func(w *admissionregistrationv1.MutatingWebhook) { w.Name = "another" }), Fail,
			config + " has no webhook mpod.kb.io, so pods of LeaderWorkerSets start without their index and environment; apply the manifests of jobset-apiserver",
		},
		"another Service": {
			with(trusted, func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.Service.Namespace = "lws-system" }), Fail,
			config + " asks Service lws-system/jobset-apiserver-webhook with path /mutate--v1-pod" + foreign,
		},
		"the Service of earlier versions": {
			with(trusted, func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.Service.Name = "jobset-apiserver" }), Warn,
			config + " asks Service jobset-system/jobset-apiserver with path /mutate--v1-pod, which drops servers that are not ready, so no pod of a LeaderWorkerSet is " +
				"created while a store is refused; apply the manifests of jobset-apiserver, which ask Service jobset-system/jobset-apiserver-webhook with path /mutate--v1-pod",
		},
		"no path": {
			with(trusted, func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.Service.Path = nil }), Fail,
			config + " asks Service jobset-system/jobset-apiserver-webhook without a path" + foreign,
		},
		"a URL": {
			with(trusted, func(w *admissionregistrationv1.MutatingWebhook) {
				w.ClientConfig.Service, w.ClientConfig.URL = nil, ptr.To("https://example.com")
			}), Fail, config + " asks URL https://example.com" + foreign,
		},
		"no address": {with(trusted, func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.Service = nil }), Fail, config + " asks nobody" + foreign},
		"no bundle": {
			with(trusted, func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.CABundle = nil }), Fail,
			config + " has no caBundle, so kube-apiserver does not trust the server and refuses pods of LeaderWorkerSets; set that of the APIServices",
		},
		"another bundle": {
			with(trusted, func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.CABundle = bundleOf("other") }), Fail,
			"caBundle of " + config + " has no certificate in common with that of APIService v1.leaderworkerset.x-k8s.io; set the same in both",
		},
		"the bundle of the APIService is malformed": {
			with(trusting("?"), unchanged), Fail, "caBundle of APIService v1.leaderworkerset.x-k8s.io could not be read: illegal base64 data at input byte 0",
		},
		"pods are admitted without an answer": {
			with(trusted, func(w *admissionregistrationv1.MutatingWebhook) {
				w.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
			}), Warn, "failurePolicy of " + config + " must be Fail, not Ignore: while the server is away, pods of LeaderWorkerSets start without their index and environment",
		},
	} {
		t.Run(name, func(t *testing.T) {
			status, message := webhook(t.Context(), read(t.Context(), tc.cluster.clients(), tc.cluster.get, now))
			if status != tc.status || message != tc.message {
				t.Errorf("%s: %s\nwant %s: %s", status, message, tc.status, tc.message)
			}
		})
	}
}
