// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/rewind"
)

// clients reach the main API as the server itself.
type clients struct {
	config  *rest.Config
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	// informers and dynamicInformers are for informers: their requests wait while the main API is away.
	informers        kubernetes.Interface
	dynamicInformers dynamic.Interface
	hold             *hold
}

func (o *Options) newClients(ctx context.Context) (*clients, error) {
	config, err := o.awaitMain(ctx)
	if err != nil {
		return nil, err
	}
	config.UserAgent = componentName + "/" + newEffectiveVersion().Info().GitVersion
	// Requests that wait here hold requests of our own clients up; the main API limits us by its own priorities.
	config.QPS = -1
	config.Dial = dialer(dialTimeoutServing)
	rewind.Wrap(config)
	c := &clients{config: config, hold: newHold(ctx)}
	var errs [4]error
	c.kube, errs[0] = kubernetes.NewForConfig(withProtobuf(config))
	c.dynamic, errs[1] = dynamic.NewForConfig(config)
	c.informers, errs[2] = kubernetes.NewForConfig(withProtobuf(c.hold.config(config)))
	c.dynamicInformers, errs[3] = dynamic.NewForConfig(c.hold.config(config))
	return c, wrapFlagError("kubeconfig", errors.Join(errs[:]...), "give a valid kubeconfig for the main cluster")
}

func withProtobuf(config *rest.Config) *rest.Config {
	typed := rest.CopyConfig(config)
	typed.ContentType = runtime.ContentTypeProtobuf
	typed.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return typed
}

// awaitMain waits until the main API answers, so that a wrong address is not reported as one of the things that are asked of it later. It
// returns the configuration with which it did.
func (o *Options) awaitMain(ctx context.Context) (*rest.Config, error) {
	config, err := loadKubeconfig("kubeconfig", o.Recommended.CoreAPI.CoreAPIKubeconfigPath)
	if err != nil {
		return nil, err
	}
	client, err := newVersionClient(config)
	if err != nil {
		return nil, err
	}
	err = o.retryMain(ctx, "the API server of the main cluster at "+config.Host, func(ctx context.Context) error {
		_, err := client.ServerVersionWithContext(ctx)
		if !apierrors.IsUnauthorized(err) {
			return err
		}
		// A user may have put other credentials into the file.
		if current, err := loadKubeconfig("kubeconfig", o.Recommended.CoreAPI.CoreAPIKubeconfigPath); err == nil &&
			!reflect.DeepEqual(current, config) {
			if renewed, err := newVersionClient(current); err == nil {
				client, config = renewed, current
			}
		}
		return err
	})
	return config, wrapFlagError("kubeconfig", err, "make sure that the main cluster's API server runs and that the file names its "+
		"address, authority and valid credentials")
}

// newVersionClient returns a client for the first question.
func newVersionClient(config *rest.Config) (*discovery.DiscoveryClient, error) {
	bounded := rest.CopyConfig(config)
	bounded.Timeout, bounded.Dial = answerTimeout, dialer(dialTimeout)
	client, err := discovery.NewDiscoveryClientForConfig(bounded)
	return client, wrapFlagError("kubeconfig", err, "give a valid kubeconfig for the main cluster")
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
	config.Dial = dialer(dialTimeoutServing)
	client, err := kubernetes.NewForConfig(withProtobuf(config))
	return client, wrapFlagError(flag, err, "give a valid kubeconfig for the main cluster")
}

// newInformers shares informers of the main API. They keep no managed fields: the server does not apply these objects.
func newInformers(client kubernetes.Interface) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(func(object any) (any, error) {
		if accessor, err := meta.Accessor(object); err == nil {
			accessor.SetManagedFields(nil)
		}
		return object, nil
	}))
}

// revisionsPage is how many are read at a time: what an object can hold is bounded by the main cluster, so this bounds a page.
const revisionsPage = 10

// revisionReader reads the revisions to which users roll back.
type revisionReader struct {
	client typedappsv1.ControllerRevisionsGetter
}

var _ provider.RevisionReader = revisionReader{}

// List implements provider.RevisionReader. It stops at the first page that is too much.
func (r revisionReader) List(ctx context.Context, namespace, label, value string) ([]appsv1.ControllerRevision, error) {
	options := metav1.ListOptions{LabelSelector: labels.Set{label: value}.String(), Limit: revisionsPage}
	var all []appsv1.ControllerRevision
	size := 0
	for {
		page, err := r.client.ControllerRevisions(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			item := &page.Items[i]
			item.ManagedFields = nil
			size += len(item.Data.Raw)
			all = append(all, *item)
		}
		if len(all) > provider.MaxRevisions || size > provider.MaxRevisionBytes {
			return nil, fmt.Errorf("namespace %s has more than %d ControllerRevisions with the label %s=%s, or they hold more than %d MiB: "+
				"delete those that are not needed",
				namespace, provider.MaxRevisions, label, value, provider.MaxRevisionBytes>>20)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return all, nil
		}
	}
}
