// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"os"
	"path/filepath"
)

// WebhookClient is the common name of the certificate with which kube-apiserver calls webhooks.
const WebhookClient = "kube-apiserver-webhooks"

// writeWebhookClient writes a client certificate for the calls of webhooks, and the configuration of admission that names it.
func (p *ControlPlane) writeWebhookClient() (config string, err error) {
	dir := filepath.Join(p.dir, "webhook-client")
	_, cert, key, err := p.FrontProxy.WriteClient(dir, WebhookClient)
	if err != nil {
		return "", err
	}
	kubeconfig, config := filepath.Join(dir, "webhooks.kubeconfig"), filepath.Join(dir, "admission.yaml")
	// The port of the Service differs from test to test, and is a part of the name for ports other than 443.
	users := fmt.Sprintf("apiVersion: v1\nkind: Config\nusers:\n- name: '*'\n  user: {client-certificate: %s, client-key: %s}\n", cert, key)
	if err := os.WriteFile(kubeconfig, []byte(users), 0o600); err != nil {
		return "", err
	}
	content := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: MutatingAdmissionWebhook\n  configuration:\n" +
		"    apiVersion: apiserver.config.k8s.io/v1\n    kind: WebhookAdmissionConfiguration\n    kubeConfigFile: " + kubeconfig + "\n"
	return config, os.WriteFile(config, []byte(content), 0o600)
}
