// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig writes kubeconfigs for servers of tests.
package kubeconfig

import (
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// For returns the path of a kubeconfig for a server, with any token.
func For(t testing.TB, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	Write(t, path, &clientcmdapi.Cluster{Server: server}, "token")
	return path
}

// Write writes a kubeconfig. It may be called from any goroutine.
func Write(t testing.TB, path string, cluster *clientcmdapi.Cluster, token string) {
	t.Helper()
	const name = "test"
	config := clientcmdapi.NewConfig()
	config.Clusters[name], config.AuthInfos[name] = cluster, &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name], config.CurrentContext = &clientcmdapi.Context{Cluster: name, AuthInfo: name}, name
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Error(err)
	}
}
