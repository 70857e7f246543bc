// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/version"

	// Metrics of requests to the APIs, of leader election and of the version.
	_ "k8s.io/component-base/metrics/prometheus/clientgo/leaderelection"
	_ "k8s.io/component-base/metrics/prometheus/restclient"
	_ "k8s.io/component-base/metrics/prometheus/version"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/endpointslices"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/rewind"
)

const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// clients are the clients of the controller, and what its parts share beside them. All clients talk to kube-apiserver,
// which passes requests for JobSets on.
type clients struct {
	main    kubernetes.Interface
	jobSets versioned.Interface
	// dynamic is for kinds that this program does not know.
	dynamic dynamic.Interface
	// lease has a timeout and a rate limit of its own, so that nothing can keep a leader from renewing its lease.
	lease kubernetes.Interface
	// endpoints lets other controllers ask the controller of that name.
	endpoints *endpoints.Handle
}

func (o *Options) newClients() (clients, error) {
	config, err := o.restConfig()
	if err != nil {
		return clients{}, err
	}
	var c clients
	if c.main, err = kubernetes.NewForConfig(config); err != nil {
		return c, o.flagError("kubeconfig", "%w", err)
	}
	if c.jobSets, err = versioned.NewForConfig(config); err != nil {
		return c, o.flagError("kubeconfig", "%w", err)
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return c, o.flagError("kubeconfig", "%w", err)
	}
	leases := rest.CopyConfig(config)
	leases.Timeout = o.LeaderElection.RenewDeadline.Duration
	if c.lease, err = kubernetes.NewForConfig(rest.AddUserAgent(leases, "leader-election")); err != nil {
		return c, o.flagError("kubeconfig", "%w", err)
	}
	return c, nil
}

func (o *Options) restConfig() (*rest.Config, error) {
	config, err := o.loadConfig()
	if err != nil {
		return nil, err
	}
	config.UserAgent = componentName + "/" + version.Get().GitVersion
	config.QPS, config.Burst = o.QPS, o.Burst
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.DisableCompression = true // the controller is near the API servers, and both sides would pay for it
	rewind.Wrap(config)
	return config, nil
}

func (o *Options) loadConfig() (*rest.Config, error) {
	if o.Kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, o.flagError("kubeconfig", "must be set outside of a cluster: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, o.flagError("kubeconfig", "must name a readable kubeconfig file: %w", err)
	}
	return config, nil
}

// leaseNamespace is where the lease is: where the flag says, else the namespace that this program runs in.
func (o *Options) leaseNamespace() (string, error) {
	const flag = "leader-elect-resource-namespace"
	if o.LeaderElection.ResourceNamespace != "" {
		return o.LeaderElection.ResourceNamespace, nil
	}
	data, err := os.ReadFile(namespaceFile)
	if os.IsNotExist(err) {
		return "", o.flagError(flag, "must be set outside of a cluster, to the namespace that holds the lease; "+
			"use --leader-elect=false if there is one controller only")
	}
	if err != nil {
		return "", o.flagError(flag, "must be set if the namespace of the pod cannot be read: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}
