// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission states which admission plugins the server runs and in which order. kube-apiserver runs none for
// requests that it proxies, so everything that a cluster administrator expects to guard objects runs here, with the
// configuration that the main cluster holds.
package admission

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
)

// NewOptions returns the options of the chain. The plugins run in the same order as in kube-apiserver. The plugins for single kinds run
// before quota, which is the last: what it counted is not given back when a later plugin refuses.
func NewOptions(ofKinds []apigroups.Plugin) *genericoptions.AdmissionOptions {
	options := genericoptions.NewAdmissionOptions()
	options.RecommendedPluginOrder = []string{
		lifecycle.PluginName,
		mutatingpolicy.PluginName,
		mutatingwebhook.PluginName,
		validatingpolicy.PluginName,
		validatingwebhook.PluginName,
	}
	for _, plugin := range ofKinds {
		plugin.Register(options.Plugins)
		options.RecommendedPluginOrder = append(options.RecommendedPluginOrder, plugin.Name)
	}
	options.Decorators = append(options.Decorators, admission.DecoratorFunc(explainRefusals))
	resourcequota.Register(options.Plugins)
	options.RecommendedPluginOrder = append(options.RecommendedPluginOrder, resourcequota.PluginName)
	return options
}

// Initializers returns what plugins need beyond what every API server passes to them. The client is a client of the main API; quota counts
// the objects of the resources.
func Initializers(client kubernetes.Interface, schemas Schemas, counted []schema.GroupResource) []admission.PluginInitializer {
	return []admission.PluginInitializer{quotaInitializer{counted: counted}, schemaInitializer{client: client, schemas: schemas}}
}

// policyResources are the resources of the main API that a plugin watches, where clusters that we support may lack them.
var policyResources = map[string][]string{
	mutatingpolicy.PluginName:   {"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"},
	validatingpolicy.PluginName: {"validatingadmissionpolicies", "validatingadmissionpolicybindings"},
}

// Unsupported names the plugins whose configuration the main cluster does not serve. Running one of them would block
// every write, since it waits for its first list.
func Unsupported(client discovery.ServerResourcesInterface) ([]string, error) {
	const groupVersion = "admissionregistration.k8s.io/v1"
	list, err := client.ServerResourcesForGroupVersion(groupVersion)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("asking the main API for the resources of %s: %w", groupVersion, err)
	}
	served := map[string]bool{}
	if err == nil {
		for _, resource := range list.APIResources {
			served[resource.Name] = true
		}
	}
	var plugins []string
	for _, plugin := range []string{mutatingpolicy.PluginName, validatingpolicy.PluginName} {
		for _, resource := range policyResources[plugin] {
			if !served[resource] {
				plugins = append(plugins, plugin)
				break
			}
		}
	}
	return plugins, nil
}

// quotaInitializer configures what the quota plugin counts: objects, by count/<resource>.<group>.
type quotaInitializer struct{ counted []schema.GroupResource }

var _ admission.PluginInitializer = quotaInitializer{}

// Initialize implements admission.PluginInitializer.
func (i quotaInitializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(initializer.WantsQuotaConfiguration); ok {
		wants.SetQuotaConfiguration(newQuotaConfiguration(i.counted...))
	}
}

func newQuotaConfiguration(counted ...schema.GroupResource) quota.Configuration {
	evaluators := make([]quota.Evaluator, 0, len(counted))
	for _, resource := range counted {
		evaluators = append(evaluators, generic.NewObjectCountEvaluator(resource, neverList, ""))
	}
	return generic.NewConfiguration(evaluators, nil)
}

// neverList stands where the quota controller would list what is used. That controller runs in the main cluster and
// lists through aggregation; admission only adds to what it recorded.
func neverList(string) ([]runtime.Object, error) {
	return nil, errors.New("usage is computed by the quota controller of the main cluster")
}
