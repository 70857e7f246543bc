// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/endpointslices"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/manager"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/scheme"
)

// serviceEndpointsFlag is the flag for who writes the addresses of headless Services, and serviceEndpoints are its values.
const serviceEndpointsFlag = "service-endpoints"

var serviceEndpoints = []string{
	jobsetv1alpha2.ServiceEndpointsCluster, jobsetv1alpha2.ServiceEndpointsController, jobsetv1alpha2.ServiceEndpointsAuto,
}

func (o *Options) addServiceEndpointsFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.ServiceEndpoints, serviceEndpointsFlag, o.ServiceEndpoints,
		"Who writes the addresses of the headless Services of JobSets: controller writes EndpointSlices, at a fraction of the cost, for "+
			"clusters whose DNS server reads EndpointSlices; auto does so only while many pods of a set of 100 or more come and go, and "+
			"cluster leaves them to kube-controller-manager. The annotation "+jobsetv1alpha2.ServiceEndpointsKey+" of a JobSet overrides it.")
	fs.BoolVar(&o.ServiceEndpointsCanary, "service-endpoints-canary", o.ServiceEndpointsCanary,
		"Write EndpointSlices only while a canary record in the namespace of this program resolves by the resolver of its host or pod. Switch "+
			"it off in a cluster without DNS.")
}

func (o *Options) validateServiceEndpoints() error {
	if !slices.Contains(serviceEndpoints, o.ServiceEndpoints) {
		return o.flagError(serviceEndpointsFlag, "must be cluster, controller or auto, not %q", o.ServiceEndpoints)
	}
	return nil
}

func newEndpointsController(o *Options, clients clients, kind *informers.Kind,
	broadcaster events.EventBroadcaster) (manager.Controller, error) {
	config := endpoints.Config{
		JobSets:   clients.jobSets,
		Kube:      clients.main,
		Informers: kind,
		Recorder:  broadcaster.NewRecorder(scheme.Scheme, endpoints.Name),
		Clock:     clock.RealClock{},
		Workers:   *o.Workers[endpoints.Name],
		Mode:      o.ServiceEndpoints,
		Handle:    clients.endpoints,
	}
	if o.ServiceEndpointsCanary {
		namespace, err := o.leaseNamespace()
		if err != nil {
			namespace = "default" // outside of the cluster, where its resolver is hardly in use
		}
		config.Canary = &endpoints.Canary{Kube: clients.main, Namespace: namespace, Resolver: net.DefaultResolver}
	}
	return endpoints.New(config)
}
