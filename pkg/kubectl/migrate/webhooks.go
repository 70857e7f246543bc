// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// Kinds of webhook configurations.
const mutating, validating = "mutating", "validating"

// hook is a webhook configuration of upstream's controller.
type hook struct {
	// kind is mutating or validating.
	kind     string
	name     string
	object   json.RawMessage
	services []types.NamespacedName
}

// saved is the name under which the journal keeps it.
func (h hook) saved() string { return h.kind + "." + h.name }

// findHooks returns the webhook configurations of upstream's controllers: those which are called for objects of the
// subjects, and for nothing else but pods. Configurations of queues and of others, which are called for more, stay.
func findHooks(ctx context.Context, client kubernetes.Interface, groups []string) ([]hook, error) {
	mutatings, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing webhook configurations: %w", err)
	}
	validatings, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing webhook configurations: %w", err)
	}
	finder := hookFinder{groups: groups}
	for i := range mutatings.Items {
		c := &mutatings.Items[i]
		var calls []call
		for _, w := range c.Webhooks {
			calls = append(calls, call{w.Rules, w.ClientConfig})
		}
		c.TypeMeta = metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"}
		if err := finder.add(mutating, c.Name, c, calls); err != nil {
			return nil, err
		}
	}
	for i := range validatings.Items {
		c := &validatings.Items[i]
		var calls []call
		for _, w := range c.Webhooks {
			calls = append(calls, call{w.Rules, w.ClientConfig})
		}
		c.TypeMeta = metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"}
		if err := finder.add(validating, c.Name, c, calls); err != nil {
			return nil, err
		}
	}
	return finder.found, nil
}

// call is what both kinds of webhooks have in common.
type call struct {
	rules  []admissionregistrationv1.RuleWithOperations
	client admissionregistrationv1.WebhookClientConfig
}

type hookFinder struct {
	groups []string
	found  []hook
}

// add adds a configuration if it belongs to a controller of the groups.
func (f *hookFinder) add(kind, name string, object any, calls []call) error {
	if !upstream(calls, f.groups) {
		return nil
	}
	content, err := json.Marshal(object)
	if err != nil {
		return err
	}
	h := hook{kind: kind, name: name, object: content}
	for _, c := range calls {
		if c.client.Service == nil {
			continue
		}
		service := types.NamespacedName{Namespace: c.client.Service.Namespace, Name: c.client.Service.Name}
		if !slices.Contains(h.services, service) {
			h.services = append(h.services, service)
		}
	}
	f.found = append(f.found, h)
	return nil
}

// upstream returns whether webhooks with these rules belong to a controller of the groups.
func upstream(webhooks []call, groups []string) (called bool) {
	for _, webhook := range webhooks {
		for _, rule := range webhook.rules {
			for _, group := range rule.APIGroups {
				switch {
				case slices.Contains(groups, group):
					called = true
				case group == "" && slices.ContainsFunc(rule.Resources, func(r string) bool { return r == "pods" || strings.HasPrefix(r, "pods/") }):
				default:
					return false
				}
			}
		}
	}
	return called
}

const (
	// podsWebhook is the configuration with which jobset-apiserver gives pods of LeaderWorkerSets their environment.
	podsWebhook = "jobset-apiserver-pods"
	// notYet is the match condition that keeps it from being called while another controller has such a webhook.
	notYet = "after-migration"
)

// callPodsWebhook makes kube-apiserver call jobset-apiserver for pods of LeaderWorkerSets, or not.
func (m *mover) callPodsWebhook(ctx context.Context, call bool) error {
	if !slices.ContainsFunc(m.subjects, func(s subject) bool { return s.kind == "LeaderWorkerSet" }) {
		return nil
	}
	api := m.kube.AdmissionregistrationV1().MutatingWebhookConfigurations()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		configuration, err := api.Get(ctx, podsWebhook, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for i := range configuration.Webhooks {
			w := &configuration.Webhooks[i]
			w.MatchConditions = slices.DeleteFunc(w.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool { return c.Name == notYet })
			if !call {
				w.MatchConditions = append(w.MatchConditions, admissionregistrationv1.MatchCondition{Name: notYet, Expression: "false"})
			}
		}
		_, err = api.Update(ctx, configuration, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("MutatingWebhookConfiguration %s, which an installation of jobset-apiserver has: %w", podsWebhook, err)
	}
	return nil
}

// removeHooks makes kube-apiserver call our webhook, and deletes the webhook configurations that the journal has. Between the
// two no pod of a LeaderWorkerSet is created: the other controller does not answer.
func (m *mover) removeHooks(ctx context.Context, _ *StepRecord) error {
	if err := m.callPodsWebhook(ctx, true); err != nil {
		return err
	}
	api := m.kube.AdmissionregistrationV1()
	for _, saved := range slices.Sorted(maps.Keys(m.journal.Saved)) {
		kind, name, _ := strings.Cut(saved, ".")
		remove := api.MutatingWebhookConfigurations().Delete
		if kind == validating {
			remove = api.ValidatingWebhookConfigurations().Delete
		}
		if err := remove(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting the %s webhook configuration %s: %w", kind, name, err)
		}
	}
	return nil
}

// restoreHooks is the reverse of removeHooks.
func (m *mover) restoreHooks(ctx context.Context, _ *StepRecord) error {
	api := m.kube.AdmissionregistrationV1()
	for _, saved := range slices.Sorted(maps.Keys(m.journal.Saved)) {
		kind, name, _ := strings.Cut(saved, ".")
		var err error
		object := m.journal.Saved[saved]
		if kind == validating {
			err = restore(ctx, api.ValidatingWebhookConfigurations(), object, &admissionregistrationv1.ValidatingWebhookConfiguration{})
		} else {
			err = restore(ctx, api.MutatingWebhookConfigurations(), object, &admissionregistrationv1.MutatingWebhookConfiguration{})
		}
		if err != nil {
			return fmt.Errorf("creating the %s webhook configuration %s again: %w", kind, name, err)
		}
	}
	return m.callPodsWebhook(ctx, false)
}

// restore creates an object as it was saved, unless it exists.
func restore[T object](ctx context.Context, client typed[T], saved json.RawMessage, into T) error {
	if err := json.Unmarshal(saved, into); err != nil {
		return err
	}
	into.SetResourceVersion("")
	into.SetUID("")
	into.SetManagedFields(nil)
	_, err := ensure(ctx, client, into, nil)
	return err
}
