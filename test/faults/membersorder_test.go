// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// startOrders are faults in which all servers are away and are started in each order. A server cannot serve before the second one is there.
func startOrders() (faults []memberFault) {
	for _, order := range permutations("0", "1", "2") {
		happen := func(ctx context.Context, e *embedded) error { return e.startAs(ctx, order) }
		faults = append(faults, memberFault{name: "all started as " + strings.Join(order, ","), kind: "order", happen: happen})
	}
	return faults
}

func (e *embedded) startAs(ctx context.Context, order []string) error {
	for _, server := range e.servers.Servers {
		server.Kill()
	}
	for _, ordinal := range order {
		time.Sleep(restartPause)
		if err := e.servers.Servers[ordinal[0]-'0'].Start(); err != nil {
			return err
		}
	}
	return e.servers.AwaitEndpoints(ctx)
}

// deleteNamespace deletes a namespace with a set in it while a server is away, the one with the leader.
func deleteNamespace(ctx context.Context, e *embedded) error {
	chosen, err := e.leader(ctx)
	if err != nil {
		return err
	}
	namespaces := e.Kube.CoreV1().Namespaces()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "deleted-"}}
	if namespace, err = namespaces.Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	set := builders.JobSet("set", builders.WithJobs("w", 1, 1))
	set.Namespace = namespace.Name
	if _, err := e.JobSets.JobsetV1alpha2().JobSets(namespace.Name).Create(ctx, set, metav1.CreateOptions{}); err != nil {
		return err
	}
	e.servers.Servers[chosen].Kill()
	if err := namespaces.Delete(ctx, namespace.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	other := e.servers.Servers[(chosen+1)%size].Process()
	gone := other.Await(ctx, "lets the namespace be deleted", func(ctx context.Context) error {
		_, err := namespaces.Get(ctx, namespace.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(fmt.Errorf("namespace %s is still there", namespace.Name), err)
	})
	return errors.Join(gone, e.away(ctx, restartPause, chosen))
}
