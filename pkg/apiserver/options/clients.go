// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// mainTimeout bounds what is asked of the main API before the server serves.
const mainTimeout = 10 * time.Second

// clients reach the main API as the server itself.
type clients struct {
	config  *rest.Config
	kube    kubernetes.Interface
	dynamic dynamic.Interface
}

func (o *Options) newClients(ctx context.Context) (*clients, error) {
	config, err := loadKubeconfig("kubeconfig", o.Recommended.CoreAPI.CoreAPIKubeconfigPath)
	if err != nil {
		return nil, err
	}
	config.UserAgent = componentName + "/" + newEffectiveVersion().Info().GitVersion
	// Requests that wait here hold requests of our own clients up; the main API limits us by its own priorities.
	config.QPS = -1
	c := &clients{config: config}
	typed := rest.CopyConfig(config)
	typed.ContentType = runtime.ContentTypeProtobuf
	typed.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if c.kube, err = kubernetes.NewForConfig(typed); err != nil {
		return nil, blame("kubeconfig", err, "give a valid kubeconfig for the main cluster")
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, blame("kubeconfig", err, "give a valid kubeconfig for the main cluster")
	}
	return c, o.awaitMain(ctx, config)
}

// awaitMain makes sure that the main API answers, so that a wrong address is not reported as one of the things that are
// asked of it later.
func (o *Options) awaitMain(ctx context.Context, config *rest.Config) error {
	bounded := rest.CopyConfig(config)
	bounded.Timeout = mainTimeout
	client, err := discovery.NewDiscoveryClientForConfig(bounded)
	if err == nil {
		_, err = client.ServerVersion()
	}
	return blame("kubeconfig", err, "make sure that the main cluster's API server runs and that the file names its address, authority and valid credentials")
}

// newInformers shares informers of the main API. They keep no managed fields: nobody here applies to these objects.
func newInformers(client kubernetes.Interface) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(func(object any) (any, error) {
		if accessor, err := meta.Accessor(object); err == nil {
			accessor.SetManagedFields(nil)
		}
		return object, nil
	}))
}
