// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac holds the manifests of what our programs may do, for those who compare it with what they can do.
package rbac

import _ "embed"

var (
	// Server are the roles of jobset-apiserver and what binds them, in YAML.
	//go:embed apiserver.yaml
	Server string
	// Serving are the additional roles and bindings of a jobset-apiserver that makes its own certificate.
	//go:embed serving.yaml
	Serving string
	// Controller are the roles of jobset-controller and what binds them.
	//go:embed controller.yaml
	Controller string
	// LeaderWorkerSets are the additional roles of a jobset-controller that works on LeaderWorkerSets, and what binds them.
	//go:embed controller-leaderworkersets.yaml
	LeaderWorkerSets string
	// Endpoints are the additional roles of a jobset-controller that writes EndpointSlices, what binds them, and the policy that limits them.
	//go:embed endpoints.yaml
	Endpoints string
)
