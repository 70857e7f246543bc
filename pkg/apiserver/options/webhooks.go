// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net/http"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/groups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/webhook"
)

// applyWebhooks answers kube-apiserver's questions about pods.
func (o *Options) applyWebhooks(config *apiserver.Config) {
	callers := webhook.Callers{Names: o.PodWebhookClientNames}
	if authority := config.Generic.SecureServing.ClientCA; authority != nil {
		callers.Authorities = authority.VerifyOptions
	}
	config.Filters.Webhooks = func(next http.Handler) http.Handler {
		return webhook.NewHandler(next, callers, groups.Webhooks()...)
	}
}
