// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/featuregate"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/payload"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/space"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// Config is what the server needs to know.
type Config struct {
	// Generic configures everything that is the same for every API server.
	Generic *server.RecommendedConfig
	// Scheme and Codecs come from NewScheme.
	Scheme *runtime.Scheme
	Codecs serializer.CodecFactory
	// Gates hold the feature gates of this project.
	Gates featuregate.FeatureGate
	// APIGroups are the API groups. Generic.MergedResourceConfig says which of their resources are served; all if it is nil.
	APIGroups apigroups.List
	// Memory is what watches and objects share. It is new if it is nil.
	Memory *space.Memory
	// Recorder records actions of users.
	Recorder provider.Recorder
	// Revisions reads the history of objects, for rollbacks.
	Revisions provider.RevisionReader
	// Runs keeps the runs that have ended. It is nil while the archive is off.
	Runs archive.Store
	// Filters are what requests pass beside the handlers of the library.
	Filters Filters
	// SelfCheck answers what the server knows about itself; nil if that is not served.
	SelfCheck http.Handler
}

type completedConfig struct {
	Config
	generic server.CompletedConfig
}

// CompletedConfig is a configuration without gaps. Only Complete returns one.
type CompletedConfig struct {
	*completedConfig
}

// maxPatchCopies bounds how many bytes the copy operations of a JSON patch copy.
const maxPatchCopies = 64 << 10

// Complete fills what can be derived, and bounds what requests make the server decode.
func (c *Config) Complete() CompletedConfig {
	if c.Generic.MergedResourceConfig == nil {
		c.Generic.MergedResourceConfig = c.APIGroups.Enabled()
	}
	for version := range c.APIGroups.Off(c.Gates) {
		c.Generic.MergedResourceConfig.DisableVersions(version)
	}
	if c.Memory == nil {
		c.Memory = space.NewMemory()
	}
	c.Generic.MaxRequestBodyBytes = payload.MaxBytes
	c.Generic.JSONPatchMaxCopyBytes = maxPatchCopies
	build := c.Generic.BuildHandlerChainFunc
	c.Generic.BuildHandlerChainFunc = func(api http.Handler, generic *server.Config) http.Handler {
		return c.handlers(api, generic, build)
	}
	return CompletedConfig{&completedConfig{Config: *c, generic: c.Generic.Complete()}}
}

// enabled returns whether a resource is served. A subresource is if its resource is.
func (c *Config) enabled(version schema.GroupVersion, name string) bool {
	resource, _, _ := strings.Cut(name, "/")
	return c.Generic.MergedResourceConfig.ResourceEnabled(version.WithResource(resource))
}

// New returns a server that is ready to run.
func (c CompletedConfig) New() (*server.GenericAPIServer, error) {
	s, err := c.generic.New("jobset-apiserver", server.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("building the API server: %w", err)
	}
	served := c.APIGroups.Served(c.Generic.MergedResourceConfig)
	known := provider.Neighbors{}
	for _, group := range c.APIGroups {
		if !slices.ContainsFunc(group.Versions, func(v schema.GroupVersion) bool { return slices.Contains(served, v) }) {
			continue
		}
		if err := c.install(s, group.Provider, known); err != nil {
			return nil, fmt.Errorf("installing %s: %w", group.Group(), err)
		}
	}
	return s, nil
}

// install makes the server serve what is enabled of a group.
func (c CompletedConfig) install(s *server.GenericAPIServer, group provider.Provider, known provider.Neighbors) error {
	resources, err := group.Storage(provider.Host{
		Getter: c.generic.RESTOptionsGetter, Scheme: c.Scheme, Gates: c.Gates, Recorder: c.Recorder, Revisions: c.Revisions, Now: time.Now,
		Runs: c.Runs, Neighbors: known, Admission: c.generic.AdmissionControl,
		Objects: &admission.RuntimeObjectInterfaces{
			ObjectCreater: c.Scheme, ObjectTyper: c.Scheme, ObjectDefaulter: c.Scheme, ObjectConvertor: c.Scheme,
			EquivalentResourceMapper: s.EquivalentResourceRegistry,
		},
	})
	if err != nil {
		return err
	}
	for _, version := range group.Versions {
		maps.DeleteFunc(resources[version.Version], func(name string, _ rest.Storage) bool { return !c.enabled(version, name) })
	}
	info := server.NewDefaultAPIGroupInfo(group.Group(), c.Scheme, runtime.NewParameterCodec(c.Scheme), c.Codecs)
	info.NegotiatedSerializer = payload.Bounded(info.NegotiatedSerializer, c.Scheme)
	info.VersionedResourcesStorageMap = resources
	return installHiding(s, &info, group.HiddenVerbs)
}
