// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preview shows what the objects of a manifest would create and change, and creates and changes nothing. A dry run of a new
// object returns what the server would store. The functions of the controller make the children of that. Dry runs of one child
// of each kind return whether the cluster would accept them. For an object that exists, the dry run of a patch returns what the
// server would store in its place; the fields that differ have effects, which follow from what the controller does with each.
package preview

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// maxParallel is how many questions are asked at a time.
const maxParallel = 8

// View is what is shown of an object; as data, it is the object itself.
type View interface {
	// Lines returns the lines for humans.
	Lines(cli.Terminal) []string
	// Refused returns whether anything about the object would be refused.
	Refused() bool
	// Changed returns whether the object would be created or changed.
	Changed() bool
	// Objects returns the object in the cluster, nil if there is none, and what the manifest makes of it, nil if that is not known.
	Objects() (live, next *unstructured.Unstructured)
}

// Previewer asks the cluster about an object of a kind.
type Previewer func(ctx context.Context, s *Session, object *unstructured.Unstructured) (View, error)

// Session is the preview of one manifest.
type Session struct {
	cluster
	// manifest are the other objects that are created with the previewed ones.
	manifest manifest
	// manager is the field manager of server-side applies.
	manager string
	// quotas are the quotas of the namespaces so far, with what earlier objects add counted as used.
	quotas map[string][]corev1.ResourceQuota
}

// object is one of a manifest.
type object struct {
	*unstructured.Unstructured
	kind cli.For[Previewer]
}

// preview asks the cluster about the objects, in their order.
func preview(ctx context.Context, session *Session, objects []object) (*Report, error) {
	report := &Report{}
	session.quotas = map[string][]corev1.ResourceQuota{}
	for _, o := range objects {
		view, err := o.kind.Do(ctx, session, o.Unstructured)
		if err != nil {
			return nil, fmt.Errorf("previewing %s %s/%s: %w", o.kind.Names[0], o.GetNamespace(), o.GetName(), err)
		}
		report.Sets = append(report.Sets, view)
		report.Refused = report.Refused || view.Refused()
		report.Changed = report.Changed || view.Changed()
	}
	return report, nil
}
