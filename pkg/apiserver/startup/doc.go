// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package startup answers on the port of the server from the first moment, while the server waits for what it needs before it can serve:
// the API server of the main cluster, permissions there, and an external etcd.
//
// A process that ends instead is restarted by the kubelet after pauses that grow to five minutes, so that it comes back
// long after what it waited for. So the server stays: /livez and /healthz answer 200, because a restart cures nothing,
// and everything else answers 503 with the reason, except what needs none of these: the webhook for pods. When the API
// server that follows accepts its first connection, it takes over the port, which is never closed in between.
package startup
