// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selfcheck makes the document in which the server says what it knows about itself; see pkg/selfcheck for what it means. Making it
// costs the store and kube-apiserver a handful of requests, so that one document answers all who ask within a few seconds.
package selfcheck

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/version"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/unreadable"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/selfcheck"
)

const (
	// freshFor is how long a document answers.
	freshFor = 2 * time.Second
	// timeout bounds the making of a document.
	timeout = 4 * time.Second
)

// Checker makes documents.
type Checker struct {
	// Main asks kube-apiserver.
	Main kubernetes.Interface
	// Transport says where the store is, and Embedded that it is in this process.
	Transport storagebackend.TransportConfig
	Embedded  bool
	// Certificate is what the server presents; nil if that is not known.
	Certificate dynamiccertificates.CertKeyContentProvider
	// Ready are the readiness checks whose reasons are given.
	Ready []healthz.HealthChecker
	// Gates are the states of the feature gates.
	Gates map[string]bool
	// Unreadable returns the objects in the store that the server cannot read; nil if that is not known.
	Unreadable func() []unreadable.Object

	// memberTimeout is how long a member has to answer; 0 means the usual time.
	memberTimeout time.Duration

	mu   sync.Mutex
	made time.Time
	last []byte
	// making is closed when the document that is being made is there; nil if none is.
	making chan struct{}
}

// ServeHTTP answers with the document.
func (c *Checker) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	content := c.current(req)
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(content) // the client went away
}

// current returns the document, which is made if the last one is too old. Requests that come meanwhile wait for it. It is also made if the
// first one goes away, because others may wait.
func (c *Checker) current(req *http.Request) []byte {
	c.mu.Lock()
	if time.Since(c.made) < freshFor {
		defer c.mu.Unlock()
		return c.last
	}
	if c.making == nil {
		c.making = make(chan struct{})
		ctx, stop := context.WithTimeout(context.WithoutCancel(req.Context()), timeout)
		clone := req.Clone(ctx)
		go func() {
			defer stop()
			c.renew(ctx, clone)
		}()
	}
	making := c.making
	c.mu.Unlock()
	select {
	case <-making:
	case <-req.Context().Done(): // the client went away
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// renew makes the document.
func (c *Checker) renew(ctx context.Context, req *http.Request) {
	content, _ := json.Marshal(c.check(ctx, req)) // strings, numbers and booleans cannot fail
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.made = content, time.Now()
	close(c.making)
	c.making = nil
}

// check asks everybody at the same time.
func (c *Checker) check(ctx context.Context, req *http.Request) *selfcheck.Document {
	d := &selfcheck.Document{Version: version.Get().GitVersion, FeatureGates: c.Gates, Embedded: c.Embedded}
	d.Server, _ = os.Hostname() // without a host name, the server has no name
	c.addUnreadable(d)
	if c.Certificate != nil {
		chain, _ := c.Certificate.CurrentCertKeyContent()
		d.Certificate = string(chain)
	}
	var group sync.WaitGroup
	group.Go(func() { d.Etcd = askMembers(ctx, c.Transport, cmp.Or(c.memberTimeout, memberTimeout)) })
	group.Go(func() { d.Main = questions(ctx, c.Main) })
	group.Go(func() { d.Unready = unready(c.Ready, req) })
	group.Wait()
	d.Time = metav1.NowMicro()
	return d
}

// addUnreadable names the objects that the server cannot read.
func (c *Checker) addUnreadable(d *selfcheck.Document) {
	if c.Unreadable == nil {
		return
	}
	all := c.Unreadable()
	d.UnreadableCount = len(all)
	for _, o := range all[:min(len(all), selfcheck.MaxUnreadable)] {
		d.Unreadable = append(d.Unreadable, selfcheck.Unreadable{Resource: o.Resource.String(), Namespace: o.Namespace, Name: o.Name, Key: o.Key,
			Cause: o.Cause})
	}
}

// unready returns the readiness checks that fail.
func unready(checks []healthz.HealthChecker, req *http.Request) (problems []selfcheck.Problem) {
	for _, check := range checks {
		if err := check.Check(req); err != nil {
			problems = append(problems, selfcheck.Problem{Name: check.Name(), Message: err.Error()})
		}
	}
	return problems
}

// questions asks kube-apiserver what the server must be able to ask it, and returns what fails.
func questions(ctx context.Context, main kubernetes.Interface) (problems []selfcheck.Problem) {
	asked := []struct {
		name string
		ask  func() error
	}{
		{"tokenreviews", func() error {
			// The token belongs to no user, so that the answer is that it is not valid.
			review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "jobset-apiserver-self-check"}}
			_, err := main.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
			return err
		}},
		{"subjectaccessreviews", func() error {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "jobset-apiserver-self-check", NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/healthz", Verb: "get"},
			}}
			_, err := main.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			return err
		}},
		{"configmap kube-system/extension-apiserver-authentication", func() error {
			_, err := main.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "extension-apiserver-authentication", metav1.GetOptions{})
			return err
		}},
	}
	errs := make([]error, len(asked))
	var group sync.WaitGroup
	for i := range asked {
		group.Go(func() { errs[i] = asked[i].ask() })
	}
	group.Wait()
	for i, err := range errs {
		if err != nil {
			problems = append(problems, selfcheck.Problem{Name: asked[i].name, Message: err.Error()})
		}
	}
	return problems
}
