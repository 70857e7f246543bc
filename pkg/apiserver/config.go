// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/featuregate"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/payload"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/storage"
	jobsetrest "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/rest"
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
	// Recorder is told of actions of users on JobSets.
	Recorder storage.Recorder
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
	c.Generic.MaxRequestBodyBytes = payload.MaxBytes
	c.Generic.JSONPatchMaxCopyBytes = maxPatchCopies
	build := c.Generic.BuildHandlerChainFunc
	c.Generic.BuildHandlerChainFunc = func(api http.Handler, generic *server.Config) http.Handler {
		api = withFeatureGates(api, features.States(c.Gates), v1alpha2.SchemeGroupVersion)
		return build(payload.NewHandler(api, c.Scheme, c.Codecs), generic)
	}
	return CompletedConfig{&completedConfig{Config: *c, generic: c.Generic.Complete()}}
}

// New returns a server that is ready to run.
func (c CompletedConfig) New() (*server.GenericAPIServer, error) {
	s, err := c.generic.New("jobset-apiserver", server.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("building the API server: %w", err)
	}
	resources, err := jobsetrest.NewStorage(c.generic.RESTOptionsGetter, c.Scheme, features.JobSet(c.Gates), c.Recorder)
	if err != nil {
		return nil, fmt.Errorf("building the storage of %s: %w", jobset.GroupName, err)
	}
	group := server.NewDefaultAPIGroupInfo(jobset.GroupName, c.Scheme, runtime.NewParameterCodec(c.Scheme), c.Codecs)
	group.NegotiatedSerializer = payload.Bounded(group.NegotiatedSerializer, c.Scheme)
	group.VersionedResourcesStorageMap = map[string]map[string]rest.Storage{v1alpha2.SchemeGroupVersion.Version: resources}
	if err := s.InstallAPIGroup(&group); err != nil {
		return nil, fmt.Errorf("installing %s: %w", jobset.GroupName, err)
	}
	return s, nil
}
