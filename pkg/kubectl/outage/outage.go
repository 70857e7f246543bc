// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package outage finds out why our API does not answer. When jobset-apiserver refuses to serve its store, kube-apiserver hides the
// answer of the server behind its own. So the server writes why it refuses into a ConfigMap of the main cluster (see package witness).
// This package reads the ConfigMap and the APIService, and describes what they say.
package outage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

const (
	// Location is the ConfigMap that has the reason, as messages name it.
	Location = "ConfigMap " + witness.Namespace + "/" + witness.Name
	// StaleAfter is the age of a confirmation from which a refusal may be over. The server confirms it every minute.
	StaleAfter = 3 * time.Minute
	// readTimeout bounds the reading, which comes after a command has failed already.
	readTimeout = 10 * time.Second
)

// APIServices is the resource in which kube-apiserver registers groups of other servers.
var APIServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// Name returns the name of the APIService of a kind.
func Name(kind cli.Kind) string { return kind.GroupVersion.Version + "." + kind.GroupVersion.Group }

// Record reads the record of the store. Both results are nil if there is none.
func Record(ctx context.Context, client kubernetes.Interface) (*witness.Record, error) {
	cm, err := client.CoreV1().ConfigMaps(witness.Namespace).Get(ctx, witness.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return witness.Read(cm)
}

// APIService reads the APIService of a kind. Both results are nil if there is none.
func APIService(ctx context.Context, client dynamic.Interface, kind cli.Kind) (*unstructured.Unstructured, error) {
	service, err := client.Resource(APIServices).Get(ctx, Name(kind), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return service, err
}

// Available returns the condition of an APIService; nil if it has none yet.
func Available(service *unstructured.Unstructured) *metav1.Condition {
	conditions, _, _ := unstructured.NestedSlice(service.Object, "status", "conditions")
	for _, c := range conditions {
		fields, ok := c.(map[string]any)
		if !ok || fields["type"] != "Available" {
			continue
		}
		text := func(key string) string { s, _ := fields[key].(string); return cli.Clean(s) }
		return &metav1.Condition{Type: "Available", Status: metav1.ConditionStatus(text("status")), Reason: text("reason"),
			Message: text("message")}
	}
	return nil
}

// Refused describes a refusal in one sentence, without the paragraph of the server.
func Refused(r *witness.Refusal, now time.Time) string {
	what := "its store"
	if len(r.Groups) > 0 {
		what = cli.Clean(strings.Join(r.Groups, ", "))
	}
	return fmt.Sprintf("jobset-apiserver refuses to serve %s (%s, %s)", what, cli.Clean(string(r.Reason)), Confirmed(r, now))
}

// Confirmed describes when which server has confirmed a refusal, and that it may be over.
func Confirmed(r *witness.Refusal, now time.Time) string {
	server := cli.Clean(r.Server)
	if Stale(r, now) {
		return fmt.Sprintf("last confirmed by %s %s; it may be over, that server may not run, or its clock may be wrong", server,
			cli.Ago(now, r.Time.Time))
	}
	return fmt.Sprintf("confirmed by %s %s", server, cli.Ago(now, r.Time.Time))
}

// Stale returns whether the refusal may be over, because the server has not confirmed it.
func Stale(r *witness.Refusal, now time.Time) bool { return now.Sub(r.Time.Time) > StaleAfter }

// Unreadable describes why the record of the store is not known, and what the user can do.
func Unreadable(err error) string {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return "if jobset-apiserver refuses to serve, " + Location +
			" has the reason, which you have no permission to read; ask an administrator of the cluster to run `kubectl jobset doctor`"
	}
	return "whether jobset-apiserver refuses to serve is not known: " + cli.Clean(err.Error())
}

// Concerns returns whether an error means that our API does not answer.
func Concerns(err error) bool {
	return err != nil && (apierrors.IsServiceUnavailable(err) || cli.IsNotServed(err) || meta.IsNoMatchError(err))
}

// Explain returns the error with why our API does not answer, if that is what the error is about and something is known.
func Explain(ctx context.Context, c *cli.Clients, err error, kinds ...cli.Kind) error {
	var done *cli.ExplainedError
	if !Concerns(err) || errors.As(err, &done) {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, readTimeout)
	defer stop()
	if text := describe(ctx, c, cli.KindOf(err, kinds)); text != "" {
		return &cli.ExplainedError{Err: err, Text: text}
	}
	return err
}

// describe returns what is known about the server of a kind; "" if no server is registered.
func describe(ctx context.Context, c *cli.Clients, kind cli.Kind) string {
	record, err := Record(ctx, c.Kube)
	if record != nil && record.Refusal.Concerns(kind.GroupVersion.Group) {
		return Refused(record.Refusal, time.Now()) + ": " + cli.Clean(record.Refusal.Message)
	}
	service, serviceErr := APIService(ctx, c.Dynamic, kind)
	if service == nil && serviceErr == nil {
		return "" // nothing is registered, as the error says
	}
	known := condition(service, serviceErr, kind)
	switch {
	case err != nil:
		return known + "; " + Unreadable(err)
	case record == nil:
		return known + "; no server has recorded that it refuses to serve: there is no " + Location
	}
	return known + "; no server has recorded in " + Location +
		" that it refuses to serve, so it does not run, or kube-apiserver does not reach it"
}

// condition describes what the APIService says.
func condition(service *unstructured.Unstructured, err error, kind cli.Kind) string {
	switch name := "APIService " + Name(kind); {
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return "you have no permission to read " + name
	case err != nil:
		return name + " could not be read: " + cli.Clean(err.Error())
	default:
		if c := Available(service); c != nil {
			return fmt.Sprintf("%s: Available is %s (%s): %s", name, c.Status, c.Reason, c.Message)
		}
		return name + " has no condition Available yet"
	}
}

// Kinds are the kinds whose groups our server serves, one for each group.
func Kinds() []cli.Kind { return []cli.Kind{cli.JobSet, cli.SequentialJob, cli.LeaderWorkerSet} }
