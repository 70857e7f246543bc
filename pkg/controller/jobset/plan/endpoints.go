// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

const (
	reasonEndpointsAsAsked  = "AsRequested"
	messageEndpointsAsAsked = "the addresses of the Service are written as the JobSet asks"
)

// endpoints returns who writes the addresses of the Service, unless it is as the set asks. The controller of the addresses
// sends the event.
func endpoints(o Observed) []hostplan.Trouble {
	t := over(jobsetv1alpha2.ServiceEndpointsByCluster, reasonEndpointsAsAsked, messageEndpointsAsAsked)
	t.Quiet = true
	switch refusal := o.EndpointsRefusal; {
	case refusal == nil:
		return nil
	case refusal.Reason != "":
		t.Over, t.Reason, t.Message = false, refusal.Reason, refusal.Message
	}
	return []hostplan.Trouble{t}
}
