// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/outage"
)

const (
	// webhookConfiguration, webhookName and webhookPath are the names and the path in artifacts/base/webhook.yaml.
	webhookConfiguration, webhookName, webhookPath = "jobset-apiserver-pods", "mpod.kb.io", "/mutate--v1-pod"
	// webhookServiceSuffix makes the name of the Service of the webhook of the name of the Service of the APIServices.
	webhookServiceSuffix = "-webhook"
	// webhookLocation is how messages name the configuration.
	webhookLocation = "MutatingWebhookConfiguration " + webhookConfiguration
	// noWebhook is the message when there are no pods to ask about.
	noWebhook = "no webhook is needed, because jobset-apiserver does not serve LeaderWorkerSets"
	// maxCertificates is how many certificates of a bundle are looked at.
	maxCertificates = 1000
)

// webhook checks that kube-apiserver asks our server about pods of LeaderWorkerSets, and trusts it.
func webhook(ctx context.Context, p *inspection) (Status, string) {
	if p.serviceErr != nil {
		return unread("APIServices", p.serviceErr)
	}
	service := p.leaderWorkerSets()
	if service == nil || backend(service) == "" {
		return OK, noWebhook
	}
	config, err := p.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, webhookConfiguration, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return Fail, "there is no " + webhookLocation + ", so pods of LeaderWorkerSets start without their index and environment; apply the " +
			"manifests of jobset-apiserver"
	case err != nil:
		return unread(webhookLocation, err)
	}
	i := slices.IndexFunc(config.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool { return w.Name == webhookName })
	if i < 0 {
		return Fail, webhookLocation + " has no webhook " + webhookName +
			", so pods of LeaderWorkerSets start without their index and environment; apply the manifests of jobset-apiserver"
	}
	return asked(&config.Webhooks[i], service)
}

// leaderWorkerSets is the APIService of LeaderWorkerSets; nil if there is none, or if it could not be read.
func (p *inspection) leaderWorkerSets() *unstructured.Unstructured {
	name := outage.Name(cli.LeaderWorkerSet)
	i := slices.IndexFunc(outage.Kinds(), func(kind cli.Kind) bool { return outage.Name(kind) == name })
	if i >= len(p.services) {
		return nil
	}
	return p.services[i]
}

// servesLeaderWorkerSets returns whether jobset-apiserver serves LeaderWorkerSets; also if that is not known.
func (p *inspection) servesLeaderWorkerSets() bool {
	service := p.leaderWorkerSets()
	return p.serviceErr != nil || service != nil && backend(service) != ""
}

// certifiedWebhook is webhook, and checks that the certificate of the server is for the Service that kube-apiserver asks, as far as both
// are known.
func certifiedWebhook(ctx context.Context, p *inspection) finding {
	f := repaired(webhook, applyWebhook)(ctx, p)
	if f.status != OK || p.health == nil {
		return f
	}
	host := p.webhookDNS()
	chain, err := certutil.ParseCertsPEM([]byte(p.health.Certificate))
	if err != nil || chain[0].VerifyHostname(host) == nil || f.message == noWebhook {
		return f
	}
	return finding{status: Fail, certain: true, fix: p.newCertificate(),
		message: fmt.Sprintf("the certificate of the server is not for %s, so kube-apiserver refuses pods of LeaderWorkerSets", host)}
}

// webhookDNS is the name under which kube-apiserver asks about pods.
func (p *inspection) webhookDNS() string {
	service, rest, _ := strings.Cut(p.serverDNS(), ".")
	return service + webhookServiceSuffix + "." + rest
}

// asked checks where the webhook points to, and what it trusts there.
func asked(w *admissionregistrationv1.MutatingWebhook, service *unstructured.Unstructured) (Status, string) {
	to, serves := addressOf(&w.ClientConfig), "Service "+backend(service)+" with path "+webhookPath
	want := "Service " + backend(service) + webhookServiceSuffix + " with path " + webhookPath
	bundle, _, _ := unstructured.NestedString(service.Object, "spec", "caBundle")
	trusted, err := base64.StdEncoding.DecodeString(bundle)
	switch {
	case err != nil:
		return Fail, fmt.Sprintf("caBundle of APIService %s could not be read: %v", service.GetName(), err)
	case to != want && to != serves:
		return Fail, fmt.Sprintf("%s asks %s, but must ask %s; apply the manifests of jobset-apiserver", webhookLocation, to, want)
	case len(w.ClientConfig.CABundle) == 0:
		return Fail, webhookLocation + " has no caBundle, so kube-apiserver does not trust the server and refuses pods of LeaderWorkerSets; " +
			"set that of the APIServices"
	case len(trusted) > 0 && !sharesCertificate(w.ClientConfig.CABundle, trusted):
		return Fail, fmt.Sprintf("caBundle of %s has no certificate in common with that of APIService %s; set the same in both", webhookLocation,
			service.GetName())
	case w.FailurePolicy != nil && *w.FailurePolicy != admissionregistrationv1.Fail:
		return Warn, fmt.Sprintf("failurePolicy of %s must be Fail, not %s: while the server is away, pods of LeaderWorkerSets start without "+
			"their index and environment",
			webhookLocation, *w.FailurePolicy)
	case to != want:
		return Warn, fmt.Sprintf("%s asks %s, which drops servers that are not ready, so no pod of a LeaderWorkerSet is created while a "+
			"store is refused; apply the manifests of jobset-apiserver, which ask %s", webhookLocation, to, want)
	}
	return OK, "kube-apiserver asks the server of LeaderWorkerSets about their pods"
}

// addressOf says where a webhook points to.
func addressOf(c *admissionregistrationv1.WebhookClientConfig) string {
	switch {
	case c.Service != nil && c.Service.Path != nil:
		return fmt.Sprintf("Service %s/%s with path %s", c.Service.Namespace, c.Service.Name, *c.Service.Path)
	case c.Service != nil:
		return fmt.Sprintf("Service %s/%s without a path", c.Service.Namespace, c.Service.Name)
	case c.URL != nil:
		return "URL " + *c.URL
	}
	return "nobody"
}

// sharesCertificate returns whether two bundles have a certificate in common, as they have while an authority is
// replaced in one after the other.
func sharesCertificate(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	known := map[string]bool{}
	for _, der := range certificates(a) {
		known[string(der)] = true
	}
	return slices.ContainsFunc(certificates(b), func(der []byte) bool { return known[string(der)] })
}

func certificates(bundle []byte) (ders [][]byte) {
	for len(ders) < maxCertificates {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			break
		}
		ders = append(ders, block.Bytes)
	}
	return ders
}
