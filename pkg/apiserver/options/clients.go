// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

const (
	// mainTimeout bounds what is asked of the main API before the server serves.
	mainTimeout = 10 * time.Second
	mainPause   = 250 * time.Millisecond
)

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
		return nil, wrapFlagError("kubeconfig", err, "give a valid kubeconfig for the main cluster")
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, wrapFlagError("kubeconfig", err, "give a valid kubeconfig for the main cluster")
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
		err = retryMain(ctx, "an answer", func(ctx context.Context) error {
			_, err := client.ServerVersionWithContext(ctx)
			return err
		})
	}
	return wrapFlagError("kubeconfig", err, "make sure that the main cluster's API server runs and that the file names its address, authority and valid credentials")
}

// retryMain asks the main API until it gives what is waited for, and returns the last error after mainTimeout. Both
// programs may start at the same time, and what an installation applies is in force a moment later. A certificate that
// cannot be verified stays so.
func retryMain(ctx context.Context, what string, ask func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, mainPause, mainTimeout, true, func(ctx context.Context) (bool, error) {
		err := ask(ctx)
		if err == nil {
			return true, nil
		}
		// The deadline cuts the last question off, and the answer before it says more.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if errors.As(err, new(*tls.CertificateVerificationError)) {
			return false, err
		}
		klog.FromContext(ctx).V(1).Info("Waiting for the main cluster", "for", what, "reason", err)
		return false, nil
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// newReviewClient returns a client for TokenReviews and SubjectAccessReviews. It has no rate limit: all callers would share
// it, and one of them could delay the others. badTokens, limitImpersonation, and priority and fairness bound the reviews.
func newReviewClient(flag, kubeconfig string, timeout time.Duration) (kubernetes.Interface, error) {
	config, err := loadKubeconfig(flag, kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.Timeout = timeout
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	return client, wrapFlagError(flag, err, "give a valid kubeconfig for the main cluster")
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
