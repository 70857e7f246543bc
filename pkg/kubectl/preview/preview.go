// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preview shows what the objects of a manifest would create, before they exist. A dry run of an object returns what the
// server would store. The functions of the controller make the children of that. Dry runs of one child of each kind return
// whether the cluster would accept them. Nothing is created.
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
}

// Previewer asks the cluster about an object of a kind that does not exist yet.
type Previewer func(ctx context.Context, s *Session, object *unstructured.Unstructured) (View, error)

// Session is the preview of one manifest.
type Session struct {
	cluster
	// quotas are those of the namespaces so far, with what earlier objects add counted as used.
	quotas map[string][]corev1.ResourceQuota
}

// object is one of a manifest.
type object struct {
	*unstructured.Unstructured
	kind cli.For[Previewer]
}

// preview asks the cluster about the objects, in their order.
func preview(ctx context.Context, c cluster, objects []object) (*Report, error) {
	report := &Report{}
	session := &Session{cluster: c, quotas: map[string][]corev1.ResourceQuota{}}
	for _, o := range objects {
		view, err := o.kind.Do(ctx, session, o.Unstructured)
		if err != nil {
			return nil, fmt.Errorf("previewing %s %s/%s: %w", o.kind.Names[0], o.GetNamespace(), o.GetName(), err)
		}
		report.Sets = append(report.Sets, view)
		report.Refused = report.Refused || view.Refused()
	}
	return report, nil
}
