// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// otherWebhook is a webhook about our kinds that denies what it cannot answer.
type otherWebhook struct {
	// kind, configuration and name identify the webhook.
	kind, configuration, name string
	service                   *admissionregistrationv1.ServiceReference
	// groups are our API groups that it is about; empty for all API groups.
	groups []string
}

// otherWebhooks checks that no webhook of another program refuses our kinds because its Service is missing. An uninstalled upstream
// leaves such webhooks behind.
func otherWebhooks(ctx context.Context, p *inspection) finding {
	webhooks, err := p.failingClosed(ctx)
	if err != nil {
		return unseen("webhook configurations", err)
	}
	var messages, names, comment []string
	for _, w := range webhooks {
		name := strings.ToLower(w.kind) + "/" + w.configuration
		if slices.Contains(names, name) {
			continue
		}
		_, err := p.Kube.CoreV1().Services(w.service.Namespace).Get(ctx, w.service.Name, metav1.GetOptions{})
		switch {
		case err == nil:
			continue
		case !apierrors.IsNotFound(err):
			return unseen(fmt.Sprintf("Service %s/%s", w.service.Namespace, w.service.Name), err)
		}
		about := cli.Join(w.groups, "and")
		if about == "" {
			about = "all API groups"
			comment = []string{"  # unless you install the program behind it again"}
		}
		names = append(names, name)
		messages = append(messages, fmt.Sprintf("%s %s refuses every write of %s: its webhook %s asks Service %s/%s, which does not exist",
			w.kind, w.configuration, about, w.name, w.service.Namespace, w.service.Name))
	}
	if len(names) == 0 {
		return good("no webhook refuses our kinds because its Service is missing")
	}
	return finding{status: Fail, certain: true, message: strings.Join(messages, "; "),
		fix: strings.Join(append([]string{"kubectl delete"}, append(names, comment...)...), " ")}
}

// failingClosed returns the webhooks about our API groups that deny a request if their Service does not answer.
func (p *inspection) failingClosed(ctx context.Context) (found []otherWebhook, err error) {
	add := func(w otherWebhook, policy *admissionregistrationv1.FailurePolicyType, client *admissionregistrationv1.WebhookClientConfig,
		rules []admissionregistrationv1.RuleWithOperations) {
		groups, concerns := concerned(rules)
		if concerns && client.Service != nil && (policy == nil || *policy == admissionregistrationv1.Fail) {
			w.service, w.groups = client.Service, groups
			found = append(found, w)
		}
	}
	registered := p.Kube.AdmissionregistrationV1()
	err = eachPage(ctx, p, registered.MutatingWebhookConfigurations(), func(list *admissionregistrationv1.MutatingWebhookConfigurationList) {
		for i := range list.Items {
			for _, w := range list.Items[i].Webhooks {
				add(otherWebhook{kind: "MutatingWebhookConfiguration", configuration: list.Items[i].Name, name: w.Name}, w.FailurePolicy,
					&w.ClientConfig, w.Rules)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	err = eachPage(ctx, p, registered.ValidatingWebhookConfigurations(), func(
		list *admissionregistrationv1.ValidatingWebhookConfigurationList,
	) {
		for i := range list.Items {
			for _, w := range list.Items[i].Webhooks {
				add(otherWebhook{kind: "ValidatingWebhookConfiguration", configuration: list.Items[i].Name, name: w.Name}, w.FailurePolicy,
					&w.ClientConfig, w.Rules)
			}
		}
	})
	return found, err
}

// concerned returns which of our API groups the rules of a webhook or a policy name; none if they name all API groups.
func concerned(rules []admissionregistrationv1.RuleWithOperations) (groups []string, concerns bool) {
	for _, rule := range rules {
		if slices.Contains(rule.APIGroups, "*") {
			return nil, true
		}
	}
	for _, kind := range cli.Kinds {
		group := kind.GroupVersion.Group
		names := func(rule admissionregistrationv1.RuleWithOperations) bool {
			return slices.Contains(rule.APIGroups, group)
		}
		if slices.ContainsFunc(rules, names) {
			groups = append(groups, group)
		}
	}
	return groups, len(groups) > 0
}
