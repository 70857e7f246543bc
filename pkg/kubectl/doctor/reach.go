// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	certutil "k8s.io/client-go/util/cert"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/outage"
)

// endsSoon is the time that a certificate has left from which it should have been renewed long ago. A certificate of
// short life has a sixth of its life.
const endsSoon = 14 * 24 * time.Hour

// complaint is why kube-apiserver does not reach the server, in its own words; "" if it does.
func (p *inspection) complaint() string {
	for _, service := range p.services {
		if service == nil {
			continue
		}
		if c := outage.Available(service); c != nil && c.Status != metav1.ConditionTrue {
			return c.Message
		}
	}
	if p.away != nil {
		return p.away.Error()
	}
	return ""
}

// says returns the first of the texts that a complaint has; "" for none.
func says(complaint string, texts ...string) string {
	for _, text := range texts {
		if strings.Contains(complaint, text) {
			return text
		}
	}
	return ""
}

// certificate checks that kube-apiserver trusts the certificate of the server: from what it says about it, and from the
// chain that the server presents.
func certificate(_ context.Context, p *inspection) finding {
	if _, name := p.backend(); name == "" {
		return unknown("no server is registered whose certificate could be judged")
	}
	complaint := p.complaint()
	switch {
	case says(complaint, "certificate has expired or is not yet valid") != "":
		return finding{status: Fail, certain: true, message: "kube-apiserver refuses the certificate of the server, which has expired or is " +
			"not yet valid: " + after(complaint, "x509: "), fix: p.newCertificate()}
	case says(complaint, "certificate is valid for", "certificate is not valid for any names", "legacy Common Name") != "":
		return finding{status: Fail, certain: true, fix: p.newCertificate(),
			message: fmt.Sprintf("kube-apiserver refuses the certificate of the server, which must be for %s: %s", p.serverDNS(),
				after(complaint, "x509: "))}
	case says(complaint, "unknown authority", "unable to load root certificates", "failed to verify certificate") != "":
		return p.untrusted(complaint)
	case p.health == nil:
		return unknown("the certificate of the server is not known")
	}
	return p.presented()
}

// untrusted says which caBundle is wrong.
func (p *inspection) untrusted(complaint string) finding {
	for _, service := range p.services {
		if service == nil || backend(service) == "" {
			continue
		}
		if c := outage.Available(service); p.away == nil && c != nil && c.Status == metav1.ConditionTrue {
			continue
		}
		f := finding{status: Fail, certain: true, fix: p.newBundle(service),
			message: fmt.Sprintf("caBundle of APIService %s is not the authority of the server's certificate: %s", service.GetName(),
				after(complaint, "x509: "))}
		if bundle, _, _ := unstructured.NestedString(service.Object, "spec", "caBundle"); bundle == "" {
			f.message = fmt.Sprintf("APIService %s has no caBundle, so kube-apiserver does not trust the certificate of the server: %s",
				service.GetName(), after(complaint, "x509: "))
		}
		return f
	}
	return finding{status: Fail, certain: true, message: "kube-apiserver does not trust the certificate of the server: " + complaint}
}

// after is a text from where something begins in it.
func after(text, begin string) string {
	if i := strings.Index(text, begin); i >= 0 {
		return text[i:]
	}
	return text
}

// serverDNS is the name by which kube-apiserver connects.
func (p *inspection) serverDNS() string {
	namespace, name := p.backend()
	return name + "." + namespace + ".svc"
}

// newBundle is a command that makes an APIService trust the authority of the server.
func (p *inspection) newBundle(service *unstructured.Unstructured) string {
	if from := service.GetAnnotations()["cert-manager.io/inject-ca-from"]; from != "" {
		return "kubectl -n cert-manager rollout restart deployment cert-manager-cainjector   # it puts in the authority of Certificate " + from
	}
	if pod := p.managed(); pod != "" {
		return fmt.Sprintf("kubectl -n %s delete pod %s   # a server that starts writes its authority into caBundle", p.namespace, pod)
	}
	return fmt.Sprintf(`kubectl patch apiservice %s --type=merge `+
		`-p "{\"spec\":{\"caBundle\":\"$(base64 -w0 ca.crt)\"}}"   # ca.crt: the authority of the server's certificate`, service.GetName())
}

// newCertificate is a command that replaces the certificate of the server.
func (p *inspection) newCertificate() string {
	if len(p.services) > 0 && p.services[0] != nil && p.services[0].GetAnnotations()["cert-manager.io/inject-ca-from"] != "" {
		return fmt.Sprintf("kubectl -n %s describe certificate jobset-apiserver", p.namespace)
	}
	if pod := p.managed(); pod != "" {
		return fmt.Sprintf("kubectl -n %s delete pod %s   # a server that starts renews its certificate", p.namespace, pod)
	}
	return fmt.Sprintf("kubectl -n %s create secret tls jobset-apiserver-tls --cert=tls.crt --key=tls.key --dry-run=client -o yaml | "+
		"kubectl apply -f -   # a certificate for %s and %s", p.namespace, p.serverDNS(), p.webhookDNS())
}

// presented checks the chain that the server presents: it must be for the Service, be signed by what the APIServices
// trust, and have time left.
func (p *inspection) presented() finding {
	chain, err := certutil.ParseCertsPEM([]byte(p.health.Certificate))
	if err != nil {
		return unknown("the server does not say which certificate it presents")
	}
	now, leaf := p.clock(), chain[0]
	intermediates := x509.NewCertPool()
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	for _, service := range p.services {
		if service == nil || backend(service) == "" {
			continue
		}
		bundle, _, _ := unstructured.NestedString(service.Object, "spec", "caBundle")
		content, _ := base64.StdEncoding.DecodeString(bundle)
		roots := x509.NewCertPool()
		if bundle == "" || !roots.AppendCertsFromPEM(content) {
			continue
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, DNSName: p.serverDNS(),
			CurrentTime: now}); err != nil {
			return finding{status: Fail, fix: p.newBundle(service), certain: true,
				message: fmt.Sprintf("the certificate that %s presents and the caBundle of APIService %s do not belong together: %v", p.health.Server,
					service.GetName(), err)}
		}
	}
	left, life := leaf.NotAfter.Sub(now), leaf.NotAfter.Sub(leaf.NotBefore)
	if left < min(endsSoon, life/6) {
		return finding{status: Warn, message: fmt.Sprintf("the certificate of the server ends in %s and was not renewed", cli.Duration(left)),
			fix: p.newCertificate()}
	}
	return good("kube-apiserver trusts the certificate of the server, which ends in %s", cli.Count(int(left/(24*time.Hour)), "day"))
}

// reached checks that kube-apiserver reaches the server.
func reached(ctx context.Context, p *inspection) finding {
	f := repaired(available, "")(ctx, p)
	if f.status != Fail {
		return f
	}
	namespace, name := p.backend()
	away, all := p.unavailable()
	f.fix = "kubectl describe apiservice " + cmp.Or(strings.Join(away, " "), outage.Name(outage.Kinds()[0]))
	network := "kube-apiserver gets no connection to the server"
	if len(away) < all {
		network += " of " + cli.Join(away, "and")
	}
	switch complaint := p.complaint(); {
	case says(complaint, "i/o timeout", "deadline exceeded", "Client.Timeout", "no route to host", "network is unreachable",
		"connection timed out") != "":
		f.message = fmt.Sprintf("%s: packets are dropped between kube-apiserver and port 8443 of the pods, by a firewall, a network policy or "+
			"a missing route (%s)", network, complaint)
		f.fix = fmt.Sprintf("kubectl -n %s get networkpolicies,endpointslices   # and allow port 8443 from kube-apiserver", p.namespace)
		if policy := p.isolating(ctx); policy != "" {
			f.message = fmt.Sprintf("%s: NetworkPolicy %s/%s limits who may connect to its pods (%s)", network, p.namespace, policy, complaint)
			f.fix = fmt.Sprintf("kubectl -n %s edit networkpolicy %s   # allow port 8443 from kube-apiserver", p.namespace, policy)
		}
	case says(complaint, "connection refused") != "":
		f.message = fmt.Sprintf("%s: nothing listens behind Service %s/%s (%s)", network, namespace, name, complaint)
		f.fix = fmt.Sprintf("kubectl -n %s get endpointslices -l kubernetes.io/service-name=%s -o yaml", namespace, name)
	}
	return f
}

// unavailable returns the names of the APIServices that kube-apiserver does not reach, and how many there are of all.
func (p *inspection) unavailable() (away []string, all int) {
	for _, service := range p.services {
		if service == nil {
			continue
		}
		all++
		if c := outage.Available(service); c == nil || c.Status != metav1.ConditionTrue {
			away = append(away, service.GetName())
		}
	}
	if len(away) == 0 { // JobSets are not served all the same
		return nil, 0
	}
	return away, all
}

// isolating is a NetworkPolicy that keeps senders from the pods of the server; "" if none does, or if they may not be read.
func (p *inspection) isolating(ctx context.Context) string {
	list, err := p.Kube.NetworkingV1().NetworkPolicies(p.namespace).List(ctx, metav1.ListOptions{Limit: page})
	if err != nil || p.service == nil {
		return ""
	}
	selected := labels.Set(p.service.Spec.Selector)
	if len(p.servers) > 0 {
		selected = p.servers[0].Labels
	}
	for i := range list.Items {
		policy := &list.Items[i]
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		if err == nil && selector.Matches(selected) && isolates(policy) {
			return policy.Name
		}
	}
	return ""
}

// isolates returns whether a NetworkPolicy limits the senders of packets, or lets none of them in.
func isolates(policy *networkingv1.NetworkPolicy) bool {
	ingress := len(policy.Spec.PolicyTypes) == 0
	for _, of := range policy.Spec.PolicyTypes {
		ingress = ingress || of == networkingv1.PolicyTypeIngress
	}
	for _, rule := range policy.Spec.Ingress {
		if len(rule.From) == 0 {
			return false
		}
	}
	return ingress
}
