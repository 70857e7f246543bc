// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"

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

// endpoints reports who writes the addresses of the Service, unless it is as the set asks. The controller of the addresses
// sends the event.
func endpoints(s state) changes {
	switch refusal := s.EndpointsRefusal; {
	case refusal == nil:
		return changes{}
	case refusal.Reason == "":
		return wants(quietly(end(jobsetv1alpha2.ServiceEndpointsByCluster, reasonEndpointsAsAsked, messageEndpointsAsAsked)))
	default:
		return wants(quietly(begin(jobsetv1alpha2.ServiceEndpointsByCluster, refusal.Reason, refusal.Message)))
	}
}
