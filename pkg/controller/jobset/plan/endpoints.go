// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

const (
	reasonEndpointsAsAsked  = "AsRequested"
	messageEndpointsAsAsked = "the addresses of the Service are written as the JobSet asks"
)

// EndpointsRefusal is why the controllers of the cluster write the addresses of the Service although the set asks for
// those of this program. Without a reason, they are written as the set asks.
type EndpointsRefusal struct {
	// Reason is in PascalCase, and Message says what to do.
	Reason, Message string
}

// setEndpoints reports who writes the addresses of the Service, if that is not who is to. The controller of the addresses sends the event.
func (b *statusBuilder) setEndpoints() {
	events := b.events
	switch refusal := b.o.EndpointsRefusal; {
	case refusal == nil:
	case refusal.Reason == "":
		b.endEndpoints(reasonEndpointsAsAsked, messageEndpointsAsAsked)
	default:
		b.set(jobsetv1alpha2.ServiceEndpointsByCluster, metav1.ConditionTrue, refusal.Reason, refusal.Message)
	}
	b.events = events
}

func (b *statusBuilder) endEndpoints(reason, message string) {
	events := b.events
	b.set(jobsetv1alpha2.ServiceEndpointsByCluster, metav1.ConditionFalse, reason, message)
	b.events = events
}
