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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
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
	p.AggregatePort(t, s.Port, ca)
}

// AggregatePort makes kube-apiserver forward our groups to a port of this machine and waits until it does. One port at a time.
func (p *ControlPlane) AggregatePort(t testing.TB, port int, ca []byte) {
	t.Helper()
	p.awaitNoGroups(t)
	p.RegisterPort(t, port, ca)
	p.awaitGroups(t)
}

// RegisterPort is AggregatePort without the waiting, for a server that does not serve yet.
func (p *ControlPlane) RegisterPort(t testing.TB, port int, ca []byte) {
	t.Helper()
	if err := p.Register(t.Context(), port, ca); err != nil {
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
		webhooks := p.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations()
		if err := webhooks.Delete(ctx, apiservice.WebhookName, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		for _, service := range apiservice.Services(port) {
			if err := p.Kube.CoreV1().Services(service.Namespace).Delete(ctx, service.Name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
}

// awaitNoGroups waits until kube-apiserver has forgotten our groups.
func (p *ControlPlane) awaitNoGroups(t testing.TB) {
	t.Helper()
	// The document of all groups may still have those of a server that another test used. They vanish some time later, and would
	// be taken for those of this server until then.
	Eventually(t, "the groups of earlier servers are gone from discovery", func(context.Context) error {
		for _, group := range apiservice.Groups {
			// Discovery reports groups whose server is away as an error.
			if found, _ := p.discovered(group); found {
				return fmt.Errorf("%s is still discovered", group)
			}
			if found, err := p.described(group); err != nil || found {
				return fmt.Errorf("the schema of %s is still published (%v)", group, err)
			}
		}
		return nil
	})
}

// awaitGroups waits until kube-apiserver forwards our groups and shows them.
func (p *ControlPlane) awaitGroups(t testing.TB) {
	t.Helper()
	services := p.Dynamic.Resource(apiservice.Resource)
	Eventually(t, "the APIServices are available and the groups discovered", func(ctx context.Context) error {
		for _, group := range apiservice.Groups {
			current, err := services.Get(ctx, apiservice.Name(group), metav1.GetOptions{})
			if err != nil {
				return err
			}
			if status, message := apiservice.Available(current); status != "True" {
				return fmt.Errorf("APIService %s: Available is %q: %s", current.GetName(), status, message)
			}
		}
		// kube-apiserver collects the document of all groups, and later their schemas, some time after it forwards requests.
		for _, group := range apiservice.Groups {
			if found, err := p.discovered(group); err != nil || !found {
				return fmt.Errorf("%s is not discovered (%v)", group, err)
			}
			if found, err := p.described(group); err != nil || !found {
				return fmt.Errorf("the schema of %s is not published (%v)", group, err)
			}
		}
		return nil
	})
	p.AwaitForwarded(t, 0)
}

// AwaitForwarded waits until kube-apiserver has forwarded requests for each of our groups for some time without a
// failure. Neither Available nor discovery shows that: the part of kube-apiserver that forwards reads a change of an
// APIService some time after the API shows it, and answers as before until then, and discovery asks a Service that
// serves several groups only once.
func (p *ControlPlane) AwaitForwarded(t testing.TB, period time.Duration) {
	t.Helper()
	var since time.Time
	Eventually(t, fmt.Sprintf("requests for all groups have been forwarded for %s", period), func(context.Context) error {
		for _, group := range apiservice.Groups {
			if _, err := p.Kube.Discovery().ServerResourcesForGroupVersion(group.String()); err != nil {
				since = time.Time{}
				return fmt.Errorf("%s: %w", group, err)
			}
		}
		if since.IsZero() {
			since = time.Now()
		}
		if been := time.Since(since); been < period {
			return fmt.Errorf("they have been forwarded for %s", been)
		}
		return nil
	})
}

// discovered returns whether the document of all groups has the group.
func (p *ControlPlane) discovered(group schema.GroupVersion) (bool, error) {
	_, lists, err := p.Kube.Discovery().ServerGroupsAndResources()
	return slices.ContainsFunc(lists, func(list *metav1.APIResourceList) bool { return list.GroupVersion == group.String() }), err
}

// described returns whether the index of schemas, which kubectl explain reads, has the group.
func (p *ControlPlane) described(group schema.GroupVersion) (bool, error) {
	paths, err := p.Kube.Discovery().OpenAPIV3().Paths()
	_, found := paths["apis/"+group.String()]
	return found, err
}

// Register makes kube-apiserver forward our groups to a port of this machine, and ask it about pods of LeaderWorkerSets.
func (p *ControlPlane) Register(ctx context.Context, port int, ca []byte) error {
	return Register(ctx, p.Kube, p.Dynamic, port, ca)
}

// Register makes a kube-apiserver forward our groups to a port of this machine, and ask it about pods of LeaderWorkerSets.
func Register(ctx context.Context, kube kubernetes.Interface, all dynamic.Interface, port int, ca []byte) error {
	for _, service := range apiservice.Services(port) {
		if _, err := kube.CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, group := range apiservice.Groups {
		object := apiservice.New(group, port, ca)
		if _, err := all.Resource(apiservice.Resource).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	_, err := kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, apiservice.Webhook(port, ca), metav1.CreateOptions{})
	return err
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
