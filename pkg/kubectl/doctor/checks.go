// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/outage"
)

// unread is the result of a check whose source could not be read.
func unread(what string, err error) (Status, string) {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return Warn, fmt.Sprintf("you have no permission to read %s; the ClusterRole jobset-doctor grants it", what)
	}
	return Fail, fmt.Sprintf("%s could not be read: %v", what, err)
}

// registered checks that kube-apiserver forwards our groups to a server.
func registered(_ context.Context, p *inspection) (Status, string) {
	if p.serviceErr != nil {
		return unread("APIServices", p.serviceErr)
	}
	var missing, local, found []string
	for i, kind := range p.kinds() {
		name := outage.Name(kind)
		switch {
		case p.services[i] == nil:
			missing = append(missing, name)
		case backend(p.services[i]) == "":
			local = append(local, name)
		default:
			found = append(found, name)
		}
	}
	switch {
	case p.services[0] == nil:
		return Fail, fmt.Sprintf("there is no APIService %s; apply the manifests of jobset-apiserver", cli.Join(missing, "or"))
	case len(local) > 0:
		return Warn, fmt.Sprintf("%s is served by kube-apiserver itself, from a CustomResourceDefinition, and not by jobset-apiserver",
			strings.Join(local, ", "))
	case len(missing) > 0:
		return Warn, fmt.Sprintf("%s is registered, but there is no APIService %s", cli.Join(found, "and"), cli.Join(missing, "or"))
	}
	return OK, cli.Join(found, "and") + " are registered"
}

// backend is the Service that serves the group of an APIService; "" for kube-apiserver itself.
func backend(service *unstructured.Unstructured) string {
	namespace, _, _ := unstructured.NestedString(service.Object, "spec", "service", "namespace")
	name, _, _ := unstructured.NestedString(service.Object, "spec", "service", "name")
	if name == "" {
		return ""
	}
	return namespace + "/" + name
}

// available checks that kube-apiserver reaches the server.
func available(_ context.Context, p *inspection) (Status, string) {
	if p.serviceErr != nil {
		return unread("APIServices", p.serviceErr)
	}
	var bad, good []string
	for i, kind := range p.kinds() {
		if p.services[i] == nil {
			continue
		}
		c := outage.Available(p.services[i])
		switch {
		case c == nil:
			bad = append(bad, outage.Name(kind)+" has no condition Available yet")
		case c.Status != metav1.ConditionTrue:
			bad = append(bad, fmt.Sprintf("%s: Available is %s (%s): %s", outage.Name(kind), c.Status, c.Reason, c.Message))
		default:
			good = append(good, outage.Name(kind))
		}
	}
	switch {
	case len(bad) > 0:
		return Fail, strings.Join(bad, "; ")
	case len(good) == 0:
		return Fail, "no APIService exists that could be available"
	case p.away != nil:
		return Fail, fmt.Sprintf("the condition Available of the APIServices is True, but JobSets are not served: %v", p.away)
	}
	return OK, "kube-apiserver reaches the server of " + cli.Join(good, "and")
}

// store checks whether a server refuses to serve its store.
func store(_ context.Context, p *inspection) (Status, string) {
	switch {
	case p.recordErr != nil:
		return unread(outage.Location, p.recordErr)
	case p.record == nil && p.serves():
		return Warn, "there is no record in " + outage.Location +
			": the server runs with --store-witness=false or is older than the witness, or the record was deleted; apply the manifests, " +
			"which have the ConfigMap, and restart the server"
	case p.record == nil:
		return Warn, "there is no record in " + outage.Location + ": no server has served here yet"
	case len(p.lost()) > 0:
		return Fail, fmt.Sprintf("the data directories of %s are empty, so that most members of the embedded etcd have lost their data",
			cli.Join(p.lost(), "and"))
	case p.record.Refusal == nil:
		return OK, fmt.Sprintf("no server refuses to serve; the store is %s, its floor is revision %d", p.record.UUID, p.record.Floor)
	}
	r := p.record.Refusal
	message := fmt.Sprintf("%s: %s", outage.Refused(r, p.now), r.Message)
	if len(r.Groups) > 0 {
		return Fail, message
	}
	if p.serves() {
		return Warn, "kube-apiserver reaches a server, but another one refuses. " + message
	}
	return Fail, message
}

// acceptance checks whether something that an administrator accepted waits for a server.
func acceptance(_ context.Context, p *inspection) (Status, string) {
	switch {
	case p.recordErr != nil:
		return unread(outage.Location, p.recordErr)
	case p.record == nil || p.record.Accepted == nil:
		return OK, "no acceptance waits"
	}
	a := p.record.Accepted
	named := fmt.Sprintf("store %s at revision %d was accepted", a.NewUUID, a.Revision)
	switch {
	case p.record.Refusal == nil:
		return Warn, named + ", but no server refuses to serve; the acceptance has no effect"
	case !p.record.Accepts(p.record.Refusal):
		return Warn, fmt.Sprintf("%s, but the server found %s at revision %d; run `store accept` with these values", named,
			p.record.Refusal.NewUUID, p.record.Refusal.Revision)
	}
	return Warn, named + " and waits for the server to adopt it, which takes seconds once the server runs"
}

// restore reports the last store that was adopted.
func restore(_ context.Context, p *inspection) (Status, string) {
	switch {
	case p.recordErr != nil:
		return unread(outage.Location, p.recordErr)
	case p.record == nil || p.record.Restored == nil:
		return OK, "the store has never been replaced"
	}
	r := p.record.Restored
	return OK, fmt.Sprintf("the store was replaced %s, at revision %d", cli.Ago(p.now, r.Time.Time), r.Revision)
}
