// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

// lookEvery bounds the error of times until something is so.
const lookEvery = 10 * time.Millisecond

func (c *Cluster) apiServices() (dynamic.ResourceInterface, error) {
	client, err := dynamic.NewForConfig(c.Config(runtime.ContentTypeJSON))
	if err != nil {
		return nil, err
	}
	return client.Resource(apiservice.Resource), nil
}

// TouchAPIService makes kube-apiserver look at the server behind the APIService now.
func (c *Cluster) TouchAPIService(ctx context.Context) error {
	services, err := c.apiServices()
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"jobset-apiserver.io/bench":%q}}}`, time.Now().Format(time.RFC3339Nano))
	_, err = services.Patch(ctx, apiservice.JobSets, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// UntilAvailable waits until the APIService is available, or until it is not.
func (c *Cluster) UntilAvailable(ctx context.Context, wanted bool) error {
	services, err := c.apiServices()
	if err != nil {
		return err
	}
	if !wanted {
		// Otherwise it would be noticed within 30 seconds only.
		if err := c.TouchAPIService(ctx); err != nil {
			return err
		}
	}
	return wait.PollUntilContextCancel(ctx, lookEvery, true, func(ctx context.Context) (bool, error) {
		service, err := services.Get(ctx, apiservice.JobSets, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		status, _ := apiservice.Available(service)
		return (status == "True") == wanted, nil
	})
}

// UntilReady waits until jobset-apiserver itself says that it is ready.
func (c *Cluster) UntilReady(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, lookEvery, true, func(ctx context.Context) (bool, error) {
		_, err := c.read(ctx, "jobset-apiserver", "/readyz", nil)
		return err == nil, nil
	})
}
