// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

// Clients reach a cluster.
type Clients struct {
	REST    *rest.Config
	Kube    kubernetes.Interface
	JobSets versioned.Interface
}

// NewClients returns clients with the configuration.
func NewClients(config *rest.Config) (*Clients, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	jobSets, err := versioned.NewForConfig(config)
	return &Clients{REST: config, Kube: kube, JobSets: jobSets}, err
}
