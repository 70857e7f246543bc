// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/http"
	"path"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/server"
	clientdiscovery "k8s.io/client-go/discovery"
)

// installHiding makes the server serve a group, and leaves verbs out of both forms of discovery. The server answers the verbs all the
// same. The library derives the verbs from the storage, and has no way to hide one.
func installHiding(s *server.GenericAPIServer, info *server.APIGroupInfo, verbs []string) error {
	if len(verbs) == 0 {
		return s.InstallAPIGroup(info)
	}
	manager := &hidingManager{ResourceManager: s.AggregatedDiscoveryGroupManager, verbs: verbs}
	s.AggregatedDiscoveryGroupManager = manager
	err := s.InstallAPIGroup(info)
	s.AggregatedDiscoveryGroupManager = manager.ResourceManager
	if err != nil {
		return err
	}
	_, lists, failed := clientdiscovery.SplitGroupsAndResources(apidiscoveryv2.APIGroupDiscoveryList{Items: manager.added})
	for version, err := range failed {
		return fmt.Errorf("listing the resources of %s: %w", version, err)
	}
	for version, list := range lists {
		if err := replaceResources(s, info, version, list.APIResources); err != nil {
			return err
		}
	}
	return nil
}

// hidingManager removes verbs from what is added to the aggregated form of discovery.
type hidingManager struct {
	aggregated.ResourceManager
	verbs []string
	added []apidiscoveryv2.APIGroupDiscovery
}

// AddGroupVersion implements aggregated.ResourceManager. The lists of verbs belong to the other form of discovery, too.
func (m *hidingManager) AddGroupVersion(group string, version apidiscoveryv2.APIVersionDiscovery) {
	version = *version.DeepCopy()
	for i := range version.Resources {
		resource := &version.Resources[i]
		resource.Verbs = slices.DeleteFunc(resource.Verbs, func(verb string) bool { return slices.Contains(m.verbs, verb) })
	}
	m.added = append(m.added, apidiscoveryv2.APIGroupDiscovery{
		ObjectMeta: metav1.ObjectMeta{Name: group}, Versions: []apidiscoveryv2.APIVersionDiscovery{version},
	})
	m.ResourceManager.AddGroupVersion(group, version)
}

// replaceResources replaces the list of resources that the server answers at the path of a version. It runs before the server does.
func replaceResources(s *server.GenericAPIServer, info *server.APIGroupInfo, version schema.GroupVersion,
	resources []metav1.APIResource) error {
	root := path.Join(server.APIGroupPrefix, version.Group, version.Version)
	for _, service := range s.Handler.GoRestfulContainer.RegisteredWebServices() {
		if service.RootPath() != root {
			continue
		}
		for _, route := range service.Routes() {
			if route.Method != http.MethodGet || path.Clean(route.Path) != root {
				continue
			}
			service.SetDynamicRoutes(true)
			err := service.RemoveRoute(route.Path, route.Method)
			service.SetDynamicRoutes(false)
			if err != nil {
				return fmt.Errorf("replacing the list of resources of %s: %w", version, err)
			}
			list := discovery.APIResourceListerFunc(func() []metav1.APIResource { return resources })
			discovery.NewAPIVersionHandler(info.NegotiatedSerializer, version, list).AddToWebService(service)
			return nil
		}
	}
	return fmt.Errorf("replacing the list of resources of %s: the server has none at %s", version, root)
}
