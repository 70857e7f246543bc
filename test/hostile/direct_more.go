// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// pods is the resource of the pods that the attacker creates.
const pods = "pods"

const (
	// newTokens is how many tokens that the server has not seen are used, each after the one before.
	newTokens = 3
	// newTokensBound is the time that they may take. Each waits for at most one turn of each connection of its address, of which there are 10
	// a second: 13 seconds beside 130 connections. That is a third of the bound.
	newTokensBound = 2 * time.Minute
)

// readsWithNewTokens lists the sets of the user with tokens that the server has not seen. The client comes again as the server asks it to,
// on the same connection.
func (e *env) readsWithNewTokens(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, newTokensBound)
	defer cancel()
	for i := range newTokens {
		token, err := e.newToken(ctx)
		if err != nil {
			return fmt.Errorf("making a token: %w", err)
		}
		client := e.direct.client(true)
		defer client.CloseIdleConnections()
		for code := 0; code != http.StatusOK; {
			response, err := e.direct.send(ctx, client, http.MethodGet, sets(plain), token, nil, nil)
			if err != nil {
				return fmt.Errorf("a list with the new token %d: %w", i, err)
			}
			_, _ = io.Copy(io.Discard, response.Body) // the code says enough
			_ = response.Body.Close()
			if code = response.StatusCode; code == http.StatusOK {
				continue
			}
			if code != http.StatusTooManyRequests {
				return fmt.Errorf("a list with the new token %d: %s", i, response.Status)
			}
			seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
			if err != nil {
				return fmt.Errorf("a list with the new token %d: Retry-After: %w", i, err)
			}
			select {
			case <-time.After(time.Duration(seconds) * time.Second):
			case <-ctx.Done():
				return fmt.Errorf("a list with the new token %d: never admitted: %w", i, ctx.Err())
			}
		}
	}
	return nil
}

// goodQuestions asks the webhook for pods from n addresses: good questions for a minute, and then questions about large pods without a pause.
func goodQuestions(n int) func(context.Context, *env) answer {
	good, large := groupQuestion(0), groupQuestion(1_600_000)
	return func(ctx context.Context, e *env) answer {
		var all tally
		var asking sync.WaitGroup
		for i := range n {
			client := clientFrom(net.IPv4(127, 0, 1, byte(i+1)))
			ask := func(question []byte) {
				response, err := e.direct.send(ctx, client, http.MethodPost, podWebhook, "", http.Header{"Content-Type": {jsonType}}, bytes.NewReader(question))
				if err != nil {
					all.add(answer{what: brief(err)})
					return
				}
				received, _ := io.Copy(io.Discard, response.Body) // the code says enough
				_ = response.Body.Close()
				all.add(answer{fmt.Sprint(response.StatusCode), int64(len(question)), received})
			}
			asking.Go(func() {
				defer client.CloseIdleConnections()
				for range 13 {
					ask(good)
					select {
					case <-time.After(5 * time.Second):
					case <-ctx.Done():
					}
				}
				for ctx.Err() == nil {
					ask(large)
				}
			})
		}
		select {
		case <-time.After(66 * time.Second):
		case <-ctx.Done():
		}
		e.tellAfterLead(ctx)
		asking.Wait()
		return all.total()
	}
}

// clientFrom returns a client with an address of its own.
func clientFrom(address net.IP) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: address}}
	return &http.Client{Transport: &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // loopback
	}}
}

// groupPod is a pod of a group, as its StatefulSet creates it, with a value of so many bytes.
func groupPod(size int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a-1","labels":{"leaderworkerset.sigs.k8s.io/name":"a",`+
		`"leaderworkerset.sigs.k8s.io/worker-index":"0"},"annotations":{"leaderworkerset.sigs.k8s.io/size":"4"}},`+
		`"spec":{"subdomain":"a","containers":[{"name":"c","image":"i","env":[{"name":"V","value":%q}]}]}}`, bytes.Repeat([]byte("x"), size))
}

// groupQuestion asks about such a pod.
func groupQuestion(size int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":%q,`+
		`"kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"},"object":%s}}`, hostile, groupPod(size))
}

// groupPods creates pods of groups from n clients in dry runs, so that kube-apiserver asks the webhook about each of them.
func groupPods(n int) func(context.Context, *env) answer {
	pod := groupPod(900_000)
	return func(ctx context.Context, e *env) answer {
		var all tally
		var creating sync.WaitGroup
		for range n {
			creating.Go(func() {
				for ctx.Err() == nil {
					all.add(request{resource: pods, method: http.MethodPost, contentType: jsonType, query: map[string][]string{"dryRun": {"All"}},
						body: func() []byte { return pod }}.one(ctx, e))
				}
			})
		}
		e.tellAfterLead(ctx)
		creating.Wait()
		return all.total()
	}
}
