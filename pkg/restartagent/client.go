// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package restartagent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/rewind"
)

// backoff is the pause between requests that fail: at first a fifth of a second, at the end half a minute. A set may
// have thousands of agents.
func backoff() *wait.Backoff {
	return &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 9, Cap: 30 * time.Second}
}

// requestTimeout bounds single requests, other than watches.
const requestTimeout = 30 * time.Second

// client reads the set and writes the annotation of the pod.
type client struct {
	config     *Config
	rest       *rest.RESTClient
	parameters runtime.ParameterCodec
}

func newClient(config *Config, connection *rest.Config) (*client, error) {
	scheme := newScheme()
	connection = rest.CopyConfig(connection)
	connection.GroupVersion, connection.APIPath = &jobSetVersion, "/apis"
	connection.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	connection.ContentType = runtime.ContentTypeJSON
	if connection.UserAgent == "" {
		connection.UserAgent = fieldManager
	}
	rewind.Wrap(connection)
	c, err := rest.RESTClientFor(connection)
	return &client{config, c, runtime.NewParameterCodec(scheme)}, err
}

// watch calls a function with each state of the set, until the context ends. The function must not block for long.
func (c *client) watch(ctx context.Context, observe func(*JobSet)) {
	only := func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", c.config.JobSet).String()
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			only(&options)
			// The default is whatever state a server has in its cache, which may be an old one.
			options.ResourceVersion, options.ResourceVersionMatch = "", ""
			list := &JobSetList{}
			err := c.sets().VersionedParams(&options, c.parameters).Timeout(requestTimeout).Do(ctx).Into(list)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			only(&options)
			options.Watch = true
			return c.sets().VersionedParams(&options, c.parameters).Watch(ctx)
		},
	}
	reflector := cache.NewReflectorWithOptions(source, &JobSet{}, sink(observe), cache.ReflectorOptions{Name: "jobset", Backoff: backoff()})
	reflector.RunWithContext(ctx)
}

func (c *client) sets() *rest.Request {
	return c.rest.Get().Namespace(c.config.Namespace).Resource("jobsets")
}

// report writes the attempt, as often as it takes, and returns the pod.
func (c *client) report(ctx context.Context, attempt int32) (*Pod, error) {
	for delay := backoff(); ; {
		pod, err := c.reportOnce(ctx, attempt)
		if err == nil {
			return pod, nil
		}
		pause := delay.Step()
		klog.FromContext(ctx).Error(err, "The attempt was not written, trying again", "pod", c.config.Pod, "attempt", attempt, "in",
			pause.Round(time.Millisecond))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (c *client) reportOnce(ctx context.Context, attempt int32) (*Pod, error) {
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": c.config.Pod, "namespace": c.config.Namespace,
			"annotations": map[string]string{attemptKey: fmt.Sprint(attempt)}},
	})
	if err != nil {
		return nil, err
	}
	answer, err := c.rest.Patch(types.ApplyYAMLPatchType).AbsPath("/api/v1/namespaces", c.config.Namespace, "pods", c.config.Pod).
		Param("fieldManager", fieldManager).Param("force", "true").Timeout(requestTimeout).Body(body).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	pod := &Pod{}
	return pod, json.Unmarshal(answer, pod)
}

// sink passes the states of the one set on.
type sink func(*JobSet)

var _ cache.ReflectorStore = sink(nil)

// Add is called with a set that appears.
func (s sink) Add(object any) error {
	if set, ok := object.(*JobSet); ok {
		s(set)
	}
	return nil
}

// Update is called with a set that changes.
func (s sink) Update(object any) error { return s.Add(object) }

// Delete is called with a set that goes. Its pods follow.
func (s sink) Delete(any) error { return nil }

// Replace is called with all sets of a list.
func (s sink) Replace(objects []any, _ string) error {
	for _, object := range objects {
		_ = s.Add(object)
	}
	return nil
}

// Resync has nothing to do.
func (s sink) Resync() error { return nil }
