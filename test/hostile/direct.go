// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

// direct is how programs in the cluster reach jobset-apiserver without kube-apiserver.
type direct struct {
	url string
	// hostile are tokens of two accounts of the attacker, and plain is one of the user.
	hostile []string
	plain   string
}

// openDirect finds the server where kube-apiserver finds it.
func openDirect(ctx context.Context, admin kubernetes.Interface, attackers []*rest.Config, bystander *rest.Config) (direct, error) {
	service, err := admin.CoreV1().Services(apiservice.Namespace).Get(ctx, apiservice.ServiceName, metav1.GetOptions{})
	if err != nil {
		return direct{}, err
	}
	d := direct{url: fmt.Sprintf("https://127.0.0.1:%d", service.Spec.Ports[0].Port), plain: bystander.BearerToken}
	for _, attacker := range attackers {
		d.hostile = append(d.hostile, attacker.BearerToken)
	}
	return d, nil
}

// sets is the path of the JobSets of a namespace.
func sets(namespace string) string {
	return "/apis/" + apiVersion + "/namespaces/" + namespace + "/jobsets"
}

// client returns a client with connections of its own.
func (d direct) client(http2 bool) *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: http2} //nolint:gosec // loopback
	if !http2 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return &http.Client{Transport: transport}
}

// send sends a request. The caller closes the body of the response.
func (d direct) send(ctx context.Context, client *http.Client, method, path, token string, header http.Header, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, d.url+path, body)
	if err != nil {
		return nil, err
	}
	for key, values := range header {
		req.Header[key] = values
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return client.Do(req)
}

// reads lists the sets of the user, who connects directly.
func (d direct) reads(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	response, err := d.send(ctx, d.client(true), http.MethodGet, sets(plain), d.plain, nil, nil)
	if err != nil {
		return fmt.Errorf("a list of another user: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("a list of another user: %s", response.Status)
	}
	return nil
}

// watches opens n watches of the attacker's sets, whose events no client reads, changes the sets, and keeps the watches until the context
// ends.
type watches struct {
	n int
	// perConnection is how many share a connection of HTTP/2; 0 means that each has one of HTTP/1.1.
	perConnection int
	// both means that they belong to both accounts of the attacker, and not to the first one only.
	both   bool
	query  string
	header http.Header
	// sets is how many sets of 1.3 MB are there, and changes how often they are changed meanwhile.
	sets, changes int
}

func (w watches) open(ctx context.Context, e *env) answer {
	for i := range w.sets {
		request{method: http.MethodPost, contentType: jsonType, body: func() []byte {
			return jobSet(fmt.Sprintf("large-%d", i), podWith(variable(1_300_000)), "")
		}}.one(ctx, e)
	}
	var all tally
	var opening sync.WaitGroup
	slots := make(chan struct{}, 50)
	var client *http.Client
	bodies := make([]io.ReadCloser, w.n)
	for i := range w.n {
		if w.perConnection == 0 || i%w.perConnection == 0 {
			client = e.direct.client(w.perConnection > 0)
			defer client.CloseIdleConnections()
		}
		of, token := client, e.direct.hostile[0]
		if w.both {
			token = e.direct.hostile[i%len(e.direct.hostile)]
		}
		opening.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			response, err := e.direct.send(ctx, of, http.MethodGet, sets(hostile)+"?watch=true&"+w.query, token, w.header, nil)
			if err != nil {
				all.add(answer{what: brief(err)})
				return
			}
			bodies[i] = response.Body
			all.add(answer{what: fmt.Sprint(response.StatusCode)})
		})
	}
	opening.Wait()
	for i := range w.changes {
		request{method: http.MethodPatch, path: fmt.Sprintf("/large-%d", i%w.sets), contentType: mergePatch, body: func() []byte {
			return fmt.Appendf(nil, `{"metadata":{"labels":{"round":"%d"}}}`, i)
		}}.one(ctx, e)
	}
	e.underWay <- struct{}{}
	<-ctx.Done()
	for _, body := range bodies {
		if body != nil {
			_ = body.Close()
		}
	}
	return all.total()
}

// lead is how long requests without end go on before others must be served.
const lead = 3 * time.Second

// tellAfterLead tells that the attack is under way.
func (e *env) tellAfterLead(ctx context.Context) {
	select {
	case <-time.After(lead):
		e.underWay <- struct{}{}
	case <-ctx.Done():
	}
}

// questions sends requests to the webhook for pods, one after the other on each of n connections, until the context ends.
func questions(n int, body func(context.Context) io.Reader) func(context.Context, *env) answer {
	return func(ctx context.Context, e *env) answer {
		var all tally
		var asking sync.WaitGroup
		header := http.Header{"Content-Type": {jsonType}}
		for range n {
			asking.Go(func() {
				client := e.direct.client(false)
				defer client.CloseIdleConnections()
				for ctx.Err() == nil {
					var sent int64
					response, err := e.direct.send(ctx, client, http.MethodPost, podWebhook, "", header, &counted{body(ctx), &sent})
					if err != nil {
						all.add(answer{what: brief(err), sent: sent})
						continue
					}
					received, _ := io.Copy(io.Discard, response.Body) // the code says enough
					_ = response.Body.Close()
					all.add(answer{fmt.Sprint(response.StatusCode), sent, received})
				}
			})
		}
		e.tellAfterLead(ctx)
		asking.Wait()
		return all.total()
	}
}

// podWebhook is the path of the webhook for pods of LeaderWorkerSets.
const podWebhook = "/mutate--v1-pod"

// question asks about a pod with a value of so many bytes.
func question(size int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":%q,`+
		`"kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"},"object":{"apiVersion":"v1","kind":"Pod",`+
		`"metadata":{"name":"a-0","labels":{"leaderworkerset.sigs.k8s.io/name":"a"}},"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"V","value":%q}]}]}}}}`,
		hostile, bytes.Repeat([]byte("x"), size))
}

// badTokens sends so many tokens that belong to no user, from n connections until the context ends.
func badTokens(n int) func(context.Context, *env) answer {
	return func(ctx context.Context, e *env) answer {
		var all tally
		var sending sync.WaitGroup
		for c := range n {
			sending.Go(func() {
				client := e.direct.client(false)
				defer client.CloseIdleConnections()
				for i := 0; ctx.Err() == nil; i++ {
					response, err := e.direct.send(ctx, client, http.MethodGet, sets(hostile), fmt.Sprintf("bad-%d-%d", c, i), nil, nil)
					if err != nil {
						all.add(answer{what: brief(err)})
						continue
					}
					_, _ = io.Copy(io.Discard, response.Body) // the code says enough
					_ = response.Body.Close()
					all.add(answer{what: fmt.Sprint(response.StatusCode)})
				}
			})
		}
		e.tellAfterLead(ctx)
		sending.Wait()
		return all.total()
	}
}
