// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

const (
	// presenceKept is how long an answer is used, and unknownKept how long after a failure discovery is asked again.
	presenceKept, unknownKept = 10 * time.Minute, time.Minute
)

// presenceVersions are the versions of the API that releases of Kueue in use serve. Each of them means that Kueue is there.
var presenceVersions = []string{plan.Version, "v1beta1"}

// Presence finds out whether the cluster has Kueue, and follows nothing of it. It asks nothing before a caller wants to know, and then
// discovery every ten minutes at most, with one request for each version.
type Presence struct {
	*informers.Answer[Availability]
	kube kubernetes.Interface
}

// NewPresence returns a Presence that has asked nothing.
func NewPresence(kube kubernetes.Interface, clock clock.PassiveClock) *Presence {
	p := &Presence{kube: kube}
	p.Answer = informers.NewAnswer(clock, p.ask, func(known Availability) time.Duration {
		if known == Unknown {
			return unknownKept
		}
		return presenceKept
	})
	return p
}

// ask returns Absent if discovery says that the API is not served in any version, Served if it is served in one, and Unknown if discovery
// does not answer.
func (p *Presence) ask(ctx context.Context) Availability {
	ctx, cancel := context.WithTimeout(ctx, groupTimeout)
	defer cancel()
	factory := informers.NewFactory(p.kube)
	for _, version := range presenceVersions {
		switch err := factory.Served(ctx, schema.GroupVersion{Group: plan.Group, Version: version}, workloads.Resource); {
		case err == nil:
			return Served
		case !apierrors.IsNotFound(err):
			klog.FromContext(ctx).V(4).Info("Could not ask whether Kueue is served", "reason", err)
			return Unknown
		}
	}
	return Absent
}
