// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net/http"

	"k8s.io/apiserver/pkg/server"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/groups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/webhook"
)

// applyWebhooks answers kube-apiserver's questions about pods before everything else: it sends no credentials with them
// unless it is told to, and the answers need no store.
func (o *Options) applyWebhooks(config *server.Config) {
	callers := webhook.Callers{Names: o.PodWebhookClientNames}
	if authority := config.SecureServing.ClientCA; authority != nil {
		callers.Authorities = authority.VerifyOptions
	}
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, c *server.Config) http.Handler {
		return webhook.NewHandler(build(handler, c), callers, groups.Webhooks()...)
	}
}
