// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// client-go creates, watches, changes and restarts JobSets and a LeaderWorkerSet with the generated clients. It runs in the namespace of
// the kubeconfig, removes what it has created, and prints each step:
//
//	go run . [--kubeconfig=FILE]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

// example is what all steps use.
type example struct {
	client    versioned.Interface
	namespace string
}

func main() {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	flag.StringVar(&rules.ExplicitPath, "kubeconfig", "", "kubeconfig to use in place of the default one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig clientcmd.ClientConfig) (err error) {
	config, err := kubeconfig.ClientConfig()
	if err != nil {
		return err
	}
	namespace, _, err := kubeconfig.Namespace()
	if err != nil {
		return err
	}
	// The types have a protobuf encoding, which is smaller and faster than JSON. An update in protobuf also can remove fields that
	// upstream's types lack; one in JSON keeps them.
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	e := &example{client: client, namespace: namespace}
	defer func() { err = errors.Join(err, e.remove(context.WithoutCancel(ctx))) }()
	for _, step := range []func(context.Context) error{e.create, e.watch, e.apply, e.restart, e.complete, e.groups} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes what the steps have created. Jobs and pods follow.
func (e *example) remove(ctx context.Context) error {
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	return errors.Join(
		e.client.JobsetV1alpha2().JobSets(e.namespace).Delete(ctx, setName, options),
		e.client.LeaderworkersetV1().LeaderWorkerSets(e.namespace).Delete(ctx, groupsName, options),
	)
}
