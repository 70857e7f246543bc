// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/openapi"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/spec3"
)

// Schemas are the types that mutating policies change, by the names of their definitions and by their group versions.
type Schemas struct {
	Config *common.OpenAPIV3Config
	Names  map[schema.GroupVersion][]string
}

// schemaInitializer passes our own schemas to the plugin of mutating policies. By itself the plugin reads them from the
// main API, which learns them from us: after every start of this server or of kube-apiserver, writes that a policy
// matches would be refused until they have made the round.
type schemaInitializer struct {
	client  kubernetes.Interface
	schemas Schemas
}

var _ admission.PluginInitializer = schemaInitializer{}

// Initialize implements admission.PluginInitializer.
func (i schemaInitializer) Initialize(plugin admission.Interface) {
	if policies, ok := plugin.(*mutatingpolicy.Plugin); ok {
		policies.SetExternalKubeClientSet(schemaClient{Interface: i.client, documents: newDocuments(i.schemas)})
	}
}

// schemaClient is a client of the main API that knows our schemas only.
type schemaClient struct {
	kubernetes.Interface
	documents documents
}

// Discovery returns a discovery client that has our schemas.
func (c schemaClient) Discovery() discovery.DiscoveryInterfaces {
	return schemaDiscovery{DiscoveryInterfaces: c.Interface.Discovery(), documents: c.documents}
}

type schemaDiscovery struct {
	discovery.DiscoveryInterfaces
	documents documents
}

// OpenAPIV3 returns a client of our schemas.
func (d schemaDiscovery) OpenAPIV3() openapi.Client { return d.documents }

// documents are OpenAPI documents by their paths.
type documents map[string]openapi.GroupVersion

// document is the OpenAPI document of one group version, built when it is first asked for.
type document struct {
	path  string
	bytes func() ([]byte, error)
}

var (
	_ openapi.Client       = documents{}
	_ openapi.GroupVersion = &document{}
)

func newDocuments(schemas Schemas) documents {
	out := documents{}
	for version, names := range schemas.Names {
		path := "apis/" + version.String()
		out[path] = &document{path: path, bytes: sync.OnceValues(func() ([]byte, error) {
			definitions, err := builder3.BuildOpenAPIDefinitionsForResources(schemas.Config, names...)
			if err != nil {
				return nil, fmt.Errorf("building the schemas of %s: %w", version, err)
			}
			return json.Marshal(spec3.OpenAPI{Version: "3.0.0", Components: &spec3.Components{Schemas: definitions}})
		})}
	}
	return out
}

// Paths implements openapi.Client.
func (d documents) Paths() (map[string]openapi.GroupVersion, error) { return d, nil }

// Schema implements openapi.GroupVersion. JSON is the only type that the plugin asks for.
func (d *document) Schema(string) ([]byte, error) { return d.bytes() }

// ServerRelativeURL implements openapi.GroupVersion. It never changes, and neither do the schemas.
func (d *document) ServerRelativeURL() string { return d.path }
