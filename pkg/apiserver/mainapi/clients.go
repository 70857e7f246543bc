// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package mainapi

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
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/rewind"
)

// Clients reach the main API as the server itself.
type Clients struct {
	Config  *rest.Config
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	// Informers and DynamicInformers are for informers: their requests wait while the main API is away.
	Informers        kubernetes.Interface
	DynamicInformers dynamic.Interface
	Hold             *Hold
}

// Connect waits until the main API answers, and returns clients for it, with the credentials of the file or, without one, of the pod.
func (w *Waiter) Connect(ctx context.Context, kubeconfig, userAgent string) (*Clients, error) {
	config, err := w.await(ctx, kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = userAgent
	// Requests that wait here hold requests of our own clients up; the main API limits us by its own priorities.
	config.QPS = -1
	config.Dial = Dialer(dialTimeoutServing)
	rewind.Wrap(config)
	c := &Clients{Config: config, Hold: NewHold(ctx)}
	var errs [4]error
	c.Kube, errs[0] = kubernetes.NewForConfig(withProtobuf(config))
	c.Dynamic, errs[1] = dynamic.NewForConfig(config)
	c.Informers, errs[2] = kubernetes.NewForConfig(withProtobuf(c.Hold.Config(config)))
	c.DynamicInformers, errs[3] = dynamic.NewForConfig(c.Hold.Config(config))
	return c, flagerror.Wrap("kubeconfig", errors.Join(errs[:]...), "give a valid kubeconfig for the main cluster")
}

func withProtobuf(config *rest.Config) *rest.Config {
	typed := rest.CopyConfig(config)
	typed.ContentType = runtime.ContentTypeProtobuf
	typed.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return typed
}

// await waits until the main API answers, so that a wrong address is not reported as one of the things that are asked of it later. It
// returns the configuration with which it did.
func (w *Waiter) await(ctx context.Context, kubeconfig string) (*rest.Config, error) {
	config, err := LoadKubeconfig("kubeconfig", kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := newVersionClient(config)
	if err != nil {
		return nil, err
	}
	err = w.Retry(ctx, "the API server of the main cluster at "+config.Host, func(ctx context.Context) error {
		_, err := client.ServerVersionWithContext(ctx)
		if !apierrors.IsUnauthorized(err) {
			return err
		}
		// A user may have put other credentials into the file.
		if current, err := LoadKubeconfig("kubeconfig", kubeconfig); err == nil &&
			!reflect.DeepEqual(current, config) {
			if renewed, err := newVersionClient(current); err == nil {
				client, config = renewed, current
			}
		}
		return err
	})
	return config, flagerror.Wrap("kubeconfig", err, "make sure that the main cluster's API server runs and that the file names its "+
		"address, authority and valid credentials")
}

// LoadKubeconfig reads how to reach the main API from the file of a flag or, without one, from the pod.
func LoadKubeconfig(flag, path string) (*rest.Config, error) {
	if path == "" {
		config, err := rest.InClusterConfig()
		return config, flagerror.Wrap(flag, err, "give a kubeconfig for the main cluster when running outside of it")
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, flagerror.New(flag, "%s: %w: give a valid kubeconfig for the main cluster", path, err)
	}
	return config, nil
}

// newVersionClient returns a client for the first question.
func newVersionClient(config *rest.Config) (*discovery.DiscoveryClient, error) {
	bounded := rest.CopyConfig(config)
	bounded.Timeout, bounded.Dial = answerTimeout, Dialer(DialTimeout)
	client, err := discovery.NewDiscoveryClientForConfig(bounded)
	return client, flagerror.Wrap("kubeconfig", err, "give a valid kubeconfig for the main cluster")
}

// NewReviewClient returns a client for TokenReviews and SubjectAccessReviews. It has no rate limit: all callers would share
// it, and one of them could delay the others. BadTokens, the limit of impersonation, and priority and fairness bound the reviews.
func NewReviewClient(flag, kubeconfig string, timeout time.Duration) (kubernetes.Interface, error) {
	config, err := LoadKubeconfig(flag, kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.Timeout = timeout
	config.Dial = Dialer(dialTimeoutServing)
	client, err := kubernetes.NewForConfig(withProtobuf(config))
	return client, flagerror.Wrap(flag, err, "give a valid kubeconfig for the main cluster")
}

// NewInformers shares informers of the main API. They keep no managed fields: the server does not apply these objects.
func NewInformers(client kubernetes.Interface) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(func(object any) (any, error) {
		if accessor, err := meta.Accessor(object); err == nil {
			accessor.SetManagedFields(nil)
		}
		return object, nil
	}))
}

// revisionsPage is how many are read at a time: what an object can hold is bounded by the main cluster, so this bounds a page.
const revisionsPage = 10

// RevisionReader reads the revisions to which users roll back.
type RevisionReader struct {
	Client typedappsv1.ControllerRevisionsGetter
}

var _ provider.RevisionReader = RevisionReader{}

// List implements provider.RevisionReader. It stops at the first page that is too much.
func (r RevisionReader) List(ctx context.Context, namespace, label, value string) ([]appsv1.ControllerRevision, error) {
	options := metav1.ListOptions{LabelSelector: labels.Set{label: value}.String(), Limit: revisionsPage}
	var all []appsv1.ControllerRevision
	size := 0
	for {
		page, err := r.Client.ControllerRevisions(namespace).List(ctx, options)
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
