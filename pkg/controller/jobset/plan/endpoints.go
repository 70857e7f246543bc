// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"

const (
	reasonEndpointsAsAsked  = "AsRequested"
	messageEndpointsAsAsked = "the addresses of the Service are written as the JobSet asks"
)

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
