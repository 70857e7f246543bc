// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// admin is the administrator's client. It speaks plain HTTP, so that this program is small and quick to build.
type admin struct {
	server string
	client *http.Client
}

func newAdmin(kubeconfig string) (*admin, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &admin{server: config.Host, client: client}, nil
}

// do sends a request and decodes the answer into an object, unless that is nil.
func (a *admin) do(ctx context.Context, method, path, mediaType string, body, into any) error {
	return a.ask(ctx, method, path, "application/json", mediaType, body, into)
}

// ask is do for an answer of another type than JSON of a kind.
func (a *admin) ask(ctx context.Context, method, path, accept, mediaType string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.server+path, content)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", accept)
	if body != nil {
		request.Header.Set("Content-Type", mediaType)
	}
	return send(a.client, request, into)
}

// send returns the status of an answer that is not a success as an error.
func send(client *http.Client, request *http.Request, into any) error {
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusBadRequest {
		var status metav1.Status
		if json.Unmarshal(answer, &status) == nil && status.Message != "" {
			answer = []byte(status.Message)
		}
		return &statusError{code: response.StatusCode, text: fmt.Sprintf("%s %s: %s: %s",
			request.Method, request.URL.Path, response.Status, bytes.TrimSpace(answer))}
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}

// statusError is an answer that is not a success.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return e.text }

func (a *admin) get(ctx context.Context, path string, into any) error {
	return a.do(ctx, http.MethodGet, path, "", nil, into)
}

func (a *admin) post(ctx context.Context, path string, body, into any) error {
	return a.do(ctx, http.MethodPost, path, "application/json", body, into)
}

// apply is kubectl apply --server-side --force-conflicts.
func (a *admin) apply(ctx context.Context, path string, object any) error {
	return a.do(ctx, http.MethodPatch, path+"?fieldManager=kubectl&force=true", "application/apply-patch+yaml", object, nil)
}

// healthy asks a program on this machine, without TLS.
func healthy(ctx context.Context, port, path string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+path, nil)
	if err != nil {
		return err
	}
	return send(http.DefaultClient, request, nil)
}
