// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespaceuid is the admission plugin that records in which namespace an object was created: not by its name,
// which the next namespace may have as well, but by its UID. The controller does not run what is older than its
// namespace.
package namespaceuid

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/admission/annotation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
)

const (
	// PluginName is the name of the plugin for --enable-admission-plugins and --disable-admission-plugins.
	PluginName = "NamespaceUID"

	// lookupTimeout bounds the question for a namespace that the cache does not have.
	lookupTimeout = 2 * time.Second
)

// Records returns whether the server records the namespace in objects of a resource.
func Records(resource schema.GroupResource) bool { return annotation.Runs(resource) }

// Register adds the plugin to the plugins that can be enabled.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// Plugin sets and keeps the annotation.
type Plugin struct {
	*admission.Handler
	cached corev1listers.NamespaceLister
	live   corev1client.NamespacesGetter
}

var (
	_ admission.MutationInterface                  = &Plugin{}
	_ admission.InitializationValidator            = &Plugin{}
	_ initializer.WantsExternalKubeClientSet       = &Plugin{}
	_ initializer.WantsExternalKubeInformerFactory = &Plugin{}
)

// New returns a plugin that lacks its client and its cache.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// SetExternalKubeClientSet sets the client of the main API.
func (p *Plugin) SetExternalKubeClientSet(client kubernetes.Interface) { p.live = client.CoreV1() }

// SetExternalKubeInformerFactory sets the cache of namespaces, which admission has anyway.
func (p *Plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	namespaces := factory.Core().V1().Namespaces()
	p.cached = namespaces.Lister()
	p.SetReadyFunc(namespaces.Informer().HasSynced)
}

// ValidateInitialization says what is missing.
func (p *Plugin) ValidateInitialization() error {
	if p.live == nil || p.cached == nil {
		return fmt.Errorf("%s lacks a client of the main API or a cache of namespaces", PluginName)
	}
	return nil
}

// Admit sets the annotation of a new object, and keeps that of one that exists.
func (p *Plugin) Admit(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	if !annotation.Applies(attributes) {
		return nil
	}
	object, err := meta.Accessor(attributes.GetObject())
	if err != nil {
		return err
	}
	namespace := attributes.GetNamespace()
	if attributes.GetOperation() == admission.Create {
		annotation.Set(object, namespaceuid.Annotation, p.present(ctx, namespace))
		return nil
	}
	before := annotation.ValueOf(attributes.GetOldObject(), namespaceuid.Annotation)
	if asked := object.GetAnnotations()[namespaceuid.Annotation]; asked == before || asked != "" && asked == p.present(ctx, namespace) {
		return nil
	}
	annotation.Set(object, namespaceuid.Annotation, before)
	return nil
}

// present returns the UID of the namespace; empty if that cannot be found out. An object without the annotation is never held.
func (p *Plugin) present(ctx context.Context, name string) string {
	if namespace, err := p.cached.Get(name); err == nil && namespace.Status.Phase != corev1.NamespaceTerminating {
		return string(namespace.UID)
	}
	// It is new, or the next one of its name.
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	namespace, err := p.live.Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot record in which namespace an object is created", "namespace", name)
		return ""
	}
	return string(namespace.UID)
}
