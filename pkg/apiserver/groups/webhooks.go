// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"github.com/jobset-apiserver/jobset-apiserver/pkg/admission/leaderworkerpods"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/webhook"
)

// PodsPath is where kube-apiserver sends pods of LeaderWorkerSets that are being created.
const PodsPath = "/mutate--v1-pod"

// PodsWebhook is the name of the MutatingWebhookConfiguration that makes kube-apiserver send them.
const PodsWebhook = "jobset-apiserver-pods"

// Webhooks returns what the server answers when kube-apiserver asks about objects of its own. They are served whatever
// resources are: pods of sets are created also while the sets themselves are not served.
func Webhooks() []webhook.Webhook {
	return []webhook.Webhook{{Path: PodsPath, Mutate: leaderworkerpods.Mutate}}
}
