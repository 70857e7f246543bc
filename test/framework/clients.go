// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
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

// WriteKubeconfig writes a kubeconfig with a token of one of our service accounts, which is good for a day.
func (c *Clients) WriteKubeconfig(ctx context.Context, account, path string) error {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](24 * 3600)}}
	token, err := c.Kube.CoreV1().ServiceAccounts(apiservice.Namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = &clientcmdapi.Cluster{
		Server: c.REST.Host, CertificateAuthorityData: c.REST.CAData, TLSServerName: c.REST.ServerName,
	}
	config.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: account}
	config.CurrentContext = "local"
	return clientcmd.WriteToFile(*config, path)
}
