// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replicas runs several jobset-apiservers for tests behind one address, as a Deployment and a Service do.
//
// The balancer does what kube-proxy does: each new connection goes to one of the endpoints, chosen at random; without an
// endpoint it is refused; a connection that exists stays with its server, whatever becomes of the endpoint. A server is an
// endpoint while its readiness probe says so. One that is asked to end, or has ended, stops being one some time later: that is
// the time that the kubelet, the controller of EndpointSlices and kube-proxy take.
package replicas
