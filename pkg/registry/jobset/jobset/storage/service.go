// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// warnOfServices returns a hook of the store. It warns users when a JobSet has been created and another object of the server needs its
// Service. Other children of the same name need no warning: the owner that waits has a condition. A JobSet has none about its Service,
// because it uses the one that exists, and its pods get no DNS names from it.
func warnOfServices(others provider.Neighbors) registry.BeginCreateFunc {
	return func(ctx context.Context, obj runtime.Object, _ *metav1.CreateOptions) (registry.FinishFunc, error) {
		return func(_ context.Context, created bool) {
			js, ok := obj.(*jobset.JobSet)
			if !ok || !created || metav1.GetControllerOfNoCopy(js) != nil { // a child has the name that its owner gave to it
				return
			}
			for _, text := range sharedServices(ctx, others, js) {
				warning.AddWarning(ctx, "", text)
			}
		}, nil
	}
}

// sharedServices returns a warning for each object with the Service of a JobSet. It reads two objects at most.
func sharedServices(ctx context.Context, others provider.Neighbors, js *jobset.JobSet) (texts []string) {
	name := serviceOf(js)
	if name == "" {
		return nil
	}
	warn := func(kind, more string) {
		texts = append(texts, fmt.Sprintf("metadata.name: the %s %q needs a Service of the same name, %[2]q; pods of the one that comes later "+
			"have no DNS names%s", kind, name, more))
	}
	if set, ok := others.Find(ctx, leaderworkerset.Resource("leaderworkersets"), name).(*leaderworkerset.LeaderWorkerSet); ok && !unique(set) {
		warn("LeaderWorkerSet", "")
	}
	if name == js.Name {
		return texts
	}
	if other, ok := others.Find(ctx, jobset.Resource("jobsets"), name).(*jobset.JobSet); ok && serviceOf(other) == name {
		warn("JobSet", "; use another spec.network.subdomain")
	}
	return texts
}

// serviceOf returns the name of the Service of a JobSet; empty if it needs none.
func serviceOf(js *jobset.JobSet) string {
	network := js.Spec.Network
	if network == nil || !ptr.Deref(network.EnableDNSHostnames, false) || validation.ManagedByOther(&js.Spec) {
		return ""
	}
	if network.Subdomain != "" {
		return network.Subdomain
	}
	return js.Name
}

// unique returns whether each group of a set has a Service.
func unique(set *leaderworkerset.LeaderWorkerSet) bool {
	network := set.Spec.NetworkConfig
	return network != nil && ptr.Deref(network.SubdomainPolicy, "") == leaderworkerset.SubdomainUniquePerReplica
}
