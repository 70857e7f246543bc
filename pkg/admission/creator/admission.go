// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package creator is the admission plugin that records who created an object. A user cannot create an object in the name of another one.
package creator

import (
	"context"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/admission/annotation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/creator"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// PluginName is the name of the plugin for --enable-admission-plugins and --disable-admission-plugins.
const PluginName = "Creator"

// Register adds the plugin to the plugins that can be enabled.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// Plugin sets and keeps the annotation.
type Plugin struct {
	*admission.Handler
}

var _ admission.MutationInterface = &Plugin{}

// New returns a plugin.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Admit sets the annotation of a new object, and keeps the annotation of one that exists.
func (p *Plugin) Admit(_ context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	if !annotation.Applies(attributes) {
		return nil
	}
	object, err := meta.Accessor(attributes.GetObject())
	if err != nil {
		return err
	}
	if attributes.GetOperation() == admission.Create {
		annotation.Set(object, creator.Annotation, userOf(attributes))
		return nil
	}
	if before := annotation.ValueOf(attributes.GetOldObject(), creator.Annotation); object.GetAnnotations()[creator.Annotation] != before {
		annotation.Set(object, creator.Annotation, before)
	}
	return nil
}

// userOf returns the name of the user who asks, as one line within the limit; empty if it is not known.
func userOf(attributes admission.Attributes) string {
	user := attributes.GetUserInfo()
	if user == nil {
		return ""
	}
	return text.Truncate(text.Line(user.GetName()), creator.MaxBytes)
}
