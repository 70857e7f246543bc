// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

// Aggregate makes kube-apiserver forward our groups to the server and waits until it does. One server at a time.
func (p *ControlPlane) Aggregate(t testing.TB, s *Server) {
	t.Helper()
	ca, err := os.ReadFile(filepath.Join(s.CertDir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Register(t.Context(), s.Port, ca); err != nil {
		t.Fatal(err)
	}
	services := p.Dynamic.Resource(apiservice.Resource)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, group := range apiservice.Groups {
			if err := services.Delete(ctx, apiservice.Name(group), metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
		if err := p.Kube.CoreV1().Services(apiservice.Namespace).Delete(ctx, apiservice.ServiceName, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	Eventually(t, time.Minute, "the APIServices are available and the groups discovered", func(ctx context.Context) error {
		for _, group := range apiservice.Groups {
			current, err := services.Get(ctx, apiservice.Name(group), metav1.GetOptions{})
			if err != nil {
				return err
			}
			if status, message := apiservice.Available(current); status != "True" {
				return fmt.Errorf("APIService %s: Available is %q: %s", current.GetName(), status, message)
			}
		}
		// kube-apiserver collects the document of all groups some time after it forwards requests.
		_, lists, err := p.Kube.Discovery().ServerGroupsAndResources()
		if err != nil {
			return err
		}
		for _, group := range apiservice.Groups {
			if !slices.ContainsFunc(lists, func(list *metav1.APIResourceList) bool { return list.GroupVersion == group.String() }) {
				return fmt.Errorf("%s is not discovered", group)
			}
		}
		return nil
	})
}

// Register makes kube-apiserver forward our groups to a port of this machine.
func (p *ControlPlane) Register(ctx context.Context, port int, ca []byte) error {
	service := apiservice.Service(port)
	if _, err := p.Kube.CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, group := range apiservice.Groups {
		object := apiservice.New(group, port, ca)
		if _, err := p.Dynamic.Resource(apiservice.Resource).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// Get asks for a path and returns the status code, which is 0 when nothing answers, and the body.
func Get(t testing.TB, config *rest.Config, path string) (int, string) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(config.Host, "/")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}
