// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Target is an object of the main cluster whose caBundles make kube-apiserver trust the server.
type Target struct {
	Resource schema.GroupVersionResource
	Name     string
}

// APIService returns the target for a version of a group.
func APIService(version schema.GroupVersion) Target {
	resource := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	return Target{Resource: resource, Name: version.Version + "." + version.Group}
}

// MutatingWebhook returns the target for a configuration of webhooks.
func MutatingWebhook(name string) Target {
	resource := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}
	return Target{Resource: resource, Name: name}
}

func (t Target) String() string { return t.Resource.Resource + "/" + t.Name }

// clientConfig is the part of a target that has the Service and the caBundle. The maps belong to the object.
type clientConfig map[string]any

// clientConfigs returns where the object names our server. Objects that name another Service are not changed.
func clientConfigs(object *unstructured.Unstructured, names []string) []clientConfig {
	var all []clientConfig
	if spec, ok := object.Object["spec"].(map[string]any); ok {
		all = append(all, spec)
	}
	webhooks, _ := object.Object["webhooks"].([]any)
	for _, webhook := range webhooks {
		fields, _ := webhook.(map[string]any)
		if config, ok := fields["clientConfig"].(map[string]any); ok {
			all = append(all, config)
		}
	}
	return slices.DeleteFunc(all, func(c clientConfig) bool { return !slices.Contains(names, c.host()) })
}

// host is the name under which kube-apiserver reaches the Service, or nothing if there is no Service.
func (c clientConfig) host() string {
	service, _ := c["service"].(map[string]any)
	name, _ := service["name"].(string)
	namespace, _ := service["namespace"].(string)
	if name == "" || namespace == "" {
		return ""
	}
	return name + "." + namespace + ".svc"
}

func (c clientConfig) insecure() bool {
	insecure, _ := c["insecureSkipTLSVerify"].(bool)
	return insecure
}

// bundle returns the caBundle. One that is not base64 cannot be stored, so it is not there.
func (c clientConfig) bundle() []byte {
	encoded, _ := c["caBundle"].(string)
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil
	}
	return decoded
}

func (c clientConfig) setBundle(bundle []byte) {
	c["caBundle"] = base64.StdEncoding.EncodeToString(bundle)
}

// injector returns the annotation with which another program is asked to write the caBundle.
func injector(object *unstructured.Unstructured) string {
	for key := range object.GetAnnotations() {
		if strings.HasPrefix(key, "cert-manager.io/inject-") {
			return key
		}
	}
	return ""
}

// bundles writes the caBundles of targets.
type bundles struct {
	client  dynamic.Interface
	targets []Target
	names   []string
}

// write puts the authorities into all targets. The error has all targets of which at least one caBundle lacks one of
// them. Targets that do not exist, or are not those of our server, need none.
func (b bundles) write(ctx context.Context, p bundlePolicy) error {
	errs := make([]error, 0, len(b.targets))
	for _, target := range b.targets {
		err := b.writeOne(ctx, target, p)
		for range mostConflicts {
			if !apierrors.IsConflict(err) {
				break
			}
			err = b.writeOne(ctx, target, p)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("caBundle of %s: %w", target, err))
		}
	}
	return errors.Join(errs...)
}

// mostConflicts bounds how often a write is tried again at once after another client has changed the object.
const mostConflicts = 5

func (b bundles) writeOne(ctx context.Context, target Target, p bundlePolicy) error {
	client := b.client.Resource(target.Resource)
	object, err := client.Get(ctx, target.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	changed, err := p.apply(object, b.names)
	if err != nil || !changed {
		return err
	}
	if _, err = client.Update(ctx, object, metav1.UpdateOptions{FieldManager: "jobset-apiserver"}); err != nil {
		return err
	}
	p.wrote(ctx, target)
	return nil
}
